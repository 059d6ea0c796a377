// Copies between windows and host memory of one process, in any combination.
#pragma once

#include <cstddef>

namespace weft::ucx {

/// Either address may be of a window. False when a window is not bound or too small.
bool copy_bytes(void* to, const void* from, std::size_t length) noexcept;

}  // namespace weft::ucx
