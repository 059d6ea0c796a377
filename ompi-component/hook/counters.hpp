// Counters of what was offloaded and what was not, for statistics and MPI_T.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>

#include "hca/layout.hpp"

namespace weft::ompi {

enum class Direction : std::uint8_t { send, receive };
inline constexpr std::size_t directions = 2;
inline constexpr std::size_t layout_kinds = 5;

/// Why a message with a non-contiguous datatype took Open MPI's own path.
enum class Fallback : std::uint8_t {
  bsend,      ///< buffered sends are packed into the user's buffer by definition
  min_size,   ///< smaller than hook_weft_min_size
  limits,     ///< over a limit of the device or of a window
  no_window,  ///< every window is taken
  no_memory,  ///< no memory for the layout or the bookkeeping
  inactive,   ///< the transport is not up, or was not loaded
  pml,        ///< another pml than ucx carries the messages
};
inline constexpr std::size_t fallbacks = 7;

const char* to_string(Direction direction) noexcept;
/// The name in MPI_T, and a few words for people.
const char* to_string(Fallback reason) noexcept;
const char* explain(Fallback reason) noexcept;

/// A count and the bytes of what was counted. Relaxed everywhere: nobody concludes anything about
/// other memory from a counter.
class Tally {
 public:
  void add(std::uint64_t bytes) noexcept {
    bump(messages_, 1);
    bump(bytes_, bytes);
  }
  /// Corrects the bytes of a message that turned out shorter than assumed.
  void shorten(std::uint64_t bytes) noexcept { bump(bytes_, ~bytes + 1); }

  [[nodiscard]] std::uint64_t messages() const noexcept {
    return messages_.load(std::memory_order_relaxed);
  }
  [[nodiscard]] std::uint64_t bytes() const noexcept {
    return bytes_.load(std::memory_order_relaxed);
  }
  [[nodiscard]] const std::atomic<std::uint64_t>& message_counter() const noexcept {
    return messages_;
  }
  [[nodiscard]] const std::atomic<std::uint64_t>& byte_counter() const noexcept { return bytes_; }

  /// Without MPI_THREAD_MULTIPLE a plain addition does.
  static void set_concurrent(bool concurrent) noexcept { concurrent_ = concurrent; }

 private:
  static void bump(std::atomic<std::uint64_t>& counter, std::uint64_t by) noexcept {
    if (concurrent_) [[unlikely]]
      counter.fetch_add(by, std::memory_order_relaxed);
    else
      counter.store(counter.load(std::memory_order_relaxed) + by, std::memory_order_relaxed);
  }

  static inline bool concurrent_ = false;
  std::atomic<std::uint64_t> messages_{0};
  std::atomic<std::uint64_t> bytes_{0};
};

struct Counters {
  std::array<std::array<Tally, layout_kinds>, directions> offloaded;
  std::array<std::array<Tally, fallbacks>, directions> fallen_back;

  Tally& of(Direction direction, hca::LayoutKind kind) noexcept {
    return offloaded[static_cast<std::size_t>(direction)][static_cast<std::size_t>(kind)];
  }
  Tally& of(Direction direction, Fallback reason) noexcept {
    return fallen_back[static_cast<std::size_t>(direction)][static_cast<std::size_t>(reason)];
  }
};

extern Counters counters;

/// Makes the counters performance variables of MPI_T, named hook_weft_*.
void register_pvars();

}  // namespace weft::ompi
