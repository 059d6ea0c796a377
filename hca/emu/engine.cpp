#include "hca/emu/engine.hpp"

#include <algorithm>
#include <utility>

#include "hca/emu/atomics.hpp"
#include "hca/emu/transfer.hpp"

namespace weft::hca::emu {

namespace {

/// Lines taken from, and pieces sent to, one link in one pass: others wait no longer than that.
constexpr unsigned lines_per_pass = 32;
constexpr unsigned pieces_per_pass = 4;
/// Answers waiting for room beyond which a peer breaks the rules (it may have max_unacked under
/// way).
constexpr std::size_t answers_kept = 4 * WireLimits::max_unacked;

/// QP numbers 0 and 1 are the special QPs of the specification.
constexpr std::uint32_t first_qp = 2;
constexpr std::uint32_t max_qps = 16384;

constexpr std::uint8_t raw(WireOp op) noexcept {
  return static_cast<std::uint8_t>(op);
}

}  // namespace

Engine::Engine(std::shared_ptr<Domain> domain, Segment& own)
    : domain_(std::move(domain)), own_(own) {
  small_slots_.attach(&own_, small_wire_slots);
  large_slots_.attach(&own_, large_wire_slots);
  const std::scoped_lock guard(lock());
  domain_->engines_.push_back(this);
}

Engine::~Engine() {
  const std::scoped_lock guard(lock());
  std::erase(domain_->engines_, this);
}

void Engine::add_link(Link* link) {
  links_.push_back(link);
}

void Engine::remove_link(Link* link) noexcept {
  std::erase(links_, link);
}

unsigned Engine::try_advance() noexcept {
  if (!lock().try_lock()) return 0;
  const unsigned moved = advance();
  lock().unlock();
  return moved;
}

unsigned Engine::advance() noexcept {
  unsigned moved = 0;
  for (Link* link : links_) {
    if (link->own_port_ != nullptr) moved += take_lines(*link);
    if (!link->answers_.empty()) send_answers(*link);
    if (!link->reads_.empty()) moved += send_read_data(*link);
    if (link->writes_ != nullptr) moved += send_writes(*link);
  }
  return moved;
}

unsigned Engine::complete() noexcept {
  lock().lock();
  Operation* op = std::exchange(completed_, nullptr);
  completed_end_ = &completed_;
  completed_flag_.store(false, std::memory_order_relaxed);
  lock().unlock();
  unsigned count = 0;
  while (op != nullptr) {
    Operation* const next = std::exchange(op->next, nullptr);
    op->done(op, op->status);
    op = next;
    ++count;
  }
  return count;
}

void Engine::drop_key(std::uint32_t key) noexcept {
  if (waiting() == 0) return;
  for (Link* link : links_) {
    for (auto read = link->reads_.begin(); read != link->reads_.end();) {
      if (read->rkey != key) {
        ++read;
        continue;
      }
      acknowledge(*link, read->op, WcStatus::rem_access_err);
      read = link->reads_.erase(read);
      waiting_.fetch_sub(1, std::memory_order_relaxed);
    }
  }
}

void Engine::fail_link(Link& link) noexcept {
  link.alive_.store(false, std::memory_order_relaxed);
  std::uint32_t dropped = static_cast<std::uint32_t>(link.reads_.size() + link.answers_.size());
  for (Operation* op = link.writes_; op != nullptr; op = op->next) ++dropped;
  waiting_.fetch_sub(dropped, std::memory_order_relaxed);
  link.reads_.clear();
  link.answers_.clear();
  link.writes_ = nullptr;
  link.writes_end_ = &link.writes_;
  operations_.each_of(&link, [this](Operation* op) { finish(op, WcStatus::retry_exc_err); });
  link.uncounted_posted_ = 0;
  link.unacked_.store(0, std::memory_order_release);
  small_slots_.reclaim(link.id_);
  large_slots_.reclaim(link.id_);
}

Slot* Engine::slot_of(const Link& link, std::uint32_t slot, std::uint32_t length) noexcept {
  if (slot < small_wire_slots.first || slot >= slot_count) return nullptr;
  const SlotClass& kind = slot < large_wire_slots.first ? small_wire_slots : large_wire_slots;
  return length <= kind.data ? &link.segment_.slot(slot) : nullptr;
}

std::uint32_t Engine::acquire_slot(const Link& link, std::uint32_t length) noexcept {
  return length <= small_wire_slots.data ? small_slots_.acquire(link.id_)
                                         : large_slots_.acquire(link.id_);
}

// ---- as initiator ------------------------------------------------------------------------------

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
  write_fields(line, ReadLine{remote.addr, length, op->id, remote.rkey});
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
  std::memcpy(line->payload + sizeof(WriteLine), data, length);
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
    const std::uint32_t piece = piece_size(op->length);
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

// ---- as responder ------------------------------------------------------------------------------

unsigned Engine::take_lines(Link& link) noexcept {
  unsigned taken = 0;
  while (taken < lines_per_pass) {
    Line* line = link.incoming_wire_.peek();
    if (line == nullptr) break;
    const std::size_t length = link.incoming_wire_.length(line);
    take_line(link, line, length);
    link.incoming_wire_.consume(line, length);
    ++taken;
  }
  if (taken == 0) return 0;
  link.incoming_wire_.give_back();
  if (link.uncounted_ != 0) {
    answer(link, WireOp::ack_count, AckCountLine{std::exchange(link.uncounted_, 0)});
  }
  return taken;
}

void Engine::take_line(Link& link, Line* line, std::size_t length) noexcept {
  switch (static_cast<WireOp>(line->header.op)) {
    case WireOp::pad:
      break;
    case WireOp::write_inline:
      serve_write_inline(link, line, length);
      break;
    case WireOp::write_data:
      serve_write_data(link, line);
      break;
    case WireOp::send_data:
      serve_send_data(link, line);
      break;
    case WireOp::read_request:
      serve_read_request(link, line);
      break;
    case WireOp::atomic:
      serve_atomic(link, line);
      break;
    case WireOp::ack:
      take_ack(link, line);
      break;
    case WireOp::ack_count: {
      const std::uint32_t count =
          std::min(read_fields<AckCountLine>(line).count, link.uncounted_posted_);
      link.uncounted_posted_ -= count;
      link.unacked_.fetch_sub(count, std::memory_order_release);
      break;
    }
    case WireOp::read_inline:
      take_read_inline(link, line, length);
      break;
    case WireOp::read_data:
      take_read_data(link, line);
      break;
    case WireOp::atomic_answer: {
      const auto fields = read_fields<AtomicAnswerLine>(line);
      Operation* op = operations_.find(fields.op, &link);
      if (op == nullptr || op->kind != Operation::Kind::atomic) break;
      op->result = fields.value;
      finish(op, WcStatus::success);
      break;
    }
  }
}

void Engine::serve_write_inline(Link& link, const Line* line, std::size_t length) noexcept {
  const auto fields = read_fields<WriteLine>(line);
  WcStatus status = WcStatus::rem_access_err;
  if (sizeof(WriteLine) + fields.length <= length) {
    if (const Region* region =
            domain_->keys_.check(fields.rkey, fields.addr, fields.length, Access::remote_write)) {
      scatter(memory_at(*region, fields.addr), 0,
              {line->payload + sizeof(WriteLine), fields.length});
      status = WcStatus::success;
    }
  }
  acknowledge(link, fields.op, status);
}

void Engine::serve_write_data(Link& link, const Line* line) noexcept {
  const auto fields = read_fields<WriteLine>(line);
  if (fields.first != 0) link.write_status_ = WcStatus::success;
  Slot* slot = slot_of(link, fields.slot, fields.length);
  if (slot == nullptr || fields.length > fields.remaining) {
    link.write_status_ = WcStatus::rem_inv_req_err;
  } else if (link.write_status_ == WcStatus::success) {
    // The whole rest is checked with every piece: a write that cannot be done changes nothing.
    if (const Region* region = domain_->keys_.check(fields.rkey, fields.addr, fields.remaining,
                                                    Access::remote_write)) {
      scatter(memory_at(*region, fields.addr), 0, {slot->data(), fields.length});
    } else {
      link.write_status_ = WcStatus::rem_access_err;
    }
  }
  // Release: our reads of the slot come before its owner fills it again.
  if (slot != nullptr) slot->busy.store(0, std::memory_order_release);
  if (fields.last != 0) acknowledge(link, fields.op, link.write_status_);
}

void Engine::serve_send_data(Link& link, const Line* line) noexcept {
  const auto fields = read_fields<SendLine>(line);
  Slot* slot = slot_of(link, fields.slot, fields.length);
  const bool sound = slot != nullptr && fields.length <= fields.remaining;
  if (fields.first != 0) {
    const std::uint32_t index = fields.qp - first_qp;
    link.receiving_ = index < receive_ends_.size() ? receive_ends_[index] : nullptr;
    link.send_left_ = fields.remaining;
    link.send_status_ = link.receiving_ != nullptr ? link.receiving_->begin(link, fields.remaining)
                                                   : WcStatus::rem_inv_req_err;
  }
  // The length was promised by the first piece; one that says otherwise is from no peer of ours.
  if (link.send_status_ == WcStatus::success && link.receiving_ != nullptr) {
    if (sound && fields.remaining == link.send_left_) {
      link.receiving_->place({slot->data(), fields.length});
      link.send_left_ -= fields.length;
    } else {
      link.send_status_ = WcStatus::rem_inv_req_err;
    }
  }
  // Release: our reads of the slot come before its owner fills it again.
  if (slot != nullptr) slot->busy.store(0, std::memory_order_release);
  if (fields.last == 0) return;
  if (link.receiving_ != nullptr && link.send_status_ == WcStatus::success) {
    link.receiving_->end({fields.immediate, fields.has_immediate != 0});
  }
  link.receiving_ = nullptr;
  acknowledge(link, fields.op, link.send_status_);
}

std::shared_ptr<const SgeList> Engine::local_memory(std::span<const Sge> sges, Access need,
                                                    std::uint32_t pd) const {
  return SgeList::make(domain_->keys_, sges, need, pd);
}

std::uint32_t Engine::add_receive_end(ReceiveEnd* end) {
  const auto vacant = std::find(receive_ends_.begin(), receive_ends_.end(), nullptr);
  const auto index = static_cast<std::uint32_t>(vacant - receive_ends_.begin());
  if (vacant != receive_ends_.end()) {
    *vacant = end;
  } else if (index < max_qps) {
    receive_ends_.push_back(end);
  } else {
    return 0;
  }
  return first_qp + index;
}

void Engine::remove_receive_end(std::uint32_t qp) noexcept {
  for (Link* link : links_) {
    if (link->receiving_ == receive_ends_[qp - first_qp]) {
      link->receiving_ = nullptr;
      link->send_status_ = WcStatus::rem_inv_req_err;
    }
  }
  receive_ends_[qp - first_qp] = nullptr;
}

void Engine::serve_read_request(Link& link, const Line* line) noexcept {
  const auto fields = read_fields<ReadLine>(line);
  const Region* region =
      domain_->keys_.check(fields.rkey, fields.addr, fields.length, Access::remote_read);
  if (region == nullptr) {
    acknowledge(link, fields.op, WcStatus::rem_access_err);
    return;
  }
  if (fields.length <= WireLimits::max_write_short && link.reads_.empty()) {
    const std::size_t bytes = sizeof(AnswerLine) + fields.length;
    if (Line* out = link.wire_.reserve(bytes)) {
      write_fields(out, AnswerLine{fields.op, static_cast<std::uint32_t>(fields.length)});
      gather(memory_at(*region, fields.addr), 0,
             {out->payload + sizeof(AnswerLine), fields.length});
      link.wire_.publish(out, raw(WireOp::read_inline), 0, bytes);
      link.ring_if_cold();
      return;
    }
  }
  if (link.reads_.size() >= WireLimits::max_unacked) {
    acknowledge(link, fields.op, WcStatus::rem_inv_req_err);
    return;
  }
  link.reads_.push_back({fields.addr, fields.length, 0, fields.op, fields.rkey});
  waiting_.fetch_add(1, std::memory_order_relaxed);
}

unsigned Engine::send_read_data(Link& link) noexcept {
  unsigned pieces = 0;
  while (!link.reads_.empty()) {
    ServedRead& read = link.reads_.front();
    const std::uint32_t piece = piece_size(read.length);
    // At least one piece, so that a read of nothing that waited for room is answered as well.
    do {
      if (pieces == pieces_per_pass) return pieces;
      const std::uint64_t remaining = read.length - read.sent;
      const Region* region =
          domain_->keys_.check(read.rkey, read.addr + read.sent, remaining, Access::remote_read);
      Line* line = link.wire_.reserve(sizeof(DataLine));
      if (line == nullptr) return pieces;
      const auto length = static_cast<std::uint32_t>(std::min<std::uint64_t>(piece, remaining));
      const std::uint32_t slot = acquire_slot(link, length);
      if (slot == SlotPool::none) return pieces;
      gather(memory_at(*region, read.addr + read.sent), 0, {own_.slot(slot).data(), length});
      write_fields(line, DataLine{read.op, slot, length});
      link.wire_.publish(line, raw(WireOp::read_data), 0, sizeof(DataLine));
      link.ring_if_cold();
      read.sent += length;
      ++pieces;
    } while (read.sent < read.length);
    link.reads_.pop_front();
    waiting_.fetch_sub(1, std::memory_order_relaxed);
  }
  return pieces;
}

void Engine::serve_atomic(Link& link, const Line* line) noexcept {
  const auto fields = read_fields<AtomicLine>(line);
  const Region* region =
      fields.size == 4 || fields.size == 8
          ? domain_->keys_.check(fields.rkey, fields.addr, fields.size, Access::remote_atomic)
          : nullptr;
  if (region == nullptr) {
    acknowledge(link, fields.op, WcStatus::rem_access_err);
    return;
  }
  std::byte* at = region->base + (fields.addr - region->addr);
  if (region->layout != nullptr) at += region->layout->lower();
  const bool scattered = region->layout != nullptr && !region->layout->is_contiguous();
  if (scattered || reinterpret_cast<std::uintptr_t>(at) % fields.size != 0 ||
      fields.code > static_cast<std::uint8_t>(AtomicOp::fetch_xor)) {
    acknowledge(link, fields.op, WcStatus::rem_inv_req_err);
    return;
  }
  const std::uint64_t before = apply_atomic(at, fields.size, static_cast<AtomicOp>(fields.code),
                                            fields.operand, fields.compare);
  if (fields.op == 0) {
    ++link.uncounted_;
  } else {
    answer(link, WireOp::atomic_answer, AtomicAnswerLine{before, fields.op});
  }
}

void Engine::acknowledge(Link& link, std::uint32_t op, WcStatus status) noexcept {
  if (op == 0) {
    ++link.uncounted_;
  } else {
    answer(link, WireOp::ack, AckLine{op, static_cast<std::uint8_t>(status)});
  }
}

template <class Fields>
void Engine::answer(Link& link, WireOp op, const Fields& fields) noexcept {
  if (link.answers_.empty()) {
    if (Line* line = link.wire_.reserve(sizeof(Fields))) {
      write_fields(line, fields);
      link.wire_.publish(line, raw(op), 0, sizeof(Fields));
      link.ring_if_cold();
      return;
    }
  }
  // More than a peer that keeps its limit can have asked for: it gets no answers.
  if (link.answers_.size() >= answers_kept) return;
  WaitingAnswer& waiting = link.answers_.emplace_back();
  waiting.op = op;
  waiting.length = sizeof(Fields);
  std::memcpy(waiting.payload, &fields, sizeof fields);
  waiting_.fetch_add(1, std::memory_order_relaxed);
}

void Engine::send_answers(Link& link) noexcept {
  while (!link.answers_.empty()) {
    const WaitingAnswer& waiting = link.answers_.front();
    Line* line = link.wire_.reserve(waiting.length);
    if (line == nullptr) return;
    std::memcpy(line->payload, waiting.payload, waiting.length);
    link.wire_.publish(line, raw(waiting.op), 0, waiting.length);
    link.ring_if_cold();
    link.answers_.pop_front();
    waiting_.fetch_sub(1, std::memory_order_relaxed);
  }
}

}  // namespace weft::hca::emu
