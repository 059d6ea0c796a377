// How a process waits for another one's store: at full speed while a core is there for both, giving
// way when there are more processes than cores.
#pragma once

#include <sched.h>

#include <cstdint>

namespace weft::dm {

/// Cores that this process may run on.
inline unsigned usable_cores() noexcept {
  static const unsigned cores = [] {
    cpu_set_t set;
    CPU_ZERO(&set);
    const int count = ::sched_getaffinity(0, sizeof set, &set) == 0 ? CPU_COUNT(&set) : 1;
    return count > 0 ? static_cast<unsigned>(count) : 1u;
  }();
  return cores;
}

/// Tells the core that this is a loop that waits.
inline void pause() noexcept {
#if defined(__x86_64__) || defined(__i386__)
  __builtin_ia32_pause();
#elif defined(__aarch64__)
  asm volatile("yield");
#endif
}

class BackOff {
 public:
  /// `processes`: how many wait for each other, those at work included.
  explicit BackOff(unsigned processes = 2) noexcept
      : spins_(processes > usable_cores() ? 16 : 4000) {}

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
