// The time that pauses and looks now and then are counted by.
#pragma once

#include <chrono>
#include <cstdint>

namespace weft::hca::emu {

/// Nanoseconds of a clock that never goes back, the same for all processes of the node.
inline std::uint64_t now_ns() noexcept {
  return static_cast<std::uint64_t>(std::chrono::steady_clock::now().time_since_epoch().count());
}

}  // namespace weft::hca::emu
