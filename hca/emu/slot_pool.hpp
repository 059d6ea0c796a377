// The sender's side of its bulk slots: which are free, and who has the others.
#pragma once

#include <array>
#include <cstdint>

#include "hca/emu/segment.hpp"

namespace weft::hca::emu {

/// Slots [first, first + slots_per_use) of the own segment. Used by one thread at a time.
class SlotPool {
 public:
  static constexpr std::uint32_t none = ~0u;

  void attach(Segment* own, std::uint32_t first) noexcept {
    own_ = own;
    first_ = first;
  }

  /// A free slot, marked busy on behalf of `holder` (an id of a link); `none` when there is none.
  /// The first half is tried before the second: few slots stay in the cache.
  std::uint32_t acquire(std::uint32_t holder) noexcept {
    constexpr std::uint32_t preferred = slots_per_use / 2;
    for (std::uint32_t i = 0; i < preferred; ++i) {
      const std::uint32_t at = (next_ + i) % preferred;
      if (take(at, holder)) {
        next_ = (at + 1) % preferred;
        return first_ + at;
      }
    }
    for (std::uint32_t at = preferred; at < slots_per_use; ++at) {
      if (take(at, holder)) return first_ + at;
    }
    return none;
  }

  /// Takes back a slot that was not handed to a peer.
  void put_back(std::uint32_t slot) noexcept {
    own_->slot(slot).busy.store(0, std::memory_order_relaxed);
  }

  /// Takes back all slots of a peer that died.
  void reclaim(std::uint32_t holder) noexcept {
    for (std::uint32_t at = 0; at < slots_per_use; ++at) {
      if (holder_[at] == holder) own_->slot(first_ + at).busy.store(0, std::memory_order_relaxed);
    }
  }

 private:
  bool take(std::uint32_t at, std::uint32_t holder) noexcept {
    std::atomic<std::uint32_t>& busy = own_->slot(first_ + at).busy;
    // Acquire: the peer's reads of the old content come before our writes.
    if (busy.load(std::memory_order_acquire) != 0) return false;
    busy.store(1, std::memory_order_relaxed);
    holder_[at] = holder;
    return true;
  }

  Segment* own_ = nullptr;
  std::uint32_t first_ = 0;
  std::uint32_t next_ = 0;
  std::array<std::uint32_t, slots_per_use> holder_{};
};

}  // namespace weft::hca::emu
