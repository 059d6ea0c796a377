// Requests that the program freed while they were active.
#pragma once

#include "ompi-component/ompi.hpp"

namespace weft::ompi {

/// Keeps a request until it has completed, then frees it with `free`.
void adopt(ompi_request_t* request, ompi_request_free_fn_t free) noexcept;

/// Frees what has completed, and touches no request any more.
void close_orphans() noexcept;

}  // namespace weft::ompi
