// The layouts of Open MPI's datatypes, compiled once and kept until the datatype is freed.
#pragma once

#include <cstddef>

#include "hca/layout.hpp"
#include "ompi-component/ompi.hpp"

namespace weft::ompi {

/// Layout of `count` elements of a datatype. Throws hca::Error (over a limit) or std::bad_alloc.
/// Thread-safe.
hca::LayoutPtr layout_of(ompi_datatype_t* type, std::size_t count);

/// Once MPI's attributes work, before the first layout_of(). False: no layout may be cached.
bool open_layouts();
void close_layouts();

}  // namespace weft::ompi
