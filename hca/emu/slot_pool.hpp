// The sender's side of its bulk slots: which are free, and who has the others.
#pragma once

#include <cstdint>
#include <vector>

#include "hca/emu/segment.hpp"

namespace weft::hca::emu {

/// The slots of one class. Used by one thread at a time.
class SlotPool {
 public:
  static constexpr std::uint32_t none = ~0u;

  void attach(Segment* own, const SlotClass& slots) noexcept {
    own_ = own;
    first_ = slots.first;
    count_ = slots.count;
    holder_.assign(count_, 0);
  }

  /// A free slot, marked busy on behalf of `holder` (an id of a link); `none` when it may have
  /// none. Half of the slots go round in the order of their use: peers give them back in that
  /// order, and few slots stay in the cache. The other half is for links that find a slow peer's
  /// slot in their way; none of them gets more than a quarter of it.
  std::uint32_t acquire(std::uint32_t holder) noexcept {
    const std::uint32_t at = next_;
    if (take(at, holder)) {
      advance();
      return first_ + at;
    }
    if (holder_[at] == holder) return none;
    return acquire_reserved(holder);
  }

  /// Takes back a slot that was not handed to a peer; it is the next to be used again.
  void put_back(std::uint32_t slot) noexcept {
    own_->slot(slot).busy.store(0, std::memory_order_relaxed);
    if (slot - first_ < count_ / 2) next_ = slot - first_;
  }

  /// Takes back all slots of a peer that died.
  void reclaim(std::uint32_t holder) noexcept {
    for (std::uint32_t at = 0; at < count_; ++at) {
      if (holder_[at] == holder) own_->slot(first_ + at).busy.store(0, std::memory_order_relaxed);
    }
  }

 private:
  void advance() noexcept { next_ = next_ + 1 == count_ / 2 ? 0 : next_ + 1; }

  [[gnu::noinline]] std::uint32_t acquire_reserved(std::uint32_t holder) noexcept {
    advance();  // past the slow peer's
    std::uint32_t mine = 0;
    std::uint32_t vacant = none;
    for (std::uint32_t at = count_ / 2; at < count_; ++at) {
      if (own_->slot(first_ + at).busy.load(std::memory_order_relaxed) == 0) {
        vacant = at;
      } else if (holder_[at] == holder) {
        ++mine;
      }
    }
    if (vacant == none || mine > count_ / 8 || !take(vacant, holder)) return none;
    return first_ + vacant;
  }

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
  std::uint32_t count_ = 0;
  std::uint32_t next_ = 0;
  std::vector<std::uint32_t> holder_;
};

}  // namespace weft::hca::emu
