#include "hca/emu/link.hpp"

#include <algorithm>
#include <mutex>
#include <utility>

#include "hca/emu/context.hpp"
#include "hca/emu/membarrier.hpp"
#include "hca/emu/process_id.hpp"

namespace weft::hca::emu {

Link::Link(Context& context, std::uint32_t id, const Address& peer, Segment segment,
           std::uint32_t port)
    : context_(context),
      peer_(peer),
      id_(id),
      port_index_(port),
      segment_(std::move(segment)),
      header_(&segment_.header()),
      must_fence_(!membarrier_reaches_us()),
      port_(&segment_.port(port)) {
  messages_.attach(&port_->messages);
  wire_.attach(&port_->wire);
}

Link::~Link() {
  // The reader frees the port once it has read everything.
  port_->state.store(Port::closed, std::memory_order_release);
  header_->port_changes.fetch_add(1, std::memory_order_seq_cst);
}

bool Link::am_long(std::uint8_t id, std::uint64_t header, const void* payload,
                   std::uint32_t length) noexcept {
  constexpr std::uint32_t stream = 64;
  if (through_slots_ == 0) {
    if (am_in_ring(id, header, payload, length)) return true;
    through_slots_ = stream;
  }
  std::byte* room = am_reserve(sizeof header + length);
  if (room == nullptr) return false;
  --through_slots_;
  std::memcpy(room, &header, sizeof header);
  std::memcpy(room + sizeof header, payload, length);
  am_commit(id, sizeof header + length);
  return true;
}

std::byte* Link::am_reserve(std::size_t max) noexcept {
  if (must_order_.load(std::memory_order_relaxed) && !order()) return nullptr;
  // The line is reserved first, so that commit cannot fail. The message may turn out small enough
  // to ride in the ring: room for the longest that does.
  const std::size_t line = std::max(sizeof(BulkLine), std::min(max, WireLimits::max_inline_bcopy));
  if (messages_.reserve(line) == nullptr) return nullptr;
  reserved_ = context_.am_slots_.acquire(id_);
  if (reserved_ == SlotPool::none) return nullptr;
  return context_.segment_.slot(reserved_).data();
}

void Link::am_commit(std::uint8_t id, std::size_t length) noexcept {
  if (length <= WireLimits::max_inline_bcopy) {
    Line* line = messages_.reserve(length);
    std::memcpy(line->payload, context_.segment_.slot(reserved_).data(), length);
    context_.am_slots_.put_back(reserved_);
    messages_.publish(line, static_cast<std::uint8_t>(MessageOp::inlined), id, length);
  } else {
    Line* line = messages_.reserve(sizeof(BulkLine));
    write_fields(line, BulkLine{reserved_, static_cast<std::uint32_t>(length)});
    messages_.publish(line, static_cast<std::uint8_t>(MessageOp::bulk), id, sizeof(BulkLine));
  }
  reserved_ = SlotPool::none;
  ring_if_cold();
}

void Link::am_abandon() noexcept {
  context_.am_slots_.put_back(reserved_);
  reserved_ = SlotPool::none;
}

bool Link::read(Operation* op, const LocalMemory& local, const RemoteMemory& remote,
                std::uint64_t length) {
  const bool posted = context_.engine_.post_read(*this, op, local, remote, length);
  if (posted && context_.eager_helper_) wake_helpers();
  return posted;
}

bool Link::write(Operation* op, const LocalMemory& local, const RemoteMemory& remote,
                 std::uint64_t length) {
  const bool posted = context_.engine_.post_write(*this, op, local, remote, length);
  if (posted && context_.eager_helper_ && length > WireLimits::max_write_short) {
    wake_helpers();
  }
  return posted;
}

void Link::wake_helpers() noexcept {
  Helper::ring(context_.segment_.header());
  Helper::wake(*header_);
}

bool Link::write_short(Operation* op, const void* data, std::uint32_t length,
                       const RemoteMemory& remote) {
  return context_.engine_.post_write_short(*this, op, data, length, remote);
}

bool Link::atomic(Operation* op, AtomicOp code, std::uint32_t size, const RemoteMemory& remote,
                  std::uint64_t operand, std::uint64_t compare) {
  return context_.engine_.post_atomic(*this, op, code, size, remote, operand, compare);
}

bool Link::check_alive() const noexcept {
  const std::uint64_t start = start_time_of(peer_.pid);
  return start != 0 && start == peer_.start_time;
}

void Link::ring_bell() noexcept {
  // Release: who clears the bit then sees the line.
  header_->bells[port_index_ / 64].fetch_or(std::uint64_t{1} << (port_index_ % 64),
                                            std::memory_order_release);
}

void Link::wake_sleeper() noexcept {
  // Either the owner, arming itself, sees what was posted, or this sees that it is armed.
  if (must_fence_) std::atomic_thread_fence(std::memory_order_seq_cst);
  if (header_->armed.load(std::memory_order_relaxed) != 0) Helper::ring(*header_);
}

bool Link::order() noexcept {
  SpinLock& lock = context_.engine_.lock();
  if (!lock.try_lock()) return false;
  const bool all_sent = writes_ == nullptr;
  Line* line = all_sent ? messages_.reserve(sizeof(OrderLine)) : nullptr;
  if (line != nullptr) {
    write_fields(line, OrderLine{wire_.tail()});
    messages_.publish(line, static_cast<std::uint8_t>(MessageOp::order), 0, sizeof(OrderLine));
    must_order_.store(false, std::memory_order_relaxed);
  }
  lock.unlock();
  return line != nullptr;
}

}  // namespace weft::hca::emu
