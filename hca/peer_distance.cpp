#include "hca/peer_distance.hpp"

#include <algorithm>
#include <cstdint>

namespace weft::hca {
namespace {

/// Less than what a line of another processor takes (220 to 320 for nearly all) and more than one
/// from a cache in common (20 to 80 for nearly all).
constexpr unsigned close_ticks = 120;

#if defined __x86_64__
/// Reads the byte; how long that took, and the reading of the clock.
std::uint64_t timed_read(const std::byte* at) noexcept {
  __builtin_ia32_lfence();
  const std::uint64_t before = __builtin_ia32_rdtsc();
  (void)*static_cast<const volatile std::byte*>(at);
  __builtin_ia32_lfence();
  return __builtin_ia32_rdtsc() - before;
}
#endif

}  // namespace

void PeerDistance::note(unsigned ticks) noexcept {
  const int level = level_.load(std::memory_order_relaxed);
  // Lost when two threads note at the same time, which does not matter.
  level_.store(std::clamp(level + (ticks < close_ticks ? 1 : -1), 0, top),
               std::memory_order_relaxed);
}

unsigned PeerDistance::ticks_for([[maybe_unused]] const std::byte* line) noexcept {
#if defined __x86_64__
  const std::uint64_t first = timed_read(line);
  const std::uint64_t again = timed_read(line);
  return first <= again ? 0
                        : static_cast<unsigned>(std::min<std::uint64_t>(first - again, 1 << 20));
#else
  return close_ticks;
#endif
}

PeerDistance& peer_distance() noexcept {
  static constinit PeerDistance distance;
  return distance;
}

}  // namespace weft::hca
