// Reader: from Open MPI's own description of a datatype to a Layout.
#pragma once

#include "hca/layout.hpp"
#include "ompi-component/ompi.hpp"

namespace weft::ompi {

/// The layout of one element of a committed datatype, its stream in the order in which Open MPI
/// packs. Costs O(entries of the description). hca::Error EOVERFLOW as of LoopBuilder.
hca::LayoutPtr read_description(const opal_datatype_t& type);

}  // namespace weft::ompi
