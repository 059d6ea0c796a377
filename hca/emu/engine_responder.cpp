// The engine as responder: what peers write, ask for and send, and the answers to it.
#include <algorithm>
#include <utility>

#include "hca/emu/atomics.hpp"
#include "hca/emu/engine.hpp"
#include "hca/emu/transfer.hpp"

namespace weft::hca::emu {

namespace {

/// Lines taken from one link in one pass: others wait no longer than that.
constexpr unsigned lines_per_pass = 32;
/// Answers waiting for room beyond which a peer breaks the rules (it may have max_unacked under
/// way).
constexpr std::size_t answers_kept = 4 * WireLimits::max_unacked;

/// QP numbers 0 and 1 are the special QPs of the specification.
constexpr std::uint32_t first_qp = 2;
constexpr std::uint32_t max_qps = 16384;

}  // namespace

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
  const bool coarse = fields.coarse != 0 && is_coarse(memory_at(*region, fields.addr));
  link.reads_.push_back(
      {fields.addr, fields.length, 0, fields.op, fields.rkey, piece_size(fields.length, coarse)});
  waiting_.fetch_add(1, std::memory_order_relaxed);
}

unsigned Engine::send_read_data(Link& link) noexcept {
  unsigned pieces = 0;
  while (!link.reads_.empty()) {
    ServedRead& read = link.reads_.front();
    // At least one piece, so that a read of nothing that waited for room is answered as well.
    do {
      if (pieces == pieces_per_pass) return pieces;
      const std::uint64_t remaining = read.length - read.sent;
      const Region* region =
          domain_->keys_.check(read.rkey, read.addr + read.sent, remaining, Access::remote_read);
      Line* line = link.wire_.reserve(sizeof(DataLine));
      if (line == nullptr) return pieces;
      const auto length =
          static_cast<std::uint32_t>(std::min<std::uint64_t>(read.piece, remaining));
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
