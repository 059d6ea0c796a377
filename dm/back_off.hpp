// How a process waits for another one's store: at full speed while a core is there for both, giving
// way when there are more processes than cores.
#pragma once

#include <sched.h>
#include <unistd.h>

#include <cstdint>

#include "hca/emu/pause.hpp"

namespace weft::dm {

/// Cores of the node. Not those that this process may run on: bound to one, it has peers that are
/// bound to others.
inline unsigned cores() noexcept {
  static const long count = ::sysconf(_SC_NPROCESSORS_ONLN);
  return count > 0 ? static_cast<unsigned>(count) : 1;
}

using hca::emu::pause;

class BackOff {
 public:
  /// `processes`: how many wait for each other, those at work included.
  explicit BackOff(unsigned processes = 2) noexcept : spins_(processes > cores() ? 16 : 4000) {}

  /// Call between two looks. False once waiting like this has become a waste: sleep instead.
  bool wait() noexcept {
    if (looks_ < spins_) {
      pause();
    } else {
      ::sched_yield();
    }
    return ++looks_ < spins_ + yields;
  }

 private:
  static constexpr std::uint32_t yields = 200;
  const std::uint32_t spins_;
  std::uint32_t looks_ = 0;
};

}  // namespace weft::dm
