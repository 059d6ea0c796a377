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

bool has(std::uint32_t flags, std::uint32_t flag) noexcept {
  return (flags & flag) != 0;
}

Envelope envelope_of(std::uint32_t flags, std::uint32_t immediate) noexcept {
  Envelope envelope;
  envelope.psn = flags >> RequestFlags::psn_shift;
  envelope.immediate = {immediate, has(flags, RequestFlags::immediate)};
  envelope.solicited = has(flags, RequestFlags::solicited);
  envelope.invalidate = has(flags, RequestFlags::invalidate);
  return envelope;
}

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
    case WireOp::send_inline:
      serve_send(link, line, length);
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

ReceiveEnd* Engine::receive_end(std::uint16_t qp) const noexcept {
  const std::uint32_t index = qp - first_qp;
  return index < receive_ends_.size() ? receive_ends_[index] : nullptr;
}

WcStatus Engine::admit(const Link& link, const RemoteRequest& request,
                       const Region*& region) noexcept {
  region = domain_->keys_.check(request.rkey, request.addr, request.length, request.need);
  if (request.qp == 0) return region != nullptr ? WcStatus::success : WcStatus::rem_access_err;
  ReceiveEnd* end = receive_end(request.qp);
  if (end == nullptr) return WcStatus::retry_exc_err;
  std::uint32_t pd = 0;
  const WcStatus status =
      end->admit(link, request.flags >> RequestFlags::psn_shift, request.need, pd);
  if (status != WcStatus::success) return status;
  if (region != nullptr && (region->pd != pd || (region->qp != 0 && region->qp != request.qp))) {
    region = nullptr;
  }
  // No key is needed for no bytes (IB specification 9.4.3).
  if (region != nullptr || request.length == 0) return WcStatus::success;
  end->refused(WcStatus::rem_access_err);
  return WcStatus::rem_access_err;
}

WcStatus Engine::executed(const RemoteRequest& request, const Envelope& envelope) noexcept {
  ReceiveEnd* end = request.qp == 0 ? nullptr : receive_end(request.qp);
  return end == nullptr ? WcStatus::success : end->executed(request.length, envelope);
}

void Engine::serve_write_inline(Link& link, const Line* line, std::size_t length) noexcept {
  const auto fields = read_fields<WriteLine>(line);
  WcStatus status = WcStatus::rem_access_err;
  if (sizeof(WriteLine) + fields.length <= length) {
    const RemoteRequest request{fields.addr,  fields.length, fields.rkey,
                                fields.flags, fields.qp,     Access::remote_write};
    const Region* region = nullptr;
    status = admit(link, request, region);
    if (status == WcStatus::success) {
      if (region != nullptr) {
        scatter(memory_at(*region, fields.addr), 0,
                {line->payload + sizeof(WriteLine), fields.length});
      }
      status = executed(request, envelope_of(fields.flags, fields.immediate));
    }
  }
  acknowledge(link, fields.op, status, fields.qp);
}

void Engine::serve_write_data(Link& link, const Line* line) noexcept {
  const auto fields = read_fields<WriteLine>(line);
  const bool first = has(fields.flags, RequestFlags::first);
  // The whole rest is checked with every piece: a write that cannot be done changes nothing.
  const RemoteRequest request{fields.addr,  fields.remaining, fields.rkey,
                              fields.flags, fields.qp,        Access::remote_write};
  if (first) {
    link.write_status_ = WcStatus::success;
    link.write_length_ = fields.remaining;
  }
  Slot* slot = slot_of(link, fields.slot, fields.length);
  if (slot == nullptr || fields.length > fields.remaining) {
    link.write_status_ = WcStatus::rem_inv_req_err;
  } else if (link.write_status_ == WcStatus::success) {
    const Region* region = nullptr;
    link.write_status_ = admit(link, request, region);
    if (region != nullptr && link.write_status_ == WcStatus::success) {
      scatter(memory_at(*region, fields.addr), 0, {slot->data(), fields.length});
    }
  }
  // Release: our reads of the slot come before its owner fills it again.
  if (slot != nullptr) slot->busy.store(0, std::memory_order_release);
  if (!has(fields.flags, RequestFlags::last)) return;
  if (link.write_status_ == WcStatus::success) {
    RemoteRequest whole = request;
    whole.length = link.write_length_;
    link.write_status_ = executed(whole, envelope_of(fields.flags, fields.immediate));
  }
  acknowledge(link, fields.op, link.write_status_, fields.qp);
}

