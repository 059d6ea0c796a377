// Link: the wire between two contexts. It has a port in the peer's segment to write to and, once
// the peer has connected as well, a port in the own segment to read from.
//
// The calls that send return false (or null) when there is no room: call Context::progress() and
// try again; nothing was posted then. What one link carries arrives in order: a message comes after
// every write posted before it.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <deque>

#include "hca/emu/operation.hpp"
#include "hca/emu/segment.hpp"
#include "hca/emu/slot_pool.hpp"
#include "hca/emu/wire.hpp"

namespace weft::hca::emu {

class Context;
class Engine;
class ReceiveEnd;

/// Limits that callers plan with, in bytes.
struct WireLimits {
  static constexpr std::size_t max_short = 4096 + 64;  ///< am_short, its header of 8 included
  static constexpr std::size_t max_bcopy = message_slots.data;  ///< am_reserve
  /// What UCX is told of am_zcopy: the pieces of windows that are slow to move
  /// (ucx-tl/window_memory_type.cpp).
  static constexpr std::size_t max_zcopy = 2048 + 64;
  /// Longer short messages ride in the ring when they come one by one, which takes a cache miss
  /// less on either side, and through slots when they come in streams, which would fill it.
  static constexpr std::size_t max_ring_short = 2048 + 64;
  static constexpr std::size_t max_inline_bcopy = 512;  ///< up to here a message rides in the ring
  static constexpr std::size_t max_write_short = 512;   ///< write_short
  static constexpr std::uint32_t max_unacked = 128;     ///< operations under way on one link
};

/// A read that a peer asked for and this process serves piece by piece.
struct ServedRead {
  std::uint64_t addr;
  std::uint64_t length;
  std::uint64_t sent;
  std::uint32_t op;
  std::uint32_t rkey;
  std::uint32_t piece;  ///< size of the pieces it goes in
};

/// An answer that found the ring full.
struct WaitingAnswer {
  WireOp op;
  std::uint8_t length;
  std::byte payload[max_line_payload];
};

class Link {
 public:
  Link(Context& context, std::uint32_t id, const Address& peer, Segment segment,
       std::uint32_t port);
  ~Link();
  Link(const Link&) = delete;
  Link& operator=(const Link&) = delete;

  [[nodiscard]] const Address& peer() const noexcept { return peer_; }

  // Active messages. One thread at a time, the one that calls Context::progress().

  /// Sends 8 + length bytes, at most WireLimits::max_short in all.
  bool am_short(std::uint8_t id, std::uint64_t header, const void* payload,
                std::uint32_t length) noexcept {
    if (must_order_.load(std::memory_order_relaxed)) [[unlikely]] {
      if (!order()) return false;
    }
    if (sizeof header + length > WireLimits::max_ring_short) [[unlikely]]
      return am_long(id, header, payload, length);
    return am_in_ring(id, header, payload, length);
  }

  /// Room for a message of up to `max` <= WireLimits::max_bcopy bytes; null when there is none.
  /// Fill it, then commit; nothing else may be sent on the link in between.
  std::byte* am_reserve(std::size_t max) noexcept;
  void am_commit(std::uint8_t id, std::size_t length) noexcept;
  /// Gives the room back unsent.
  void am_abandon() noexcept;

  // RDMA and atomics. Any thread. The local memory was checked by the caller against its lkey.

  bool read(Operation* op, const LocalMemory& local, const RemoteMemory& remote,
            std::uint64_t length);
  bool write(Operation* op, const LocalMemory& local, const RemoteMemory& remote,
             std::uint64_t length);
  /// RDMA WRITE of at most WireLimits::max_write_short bytes, copied before return; `op` may be
  /// null.
  bool write_short(Operation* op, const void* data, std::uint32_t length,
                   const RemoteMemory& remote);
  /// On 4 or 8 naturally aligned bytes; `op` may be null when nobody wants the old value.
  bool atomic(Operation* op, AtomicOp code, std::uint32_t size, const RemoteMemory& remote,
              std::uint64_t operand, std::uint64_t compare);

