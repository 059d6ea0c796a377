// Kernels for the instruction set that the whole build is for.
#include <algorithm>
#include <cstring>

#include "hca/kernels/kernels_tables.hpp"

#define WEFT_KERNELS_VECTOR 16
#include "hca/kernels/kernels.ipp"

namespace weft::hca::kernels {
const Table portable_table = make_table("portable");
}
