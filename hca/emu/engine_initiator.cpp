// The engine as initiator: posting operations, sending their pieces, taking their answers.
#include <algorithm>

#include "hca/emu/engine.hpp"
#include "hca/emu/transfer.hpp"
#include "hca/peer_distance.hpp"

namespace weft::hca::emu {

bool Engine::may_post(Link& link) noexcept {
  const std::uint32_t unacked = link.unacked_.load(std::memory_order_relaxed);
  if (link.fenced_.load(std::memory_order_relaxed)) {
    if (unacked != 0) return false;
    link.fenced_.store(false, std::memory_order_relaxed);
  }
  return unacked < WireLimits::max_unacked;
}

bool Engine::start(Link& link, Operation* op, Operation::Kind kind, const LocalMemory& local,
                   const RemoteMemory& remote, std::uint64_t length) {
  op->kind = kind;
  op->local = local;
  op->length = length;
  op->moved = 0;
  op->remote_addr = remote.addr;
  op->rkey = remote.rkey;
  op->link = &link;
  op->envelope = {};
  op->next = nullptr;
  op->status = WcStatus::success;
  return operations_.enter(op);
}

void Engine::started(Link& link, bool changes_memory) noexcept {
  link.unacked_.fetch_add(1, std::memory_order_relaxed);
  make_busy(link);
  if (changes_memory) link.must_order_.store(true, std::memory_order_relaxed);
}

void Engine::finish(Operation* op, WcStatus status) noexcept {
  operations_.leave(op);
  op->link->unacked_.fetch_sub(1, std::memory_order_release);
  op->status = status;
  op->next = nullptr;
  if (op->in_engine) {
    op->done(op, status);
    return;
  }
  *completed_end_ = op;
  completed_end_ = &op->next;
  completed_flag_.store(true, std::memory_order_release);
}

bool Engine::is_waiting(const Link& link, const Operation* op) noexcept {
  const Operation* at = link.writes_;
  while (at != nullptr && at != op) at = at->next;
  return at != nullptr;
}

namespace {
/// What posting on a dead link comes to: the operation completes at once, with an error.
void refuse(Operation* op) noexcept {
  if (op != nullptr && op->done != nullptr) op->done(op, WcStatus::retry_exc_err);
}
}  // namespace

bool Engine::post_read(Link& link, Operation* op, const LocalMemory& local,
                       const RemoteMemory& remote, std::uint64_t length) {
  std::unique_lock guard(lock());
  if (!link.alive()) {
    guard.unlock();
    refuse(op);
    return true;
  }
  return place_read(link, op, local, remote, length, {});
}

namespace {
std::uint32_t flags_of(const Envelope& envelope) noexcept {
  return (envelope.psn << RequestFlags::psn_shift) |
         (envelope.immediate.present ? RequestFlags::immediate : 0) |
         (envelope.solicited ? RequestFlags::solicited : 0) |
         (envelope.invalidate ? RequestFlags::invalidate : 0);
}
}  // namespace

bool Engine::place_read(Link& link, Operation* op, const LocalMemory& local,
                        const RemoteMemory& remote, std::uint64_t length,
                        const Envelope& envelope) {
  if (link.writes_ != nullptr || !may_post(link)) return false;
  Line* line = link.wire_.reserve(sizeof(ReadLine));
  if (line == nullptr || !start(link, op, Operation::Kind::read, local, remote, length))
    return false;
  write_fields(line, ReadLine{remote.addr, length, op->id, remote.rkey, flags_of(envelope),
                              envelope.qp, is_coarse(local)});
  link.wire_.publish(line, raw(WireOp::read_request), 0, sizeof(ReadLine));
  started(link, false);
  link.ring_if_cold();
  return true;
}

bool Engine::post_write(Link& link, Operation* op, const LocalMemory& local,
                        const RemoteMemory& remote, std::uint64_t length) {
  std::unique_lock guard(lock());
  if (!link.alive()) {
    guard.unlock();
    refuse(op);
    return true;
  }
  return place_write(link, op, local, remote, length, {});
}

bool Engine::place_write(Link& link, Operation* op, const LocalMemory& local,
                         const RemoteMemory& remote, std::uint64_t length,
                         const Envelope& envelope) {
  if (!may_post(link)) return false;
  if (length <= WireLimits::max_write_short && link.writes_ == nullptr) {
    const std::size_t bytes = sizeof(WriteLine) + length;
    Line* line = link.wire_.reserve(bytes);
    if (line == nullptr || !start(link, op, Operation::Kind::write, local, remote, length)) {
      return false;
    }
    write_fields(line, WriteLine{remote.addr, length, op->id, remote.rkey,
                                 static_cast<std::uint32_t>(length), envelope.immediate.data,
                                 flags_of(envelope) | RequestFlags::first | RequestFlags::last, 0,
                                 envelope.qp});
    gather(local, 0, {line->payload + sizeof(WriteLine), length});
    op->moved = length;
    link.wire_.publish(line, raw(WireOp::write_inline), 0, bytes);
    started(link, true);
    link.ring_if_cold();
    return true;
  }
  if (!start(link, op, Operation::Kind::write, local, remote, length)) return false;
  op->envelope = envelope;
  queue_stream(link, op);
  return true;
}

bool Engine::place_send(Link& link, Operation* op, const LocalMemory& local, std::uint64_t length,
                        const Envelope& envelope) {
  if (!may_post(link)) return false;
  if (length <= WireLimits::max_write_short && link.writes_ == nullptr) {
    const std::size_t bytes = sizeof(SendLine) + length;
    Line* line = link.wire_.reserve(bytes);
    if (line == nullptr || !start(link, op, Operation::Kind::send, local, {}, length)) return false;
    write_fields(
        line, SendLine{length, op->id, static_cast<std::uint32_t>(length), envelope.immediate.data,
                       flags_of(envelope) | RequestFlags::first | RequestFlags::last,
                       envelope.source_qp, envelope.qkey, 0, envelope.qp});
    gather(local, 0, {line->payload + sizeof(SendLine), length});
    op->moved = length;
    link.wire_.publish(line, raw(WireOp::send_inline), 0, bytes);
    started(link, true);
    link.ring_if_cold();
    return true;
  }
  if (!start(link, op, Operation::Kind::send, local, {}, length)) return false;
  op->envelope = envelope;
  queue_stream(link, op);
  return true;
}

void Engine::queue_stream(Link& link, Operation* op) {
  *link.writes_end_ = op;
  link.writes_end_ = &op->next;
  waiting_.fetch_add(1, std::memory_order_relaxed);
  started(link, true);
  send_writes(link);
}

bool Engine::post_write_short(Link& link, Operation* op, const void* data, std::uint32_t length,
                              const RemoteMemory& remote) {
  // What it is told to copy is memory of the caller's, read only: the cast serves LocalMemory
  // alone.
  const LocalMemory local{static_cast<std::byte*>(const_cast<void*>(data)), nullptr, 0};
  std::unique_lock guard(lock());
  if (!link.alive()) {
    guard.unlock();
    refuse(op);
    return true;
  }
  if (link.writes_ != nullptr || !may_post(link)) return false;
  const std::size_t bytes = sizeof(WriteLine) + length;
  Line* line = link.wire_.reserve(bytes);
  if (line == nullptr) return false;
  if (op != nullptr) {
    if (!start(link, op, Operation::Kind::write, local, remote, length)) return false;
    op->moved = length;
  } else {
    ++link.uncounted_posted_;
  }
  write_fields(line, WriteLine{remote.addr, length, op != nullptr ? op->id : 0, remote.rkey, length,
                               0, RequestFlags::first | RequestFlags::last, 0, 0});
  if (length != 0) std::memcpy(line->payload + sizeof(WriteLine), data, length);
  link.wire_.publish(line, raw(WireOp::write_inline), 0, bytes);
  started(link, true);
  link.ring_if_cold();
  return true;
}

bool Engine::post_atomic(Link& link, Operation* op, AtomicOp code, std::uint32_t size,
                         const RemoteMemory& remote, std::uint64_t operand, std::uint64_t compare) {
  std::unique_lock guard(lock());
  if (!link.alive()) {
    guard.unlock();
    refuse(op);
    return true;
  }
  return place_atomic(link, op, code, size, remote, operand, compare, {});
}

bool Engine::place_atomic(Link& link, Operation* op, AtomicOp code, std::uint32_t size,
                          const RemoteMemory& remote, std::uint64_t operand, std::uint64_t compare,
                          const Envelope& envelope) {
  if (link.writes_ != nullptr || !may_post(link)) return false;
  Line* line = link.wire_.reserve(sizeof(AtomicLine));
  if (line == nullptr) return false;
  if (op != nullptr) {
    if (!start(link, op, Operation::Kind::atomic, {}, remote, size)) return false;
  } else {
    ++link.uncounted_posted_;
  }
  write_fields(line, AtomicLine{remote.addr, operand, compare, op != nullptr ? op->id : 0,
                                remote.rkey, flags_of(envelope), envelope.qp,
                                static_cast<std::uint8_t>(code), static_cast<std::uint8_t>(size)});
  link.wire_.publish(line, raw(WireOp::atomic), 0, sizeof(AtomicLine));
  started(link, true);
  link.ring_if_cold();
  return true;
}

unsigned Engine::send_writes(Link& link) noexcept {
  unsigned pieces = 0;
  while (Operation* op = link.writes_) {
    const std::uint32_t piece = piece_size(op->length, is_coarse(op->local), largest_piece_);
    // At least one piece: a send of nothing is a message too.
    do {
      if (pieces == pieces_per_pass) return pieces;
      Line* line = link.wire_.reserve(sizeof(WriteLine));
      if (line == nullptr) return pieces;
      const std::uint64_t remaining = op->length - op->moved;
      const auto length = static_cast<std::uint32_t>(std::min<std::uint64_t>(piece, remaining));
      const std::uint32_t slot = acquire_slot(link, length);
      if (slot == SlotPool::none) return pieces;
      gather(op->local, op->moved, {own_.slot(slot).data(), length});
      const Envelope& envelope = op->envelope;
      const std::uint32_t flags = flags_of(envelope) | (op->moved == 0 ? RequestFlags::first : 0) |
                                  (length == remaining ? RequestFlags::last : 0);
      if (op->kind == Operation::Kind::send) {
        write_fields(line, SendLine{remaining, op->id, length, envelope.immediate.data, flags,
                                    envelope.source_qp, envelope.qkey,
                                    static_cast<std::uint16_t>(slot), envelope.qp});
        link.wire_.publish(line, raw(WireOp::send_data), 0, sizeof(SendLine));
      } else {
        write_fields(line, WriteLine{op->remote_addr + op->moved, remaining, op->id, op->rkey,
                                     length, envelope.immediate.data, flags,
                                     static_cast<std::uint16_t>(slot), envelope.qp});
        link.wire_.publish(line, raw(WireOp::write_data), 0, sizeof(WriteLine));
      }
      link.ring_if_cold();
      op->moved += length;
      ++pieces;
    } while (op->moved < op->length);
    link.writes_ = op->next;
    if (link.writes_ == nullptr) link.writes_end_ = &link.writes_;
    op->next = nullptr;
    waiting_.fetch_sub(1, std::memory_order_relaxed);
  }
  return pieces;
}

void Engine::take_read_data(Link& link, const Line* line) noexcept {
  const auto fields = read_fields<DataLine>(line);
  Slot* slot = slot_of(link, fields.slot, fields.length);
  if (slot == nullptr) return;
  Operation* op = operations_.find(fields.op, &link);
  if (op != nullptr && op->kind == Operation::Kind::read &&
      fields.length <= op->length - op->moved) {
    peer_distance().look_at({slot->data(), fields.length});
    scatter(op->local, op->moved, {slot->data(), fields.length});
    op->moved += fields.length;
  } else {
    op = nullptr;
  }
  // Release: our reads of the slot come before its owner fills it again.
  slot->busy.store(0, std::memory_order_release);
  if (op != nullptr && op->moved == op->length) finish(op, WcStatus::success);
}

void Engine::take_read_inline(Link& link, const Line* line, std::size_t length) noexcept {
  const auto fields = read_fields<AnswerLine>(line);
  Operation* op = operations_.find(fields.op, &link);
  if (op == nullptr || op->kind != Operation::Kind::read || fields.length != op->length ||
      op->moved != 0 || sizeof(AnswerLine) + fields.length > length) {
    return;
  }
  scatter(op->local, 0, {line->payload + sizeof(AnswerLine), fields.length});
  op->moved = op->length;
  finish(op, WcStatus::success);
}

void Engine::take_ack(Link& link, const Line* line) noexcept {
  const auto fields = read_fields<AckLine>(line);
  Operation* op = operations_.find(fields.op, &link);
  if (op == nullptr || fields.status > static_cast<std::uint8_t>(WcStatus::rnr_retry_exc_err))
    return;
  const auto status = static_cast<WcStatus>(fields.status);
  if (op->kind == Operation::Kind::write || op->kind == Operation::Kind::send) {
    // Acknowledged after its last piece; an earlier acknowledgement is from no peer of ours.
    if (op->moved != op->length || is_waiting(link, op)) return;
  } else if (status == WcStatus::success) {
    return;
  }
  op->rnr_timer = fields.rnr_timer;
  finish(op, status);
}

}  // namespace weft::hca::emu
