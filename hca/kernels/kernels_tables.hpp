// The tables behind kernels::tables(), one per instruction set compiled in.
#pragma once

#include "hca/kernels/kernels.hpp"

namespace weft::hca::kernels {

extern const Table portable_table;
#if defined(__x86_64__)
extern const Table avx2_table;
extern const Table avx512_table;
#endif

}  // namespace weft::hca::kernels