  /// Operations posted and not yet acknowledged by the peer.
  [[nodiscard]] std::uint32_t outstanding() const noexcept {
    return unacked_.load(std::memory_order_acquire);
  }
  /// Whatever is posted later waits until all that was posted before is acknowledged.
  void fence() noexcept { fenced_.store(outstanding() != 0, std::memory_order_relaxed); }
  /// True while a fence holds back what is posted next.
  [[nodiscard]] bool is_fenced() const noexcept {
    return fenced_.load(std::memory_order_relaxed) && outstanding() != 0;
  }
  /// False once the peer is known to be gone; its operations have completed with retry_exc_err.
  [[nodiscard]] bool alive() const noexcept { return alive_.load(std::memory_order_relaxed); }
  /// Looks whether the peer's process still exists (reads /proc).
  [[nodiscard]] bool check_alive() const noexcept;

 private:
  friend class Context;
  friend class Engine;

  /// The peer does not poll this port's rings: set its bit.
  void ring_if_cold() noexcept {
    if (port_->cold.load(std::memory_order_relaxed) != 0) [[unlikely]] {
      ring_bell();
    }
    // The line before this look, and the sleeper's mark before its look at the rings: the sleeper's
    // membarrier orders both sides (Context::arm), so that this side costs a load.
    std::atomic_signal_fence(std::memory_order_seq_cst);
    if (must_fence_ || header_->armed.load(std::memory_order_relaxed) != 0) [[unlikely]] {
      wake_sleeper();
    }
  }
  bool am_in_ring(std::uint8_t id, std::uint64_t header, const void* payload,
                  std::uint32_t length) noexcept {
    Line* line = messages_.reserve(sizeof header + length);
    if (line == nullptr) [[unlikely]] {
      return false;
    }
    std::memcpy(line->payload, &header, sizeof header);
    if (length != 0) std::memcpy(line->payload + sizeof header, payload, length);
    messages_.publish(line, static_cast<std::uint8_t>(MessageOp::inlined), id,
                      sizeof header + length);
    ring_if_cold();
    return true;
  }
  bool am_long(std::uint8_t id, std::uint64_t header, const void* payload,
               std::uint32_t length) noexcept;
  void ring_bell() noexcept;
  void wake_sleeper() noexcept;
  /// The one here and the one there: the transfer goes on while neither process attends.
  void wake_helpers() noexcept;
  bool order() noexcept;

  Context& context_;
  const Address peer_;
  const std::uint32_t id_;  ///< never used twice in a context
  const std::uint32_t port_index_;
  Segment segment_;  ///< the peer's
  SegmentHeader* const header_;
  const bool must_fence_;  ///< no membarrier reaches this process
  Port* const port_;       ///< in the peer's segment, written by this process

  // Of the message thread.
  Producer<MessageRing::lines> messages_;
  Consumer<MessageRing::lines> incoming_;
  std::uint32_t reserved_ = SlotPool::none;
  std::uint32_t through_slots_ =
      0;                    ///< long messages that go through slots before the ring is tried
  std::uint32_t idle_ = 0;  ///< polls since the last message, until it counts as cold
  bool hot_ = false;

  // Shared by both threads.
  std::atomic<bool> must_order_{false};  ///< writes were posted since the last message
  std::atomic<bool> fenced_{false};
  std::atomic<bool> alive_{true};
  std::atomic<std::uint32_t> unacked_{0};
  Consumer<WireRing::lines> incoming_wire_;

  // Of whoever holds the engine's lock.
  Port* own_port_ = nullptr;  ///< in the own segment, written by the peer
  std::uint32_t own_port_index_ = 0;
  Producer<WireRing::lines> wire_;
  Operation* writes_ = nullptr;  ///< being sent, in order
  Operation** writes_end_ = &writes_;
  std::deque<ServedRead> reads_;
  std::deque<WaitingAnswer> answers_;
  std::uint32_t uncounted_ = 0;         ///< acknowledgements owed for operations without an id
  std::uint32_t uncounted_posted_ = 0;  ///< own operations without an id, not yet acknowledged
  ReceiveEnd* receiving_ = nullptr;     ///< of the incoming send under way
  std::uint64_t send_left_ = 0;
  WcStatus send_status_ = WcStatus::success;
  std::uint64_t write_length_ = 0;             ///< of the incoming write under way
  WcStatus write_status_ = WcStatus::success;  ///< likewise
  std::uint64_t attended_seen_ = 0;
  bool busy_ = false;  ///< among the engine's busy links
};

}  // namespace weft::hca::emu
