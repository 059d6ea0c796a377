// Queue pairs: from a send work request to its completion.
#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <mutex>
#include <string>
#include <utility>

#include "hca/emu/clock.hpp"
#include "hca/emu/queue_pair.hpp"
#include "hca/emu/transfer.hpp"

namespace weft::hca::emu {

namespace {

constexpr std::uint32_t psn_mask = 0xffffff;
constexpr std::uint8_t repeat_for_ever = 7;
/// Between attempts to reach a QP that does not answer yet, at most.
constexpr std::uint64_t longest_pause_ns = 1'000'000;

/// RNR NAK timer field values (IB specification, table 45), in units of 10 us.
constexpr std::array<std::uint32_t, 32> rnr_delays{
    65536, 1,    2,    3,    4,    6,     8,     12,    16,    24,   32,
    48,    64,   96,   128,  192,  256,   384,   512,   768,   1024, 1536,
    2048,  3072, 4096, 6144, 8192, 12288, 16384, 24576, 32768, 49152};

bool is_atomic(WrOpcode opcode) noexcept {
  return opcode == WrOpcode::atomic_fetch_and_add || opcode == WrOpcode::atomic_cmp_and_swp;
}

bool returns_data(WrOpcode opcode) noexcept {
  return opcode == WrOpcode::rdma_read || is_atomic(opcode);
}

bool is_local(WrOpcode opcode) noexcept {
  return opcode >= WrOpcode::local_inv;
}

WcOpcode completed_as(WrOpcode opcode) noexcept {
  return static_cast<WcOpcode>(opcode);
}
static_assert(static_cast<int>(WrOpcode::send) == static_cast<int>(WcOpcode::send) &&
              static_cast<int>(WrOpcode::local) == static_cast<int>(WcOpcode::local));

std::uint64_t timeout_ns(std::uint8_t encoded) noexcept {
  return std::uint64_t{4096} << encoded;
}

}  // namespace

std::span<Sge> QueuePair::sges_of(const Request& request) noexcept {
  const auto index = static_cast<std::size_t>(&request - requests_.data());
  return std::span(sges_).subspan(index * capabilities_.max_send_sge, request.sges);
}

std::byte* QueuePair::inline_data_of(const Request& request) noexcept {
  const auto index = static_cast<std::size_t>(&request - requests_.data());
  return inline_data_.data() + index * capabilities_.max_inline_data;
}

void QueuePair::check(const SendWr& wr) const {
  if (state() < QpState::rts) throw Error(EINVAL, "a QP takes sends only from state RTS on");
  if (wr.sg_list.size() > capabilities_.max_send_sge && !wr.inlined) {
    throw Error(EINVAL, std::to_string(wr.sg_list.size()) + " SGEs, the QP takes " +
                            std::to_string(capabilities_.max_send_sge));
  }
  const bool possible = type_ == QpType::rc ||
                        (type_ == QpType::uc && !returns_data(wr.opcode) && !wr.invalidate) ||
                        (type_ == QpType::ud && wr.opcode == WrOpcode::send && !wr.invalidate);
  if (!possible) throw Error(EINVAL, "an operation that QPs of this type do not have");
  if (is_atomic(wr.opcode)) {
    std::uint64_t length = 0;
    for (const Sge& sge : wr.sg_list) length += sge.length;
    if (length != 8) {
      throw Error(EINVAL, "an atomic needs 8 bytes for its result, " + std::to_string(length) +
                              " were given");
    }
  }
  if (wr.inlined) {
    std::uint64_t length = 0;
    for (const Sge& sge : wr.sg_list) length += sge.length;
    if (length > capabilities_.max_inline_data || returns_data(wr.opcode)) {
      throw Error(EINVAL, std::to_string(length) + " bytes of inline data, the QP takes " +
                              std::to_string(capabilities_.max_inline_data) +
                              " of sends and writes");
    }
  }
}

void QueuePair::post_send(std::span<const SendWr> wrs) {
  const std::scoped_lock guard(engine_.lock());
  for (const SendWr& wr : wrs) check(wr);
  if (tail_ - head_ + wrs.size() > requests_.size()) {
    throw Error(ENOMEM,
                "the send queue of " + std::to_string(requests_.size()) + " requests is full");
  }
  for (const SendWr& wr : wrs) enqueue(wr);
  if (state() == QpState::error) {
    flush();
    return;
  }
  start_more();
  report_finished();
  if (next_ != tail_) engine_.await(this);
  // What waits for room goes on even if this process calls nothing.
  if (engine_.waiting() != 0) context_.watch();
}

void QueuePair::enqueue(const SendWr& wr) {
  Request& request = slot(tail_);
  request.wr_id = wr.wr_id;
  request.opcode = wr.opcode;
  request.remote = wr.remote;
  request.operand = wr.operand;
  request.compare = wr.compare;
  request.immediate = wr.immediate;
  request.signaled = wr.signaled;
  request.fence = wr.fence;
  request.solicited = wr.solicited;
  request.invalidate = wr.invalidate;
  request.inlined = wr.inlined;
  request.posted = false;
  request.finished = false;
  request.repeats = 0;
  request.give_up_at = 0;
  if (type_ == QpType::ud) request.destination = wr.destination;
  if (is_local(wr.opcode)) {
    request.work = wr.work;
  } else {
    request.psn = send_psn_;
    send_psn_ = (send_psn_ + 1) & psn_mask;
  }
  if (wr.inlined) {
    std::byte* const data = inline_data_of(request);
    std::uint64_t length = 0;
    for (const Sge& sge : wr.sg_list) {
      if (sge.length == 0) continue;
      std::memcpy(data + length, reinterpret_cast<const std::byte*>(sge.addr), sge.length);
      length += sge.length;
    }
    request.memory.local = {data, nullptr, 0};
    request.memory.size = length;
    request.sges = 0;
  } else {
    request.sges = static_cast<std::uint32_t>(wr.sg_list.size());
    std::copy(wr.sg_list.begin(), wr.sg_list.end(), sges_of(request).begin());
  }
  ++tail_;
}

bool QueuePair::proceed() noexcept {
  if (std::exchange(receive_broken_, false)) fail();
  report_finished();
  start_more();
  report_finished();
  return next_ != tail_ || rewinding_;
}

void QueuePair::start_more() noexcept {
  if (state() != QpState::rts) return;
  if (rewinding_) {
    if (in_flight_ != 0 || now_ns() < not_before_) return;
    rewinding_ = false;
    for (std::uint32_t i = head_; i != next_; ++i) {
      if (!is_local(slot(i).opcode)) slot(i).finished = false;
    }
    next_ = head_;
  }
  while (next_ != tail_) {
    Request& request = slot(next_);
    if (!request.finished && !try_start(request)) return;
    ++next_;
    if (request.finished && request.status != WcStatus::success) return;
  }
}

bool QueuePair::try_start(Request& request) noexcept {
  const auto ends_with = [&request](WcStatus status) {
    request.status = status;
    request.finished = true;
    return true;
  };
  if (request.fence && reads_in_flight_ != 0) return false;
  if (is_local(request.opcode)) return ends_with(request.work());
  if (!request.inlined) {
    const Access need = returns_data(request.opcode) ? Access::local_write : Access::none;
    if (!engine_.resolve(request.memory, sges_of(request), need, pd_.number())) {
      return ends_with(WcStatus::loc_prot_err);
    }
  }
  if (request.memory.size > (type_ == QpType::ud ? attributes_.path_mtu : max_message)) {
    return ends_with(WcStatus::loc_len_err);
  }
  if (returns_data(request.opcode)) {
    if (attributes_.max_reads == 0) return ends_with(WcStatus::loc_qp_op_err);
    if (reads_in_flight_ >= attributes_.max_reads) return false;
  }
  Link* link = type_ == QpType::ud ? request.destination.link.get() : link_.get();
  if (link == nullptr || !link->alive()) {
    return ends_with(type_ == QpType::rc ? WcStatus::retry_exc_err : WcStatus::success);
  }
  if (!place(request, *link)) return false;
  context_.wake_peer(*link);
  request.posted = true;
  ++in_flight_;
  if (returns_data(request.opcode)) ++reads_in_flight_;
  return true;
}

bool QueuePair::place(Request& request, Link& link) noexcept {
  constexpr std::uint32_t index_mask = (1u << qp_index_bits) - 1;
  const std::uint32_t peer = type_ == QpType::ud ? request.destination.qp : attributes_.peer_qp;
  Envelope envelope;
  envelope.qp = static_cast<std::uint16_t>(peer & index_mask);
  envelope.psn = request.psn;
  envelope.immediate = request.immediate;
  envelope.solicited = request.solicited;
  envelope.invalidate = request.invalidate;
  const LocalMemory& local = request.memory.local;
  switch (request.opcode) {
    case WrOpcode::send:
      if (type_ == QpType::ud) {
        envelope.source_qp = number_;
        envelope.qkey = request.destination.qkey;
      }
      return engine_.place_send(link, &request, local, request.memory.size, envelope);
    case WrOpcode::rdma_write:
      return engine_.place_write(link, &request, local, request.remote, request.memory.size,
                                 envelope);
    case WrOpcode::rdma_read:
      return engine_.place_read(link, &request, local, request.remote, request.memory.size,
                                envelope);
    case WrOpcode::atomic_fetch_and_add:
      return engine_.place_atomic(link, &request, AtomicOp::fetch_add, 8, request.remote,
                                  request.operand, 0, envelope);
    case WrOpcode::atomic_cmp_and_swp:
      return engine_.place_atomic(link, &request, AtomicOp::compare_swap, 8, request.remote,
                                  request.operand, request.compare, envelope);
    default:
      return false;
  }
}

void QueuePair::take_end(Request& request, WcStatus status) noexcept {
  request.posted = false;
  request.finished = true;
  request.status = type_ == QpType::rc ? status : WcStatus::success;
  --in_flight_;
  if (returns_data(request.opcode)) --reads_in_flight_;
  if (status == WcStatus::success && is_atomic(request.opcode)) {
    std::byte before[8];
    std::memcpy(before, &request.result, sizeof before);
    scatter(request.memory.local, 0, before);
  }
  report_finished();
  if (next_ != tail_ || rewinding_) engine_.await(this);
  if (in_flight_ == 0 && state() == QpState::sqd) raise(QpEvent::send_queue_drained);
}

/// Takes back a request that is with the engine; it touches no memory any more.
void QueuePair::end_locally(Request& request, WcStatus status) noexcept {
  engine_.abandon(&request);
  request.posted = false;
  request.finished = true;
  request.status = status;
  --in_flight_;
  if (returns_data(request.opcode)) --reads_in_flight_;
}

bool QueuePair::may_repeat(Request& request) noexcept {
  if (rewinding_) return true;
  if (request.status == WcStatus::rnr_retry_exc_err) {
    if (attributes_.rnr_retry != repeat_for_ever && request.repeats >= attributes_.rnr_retry) {
      return false;
    }
    ++request.repeats;
    not_before_ = now_ns() + rnr_delays[request.rnr_timer & 31] * std::uint64_t{10'000};
    return true;
  }
  if (request.status != WcStatus::retry_exc_err || !link_ || !link_->alive()) return false;
  // The peer's QP does not answer (yet).
  const std::uint64_t now = now_ns();
  const std::uint64_t timeout = timeout_ns(attributes_.timeout);
  if (request.give_up_at == 0) {
    request.give_up_at = now + (attributes_.retry_count + 1u) * timeout;
  }
  not_before_ = now + std::min(timeout, longest_pause_ns);
  return attributes_.timeout == 0 || now < request.give_up_at;
}

void QueuePair::report_finished() noexcept {
  while (head_ != next_ && slot(head_).finished) {
    Request& request = slot(head_);
    if (request.status != WcStatus::success && type_ == QpType::rc && state() != QpState::error &&
        may_repeat(request)) {
      rewinding_ = true;
      return;
    }
    ++head_;
    report(request, request.status);
    if (request.status != WcStatus::success) {
      fail();
      return;
    }
  }
}

void QueuePair::report(Request& request, WcStatus status) noexcept {
  request.memory.list.reset();
  if (type_ == QpType::ud) request.destination.link.reset();
  if (is_local(request.opcode)) request.work = nullptr;
  if (status == WcStatus::success && !request.signaled) return;
  send_cq_.push(
      {request.wr_id, status, completed_as(request.opcode), request.memory.size, {}, number_});
}

void QueuePair::flush() noexcept {
  for (; head_ != tail_; ++head_) {
    Request& request = slot(head_);
    // It touches no memory any more once it is reported.
    if (std::exchange(request.posted, false)) engine_.abandon(&request);
    report(request, WcStatus::wr_flush_err);
  }
  next_ = head_;
  in_flight_ = 0;
  reads_in_flight_ = 0;
  rewinding_ = false;
  engine_.forget(this);
}

}  // namespace weft::hca::emu
