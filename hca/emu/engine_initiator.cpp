// The engine as initiator: posting operations, sending their pieces, taking their answers.
#include <algorithm>

#include "hca/emu/engine.hpp"
#include "hca/emu/transfer.hpp"

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
  op->next = nullptr;
  op->status = WcStatus::success;
  return operations_.enter(op);
}

void Engine::started(Link& link, bool changes_memory) noexcept {
  link.unacked_.fetch_add(1, std::memory_order_relaxed);
  if (changes_memory) link.must_order_.store(true, std::memory_order_relaxed);
}

void Engine::finish(Operation* op, WcStatus status) noexcept {
  operations_.leave(op);
  op->link->unacked_.fetch_sub(1, std::memory_order_release);
  op->status = status;
  op->next = nullptr;
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
  if (link.writes_ != nullptr || !may_post(link)) return false;
  Line* line = link.wire_.reserve(sizeof(ReadLine));
  if (line == nullptr || !start(link, op, Operation::Kind::read, local, remote, length))
    return false;
  write_fields(line, ReadLine{remote.addr, length, op->id, remote.rkey, is_coarse(local)});
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
  if (!may_post(link)) return false;
  if (length <= WireLimits::max_write_short && link.writes_ == nullptr) {
    const std::size_t bytes = sizeof(WriteLine) + length;
    Line* line = link.wire_.reserve(bytes);
    if (line == nullptr || !start(link, op, Operation::Kind::write, local, remote, length)) {
      return false;
    }
    write_fields(line, WriteLine{remote.addr, length, op->id, remote.rkey, 0,
                                 static_cast<std::uint32_t>(length), 1, 1});
    gather(local, 0, {line->payload + sizeof(WriteLine), length});
    op->moved = length;
    link.wire_.publish(line, raw(WireOp::write_inline), 0, bytes);
    started(link, true);
    link.ring_if_cold();
    return true;
  }
  if (!start(link, op, Operation::Kind::write, local, remote, length)) return false;
  return queue_stream(link, op);
}

bool Engine::post_send(Link& link, Operation* op, const LocalMemory& local, std::uint64_t length,
                       std::uint32_t qp, Immediate immediate) {
  std::unique_lock guard(lock());
  if (!link.alive()) {
    guard.unlock();
    refuse(op);
    return true;
  }
  if (!may_post(link) || !start(link, op, Operation::Kind::send, local, {}, length)) return false;
  op->qp = qp;
  op->immediate = immediate;
  return queue_stream(link, op);
}

bool Engine::queue_stream(Link& link, Operation* op) {
  *link.writes_end_ = op;
  link.writes_end_ = &op->next;
  waiting_.fetch_add(1, std::memory_order_relaxed);
  started(link, true);
  send_writes(link);
  return true;
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
  write_fields(line, WriteLine{remote.addr, length, op != nullptr ? op->id : 0, remote.rkey, 0,
                               length, 1, 1});
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
  if (link.writes_ != nullptr || !may_post(link)) return false;
  Line* line = link.wire_.reserve(sizeof(AtomicLine));
  if (line == nullptr) return false;
  if (op != nullptr) {
    if (!start(link, op, Operation::Kind::atomic, {}, remote, size)) return false;
  } else {
    ++link.uncounted_posted_;
  }
  write_fields(line,
               AtomicLine{remote.addr, operand, compare, op != nullptr ? op->id : 0, remote.rkey,
                          static_cast<std::uint8_t>(code), static_cast<std::uint8_t>(size)});
  link.wire_.publish(line, raw(WireOp::atomic), 0, sizeof(AtomicLine));
  started(link, true);
  link.ring_if_cold();
  return true;
}

unsigned Engine::send_writes(Link& link) noexcept {
  unsigned pieces = 0;
  while (Operation* op = link.writes_) {
    const std::uint32_t piece = piece_size(op->length, is_coarse(op->local));
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
      if (op->kind == Operation::Kind::send) {
        write_fields(line, SendLine{remaining, op->id, op->qp, slot, length, op->immediate.data,
                                    op->moved == 0, length == remaining, op->immediate.present});
        link.wire_.publish(line, raw(WireOp::send_data), 0, sizeof(SendLine));
      } else {
        write_fields(line, WriteLine{op->remote_addr + op->moved, remaining, op->id, op->rkey, slot,
                                     length, op->moved == 0, length == remaining});
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
  finish(op, status);
}

}  // namespace weft::hca::emu
