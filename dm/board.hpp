// Board: what the collectives of one group of processes run on. Every member has a few entries, a
// line each with a counter and a small payload, written by it alone and read by the others.
//
// Operations are numbered, and every member goes through the same ones in the same order. Operation
// k uses entry k mod `depth`. A member *arrives* by storing k in its entry, behind the payload it
// contributes. An entry that held a payload is written again only when all members have arrived at
// the operation after the one it was for: then all have read it. So there is no trailing
// synchronisation, and no member is more than `depth` operations ahead.
#pragma once

#include <algorithm>
#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>

#include "hca/emu/device_file.hpp"

namespace weft::dm {

class Board {
 public:
  static constexpr unsigned depth = 4;
  static constexpr std::size_t line = hca::emu::dm_unit;
  /// Payloads of up to this many bytes ride in the line of the counter.
  static constexpr std::size_t inlined = line - sizeof(std::uint64_t);

  /// Device memory for `members` with payloads of up to `bulk` bytes (`inlined` at least).
  static constexpr std::size_t bytes(unsigned members, std::size_t bulk) noexcept {
    return sizeof(Head) + members * (line + depth * stride(bulk));
  }
  /// The largest payload for which `members` need no more than `most` bytes; 0: not even a small
  /// one.
  static constexpr std::size_t bulk_within(unsigned members, std::size_t most) noexcept {
    if (bytes(members, inlined) > most) return 0;
    const std::size_t each = ((most - sizeof(Head)) / members - line) / depth / line * line;
    return each > line ? each - line : inlined;
  }

  /// Over memory of bytes(members, bulk) that was zero when the first member came.
  Board(std::byte* memory, unsigned members, unsigned self, std::size_t bulk) noexcept
      : head_(reinterpret_cast<Head*>(memory)),
        started_(reinterpret_cast<Line*>(memory + sizeof(Head))),
        entries_(memory + sizeof(Head) + members * line),
        stride_(stride(bulk)),
        bulk_(bulk),
        members_(members),
        self_(self) {}

  [[nodiscard]] std::size_t max_payload() const noexcept { return bulk_; }
  [[nodiscard]] unsigned members() const noexcept { return members_; }

  // `wait` is called as wait(condition) and returns once condition() is true; what it does in
  // between is the caller's (dm::BackOff, or MPI's progress).

  /// Begins the next operation and arrives at it, contributing nothing. Returns its number.
  template <class Wait>
  std::uint64_t arrive(Wait&& wait) noexcept {
    return arrive_with(0, wait, [](std::byte*) {});
  }

  /// Begins the next operation; `fill(to)` writes `length` <= max_payload() bytes; arrives.
  template <class Wait, class Fill>
  std::uint64_t arrive_with(std::size_t length, Wait&& wait, Fill&& fill) noexcept {
    const std::uint64_t k = ++operation_;
    std::byte* mine = entry(self_, k);
    std::uint64_t& held = payload_of_[k % depth];
    if (held != 0) wait_for_all(held + 1, wait);
    held = length != 0 ? k : 0;
    if (length != 0) fill(payload_at(mine, length));
    counter(mine).store(k, std::memory_order_release);
    return k;
  }

  /// Waits until `member` has arrived at operation `k`, this member's latest, and returns what it
  /// contributed: `length` bytes, valid until this member arrives at the next operation.
  template <class Wait>
  const std::byte* payload(unsigned member, std::uint64_t k, std::size_t length,
                           Wait&& wait) const noexcept {
    std::byte* theirs = entry(member, k);
    wait([&] { return counter(theirs).load(std::memory_order_acquire) >= k; });
    return payload_at(theirs, length);
  }

  /// Waits until all members have arrived at operation `k`.
  template <class Wait>
  void wait_for_all(std::uint64_t k, Wait&& wait) noexcept {
    if (all_at_ >= k) return;
    for (unsigned i = 1; i < members_; ++i) {
      // From the next one on, so that not all look at the same line.
      const unsigned member = self_ + i < members_ ? self_ + i : self_ + i - members_;
      const std::atomic<std::uint64_t>& theirs = counter(entry(member, k));
      wait([&] { return theirs.load(std::memory_order_acquire) >= k; });
    }
    all_at_ = k;
  }

  /// A barrier. Up to `few` members read each other's lines; more of them add to one counter, whose
  /// last opens the gate for all.
  template <class Wait>
  void barrier(Wait&& wait) noexcept {
    if (members_ <= few) {
      wait_for_all(arrive(wait), wait);
      return;
    }
    const std::uint64_t k = ++operation_;
    // No line of this operation is written: whoever waits for an entry of before waits for others.
    const std::uint64_t round = ++round_;
    if (head_->arrived.fetch_add(1, std::memory_order_acq_rel) + 1 == round * members_) {
      head_->round.store(round, std::memory_order_release);
    } else {
      wait([&] { return head_->round.load(std::memory_order_acquire) >= round; });
    }
    all_at_ = k;
  }

  /// Begins a barrier and returns its number, without waiting for anybody: non-blocking barriers
  /// have counters of their own, since no payload of an earlier operation may hold them up.
  std::uint64_t start_barrier() noexcept {
    started_[self_].counter.store(++barriers_, std::memory_order_release);
    return barriers_;
  }
  /// True when all members have begun that barrier. `next` (0 at first) is where to go on looking.
  [[nodiscard]] bool barrier_done(std::uint64_t barrier, unsigned& next) const noexcept {
    while (next < members_ && started_[next].counter.load(std::memory_order_acquire) >= barrier) {
      ++next;
    }
    return next == members_;
  }

  /// Leaves for good: true for the last member, who frees the memory. Nothing may be called after.
  bool leave() noexcept {
    return head_->left.fetch_add(1, std::memory_order_acq_rel) + 1 == members_;
  }

 private:
  static constexpr unsigned few = 8;

  struct alignas(line) Line {
    std::atomic<std::uint64_t> counter;
  };
  struct Head {
    alignas(line) std::atomic<std::uint64_t> arrived;
    alignas(line) std::atomic<std::uint64_t> round;
    alignas(line) std::atomic<std::uint64_t> left;
  };

  static constexpr std::size_t stride(std::size_t bulk) noexcept {
    return line + (bulk > inlined ? (bulk + line - 1) / line * line : 0);
  }
  [[nodiscard]] std::byte* entry(unsigned member, std::uint64_t k) const noexcept {
    return entries_ + (std::size_t{member} * depth + k % depth) * stride_;
  }
  static std::atomic<std::uint64_t>& counter(std::byte* entry) noexcept {
    return *reinterpret_cast<std::atomic<std::uint64_t>*>(entry);
  }
  static std::byte* payload_at(std::byte* entry, std::size_t length) noexcept {
    return entry + (length <= inlined ? sizeof(std::uint64_t) : line);
  }

  Head* head_;
  Line* started_;
  std::byte* entries_;
  std::size_t stride_;
  std::size_t bulk_;
  unsigned members_;
  unsigned self_;
  std::uint64_t operation_ = 0;
  std::uint64_t round_ = 0;
  std::uint64_t barriers_ = 0;
  std::uint64_t all_at_ = 0;  ///< an operation that all members are known to have arrived at
  std::array<std::uint64_t, depth> payload_of_{};  ///< per entry: the operation it holds one of
};

}  // namespace weft::dm
