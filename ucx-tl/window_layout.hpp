// The layout that a registered window's key has.
#pragma once

#include "hca/layout.hpp"

namespace weft::ucx {

/// Its base is a window's first address; its bytes are those of whatever is bound to the window at
/// the time of the access. UCX's registration cache (in use by its newer protocol code) keeps keys
/// by address, so a key may be older than the binding. One object serves all windows.
///
/// An access that the present binding does not cover reads zeros and writes nothing.
const hca::Layout& window_layout() noexcept;

}  // namespace weft::ucx
