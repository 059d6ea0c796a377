// How far from this processor the one is that peers run on: whether the two have a cache in common.
//
// Cores of one complex pass lines on through the cache that they share, which takes some 0.03 us
// more than a line of one's own. Between complexes a line travels for 0.1 to 0.2 us, and it pays to
// write and fetch lines in other ways.
#pragma once

#include <atomic>
#include <cstddef>
#include <span>

namespace weft::hca {

/// What the process has found out about its peers, all together. Any thread may use it.
class PeerDistance {
 public:
  /// Looks from time to time how long a line of `written` takes, which a peer has written and
  /// nobody here has read but for its beginning.
  void look_at(std::span<const std::byte> written) noexcept {
    if (written.size() < least || !looks_.load(std::memory_order_relaxed)) return;
    // No locked instruction, which would wait for all stores of the piece before. A call that two
    // threads count once does not matter.
    const unsigned calls = calls_.load(std::memory_order_relaxed);
    calls_.store(calls + 1, std::memory_order_relaxed);
    if (calls % looks_every == 0) note(ticks_for(written.data() + written.size() / 2));
  }
  /// A line took so many ticks of the processor's clock more than one that is in its own cache.
  void note(unsigned ticks) noexcept;
  /// Takes peers for far from now on: where processes change their cores all the time.
  void stop_looking() noexcept {
    looks_.store(false, std::memory_order_relaxed);
    level_.store(0, std::memory_order_relaxed);
  }
  /// False until most of the last looks have shown otherwise.
  [[nodiscard]] bool is_close() const noexcept {
    return level_.load(std::memory_order_relaxed) > top / 2;
  }

 private:
  static constexpr std::size_t least = 4096;  ///< bytes
  static constexpr unsigned looks_every = 8;
  static constexpr int top = 8;

  static unsigned ticks_for(const std::byte* line) noexcept;

  std::atomic<bool> looks_{true};
  std::atomic<unsigned> calls_{0};
  std::atomic<int> level_{0};
};

/// The process's.
PeerDistance& peer_distance() noexcept;

}  // namespace weft::hca
