// Windows: addresses with nothing behind them that stand for (buffer, layout) inside UCX.
//
// The arena is one range of addresses that nobody can touch, cut into slots of 4 GiB. A window is a
// slot: its first address stands for byte 0 of the packed stream. Power-of-two slots make the
// look-up of an address a subtraction and a shift, and the whole arena, entered once, takes one
// entry in UCX's memory type cache.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>

#include "hca/layout.hpp"

namespace weft::ucx {

/// What a window's address stands for: `offset` bytes into the packed stream of `layout` at `base`.
struct Resolved {
  std::byte* base = nullptr;
  const hca::Layout* layout = nullptr;
  std::uint64_t offset = 0;
  explicit operator bool() const noexcept { return layout != nullptr; }
};

class WindowArena {
 public:
  static constexpr unsigned slot_shift = 32;
  static constexpr std::uint64_t slot_size = std::uint64_t{1} << slot_shift;
  /// The packed size is less than a slot, so that an end address still lies in its window, and fits
  /// the 32-bit lengths of UCT's short operations.
  static constexpr std::uint64_t max_window = slot_size - 1;
  static constexpr std::uint32_t max_slots = 4096;

  constexpr WindowArena() noexcept = default;
  ~WindowArena();
  WindowArena(const WindowArena&) = delete;
  WindowArena& operator=(const WindowArena&) = delete;

  /// Reserves the addresses; fewer slots when the system allows no more. False when it allows none.
  /// Called again it does nothing. Not thread-safe.
  bool open(std::uint32_t slots = max_slots) noexcept;
  /// Enters the arena in UCX's memory type cache (once).
  void announce() noexcept;

  [[nodiscard]] bool is_open() const noexcept { return length_ != 0; }
  [[nodiscard]] std::uint32_t slots() const noexcept { return slot_count_; }
  [[nodiscard]] void* address() const noexcept { return reinterpret_cast<void*>(start_); }
  [[nodiscard]] std::uint64_t length() const noexcept { return length_; }

  // The rest is thread-safe once the arena is open.

  /// Null when no slot is free or the layout is larger than a window.
  void* bind(void* buffer, const hca::Layout& layout) noexcept;
  void release(void* window) noexcept;

  [[nodiscard]] bool contains(const void* address) const noexcept {
    return reinterpret_cast<std::uintptr_t>(address) - start_ < length_;
  }
  /// Empty for an address that is not of a bound window.
  [[nodiscard]] Resolved resolve(const void* address) const noexcept {
    const std::uint64_t distance = reinterpret_cast<std::uintptr_t>(address) - start_;
    if (distance >= length_) return {};
    const Slot& slot = slots_[distance >> slot_shift];
    return {slot.base, slot.layout, distance & (slot_size - 1)};
  }
  /// First address of the window that `address` lies in.
  [[nodiscard]] void* window_of(const void* address) const noexcept {
    const std::uint64_t distance = reinterpret_cast<std::uintptr_t>(address) - start_;
    return reinterpret_cast<void*>(start_ + (distance & ~(slot_size - 1)));
  }

 private:
  struct Slot {
    std::byte* base = nullptr;
    const hca::Layout* layout = nullptr;
    std::atomic<std::uint32_t> next{0};  ///< in the free list: number of the slot below, plus one
  };

  std::uintptr_t start_ = 0;
  std::uint64_t length_ = 0;
  std::uint32_t slot_count_ = 0;
  bool announced_ = false;
  std::unique_ptr<Slot[]> slots_;
  /// Top of the free list, a stack so that few slots stay warm: slot number plus one in the low
  /// half, a count of changes in the high half so that a stale compare-and-swap fails.
  alignas(64) std::atomic<std::uint64_t> free_{0};
};

namespace detail {
/// Never destroyed: UCX may ask after static destructors ran.
union Immortal {
  WindowArena arena;
  constexpr Immortal() noexcept : arena() {}
  ~Immortal() {}  // NOLINT(modernize-use-equals-default): that would be deleted
};
extern Immortal process_arena;
}  // namespace detail

/// The process's arena.
inline WindowArena& windows() noexcept {
  return detail::process_arena.arena;
}

}  // namespace weft::ucx