void Engine::serve_send(Link& link, Line* line, std::size_t length) noexcept {
  const auto fields = read_fields<SendLine>(line);
  const bool inlined = line->header.op == raw(WireOp::send_inline);
  Slot* slot = inlined ? nullptr : slot_of(link, fields.slot, fields.length);
  const std::byte* data = inlined           ? line->payload + sizeof(SendLine)
                          : slot != nullptr ? slot->data()
                                            : nullptr;
  const bool sound = data != nullptr && fields.length <= fields.remaining &&
                     (!inlined || sizeof(SendLine) + fields.length <= length);
  Envelope envelope = envelope_of(fields.flags, fields.immediate);
  envelope.source_qp = fields.source_qp;
  envelope.qkey = fields.qkey;
  if (has(fields.flags, RequestFlags::first)) {
    link.receiving_ = receive_end(fields.qp);
    link.send_left_ = fields.remaining;
    link.send_status_ = link.receiving_ != nullptr
                            ? link.receiving_->begin(link, fields.remaining, envelope)
                            : WcStatus::retry_exc_err;
  }
  // The length was promised by the first piece; one that says otherwise is from no peer of ours.
  if (link.send_status_ == WcStatus::success && link.receiving_ != nullptr) {
    if (sound && fields.remaining == link.send_left_) {
      link.receiving_->place({data, fields.length});
      link.send_left_ -= fields.length;
    } else {
      link.send_status_ = WcStatus::rem_inv_req_err;
    }
  }
  // Release: our reads of the slot come before its owner fills it again.
  if (slot != nullptr) slot->busy.store(0, std::memory_order_release);
  if (!has(fields.flags, RequestFlags::last)) return;
  if (link.receiving_ != nullptr && link.send_status_ == WcStatus::success) {
    link.send_status_ = link.receiving_->end(envelope);
  }
  link.receiving_ = nullptr;
  acknowledge(link, fields.op, link.send_status_, fields.qp);
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
      link->send_status_ = WcStatus::retry_exc_err;
    }
  }
  receive_ends_[qp - first_qp] = nullptr;
}

void Engine::serve_read_request(Link& link, const Line* line) noexcept {
  const auto fields = read_fields<ReadLine>(line);
  const RemoteRequest request{fields.addr,  fields.length, fields.rkey,
                              fields.flags, fields.qp,     Access::remote_read};
  const Region* region = nullptr;
  WcStatus status = admit(link, request, region);
  if (status == WcStatus::success) status = executed(request, {});
  if (status != WcStatus::success) {
    acknowledge(link, fields.op, status, fields.qp);
    return;
  }
  if (fields.length <= WireLimits::max_write_short && link.reads_.empty()) {
    const std::size_t bytes = sizeof(AnswerLine) + fields.length;
    if (Line* out = link.wire_.reserve(bytes)) {
      write_fields(out, AnswerLine{fields.op, static_cast<std::uint32_t>(fields.length)});
      if (region != nullptr)
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
  const bool coarse =
      region != nullptr && fields.coarse != 0 && is_coarse(memory_at(*region, fields.addr));
  link.reads_.push_back({fields.addr, fields.length, 0, fields.op, fields.rkey,
                         piece_size(fields.length, coarse, largest_piece_)});
  make_busy(link);
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
      // Without a key: a read of nothing. A key that went took its reads with it (drop_key).
      if (region != nullptr) {
        gather(memory_at(*region, read.addr + read.sent), 0, {own_.slot(slot).data(), length});
      }
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
  const RemoteRequest request{fields.addr,  fields.size, fields.rkey,
                              fields.flags, fields.qp,   Access::remote_atomic};
  const Region* region = nullptr;
  const WcStatus status = fields.size == 4 || fields.size == 8 ? admit(link, request, region)
                                                               : WcStatus::rem_access_err;
  if (status != WcStatus::success) {
    acknowledge(link, fields.op, status, fields.qp);
    return;
  }
  const std::uint64_t offset = fields.addr - region->addr;
  std::byte* const at = region->layout != nullptr
                            ? region->layout->adjacent(region->base, offset, fields.size)
                            : region->base + offset;
  // Null: they are scattered.
  if (at == nullptr || reinterpret_cast<std::uintptr_t>(at) % fields.size != 0 ||
      fields.code > static_cast<std::uint8_t>(AtomicOp::fetch_xor)) {
    if (ReceiveEnd* end = receive_end(fields.qp)) end->refused(WcStatus::rem_inv_req_err);
    acknowledge(link, fields.op, WcStatus::rem_inv_req_err, fields.qp);
    return;
  }
  executed(request, {});
  const std::uint64_t before = apply_atomic(at, fields.size, static_cast<AtomicOp>(fields.code),
                                            fields.operand, fields.compare);
  if (fields.op == 0) {
    ++link.uncounted_;
  } else {
    answer(link, WireOp::atomic_answer, AtomicAnswerLine{before, fields.op});
  }
}

void Engine::acknowledge(Link& link, std::uint32_t op, WcStatus status, std::uint16_t qp) noexcept {
  if (op == 0) {
    ++link.uncounted_;
    return;
  }
  const ReceiveEnd* end = status == WcStatus::rnr_retry_exc_err ? receive_end(qp) : nullptr;
  const std::uint8_t rnr_timer = end != nullptr ? end->rnr_timer() : 0;
  answer(link, WireOp::ack, AckLine{op, static_cast<std::uint8_t>(status), rnr_timer});
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
  make_busy(link);
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
