// The transport library, loaded before UCX initialises.
#pragma once

#include "ucx-tl/transport_api.hpp"

namespace weft::ompi {

/// Loads libuct_weft.so, whose constructor registers the transport with UCX. Null if it cannot be
/// had (said at hook_weft_verbose 1). The library stays for good.
const ucx::TransportApi* load_transport();

}  // namespace weft::ompi
