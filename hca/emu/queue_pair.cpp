#include "hca/emu/queue_pair.hpp"

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <mutex>
#include <string>
#include <utility>

namespace weft::hca::emu {

namespace {

/// Wait before a send is repeated after RNR.
constexpr std::uint64_t rnr_delay_ns = 10'000;
constexpr std::uint8_t repeat_for_ever = 7;

std::uint64_t now_ns() {
  return static_cast<std::uint64_t>(std::chrono::steady_clock::now().time_since_epoch().count());
}

bool is_atomic(WrOpcode opcode) noexcept {
  return opcode == WrOpcode::atomic_fetch_and_add || opcode == WrOpcode::atomic_cmp_and_swp;
}

bool returns_data(WrOpcode opcode) noexcept {
  return opcode == WrOpcode::rdma_read || is_atomic(opcode);
}

WcOpcode completed_as(WrOpcode opcode) noexcept {
  switch (opcode) {
    case WrOpcode::send:
      return WcOpcode::send;
    case WrOpcode::rdma_write:
      return WcOpcode::rdma_write;
    case WrOpcode::rdma_read:
      return WcOpcode::rdma_read;
    case WrOpcode::atomic_fetch_and_add:
      return WcOpcode::fetch_add;
    case WrOpcode::atomic_cmp_and_swp:
      return WcOpcode::comp_swap;
  }
  return WcOpcode::send;
}

}  // namespace

QueuePair::QueuePair(Context& context, ProtectionDomain& pd, CompletionQueue& send_cq,
                     CompletionQueue& recv_cq, const QpCapabilities& capabilities)
    : context_(context),
      pd_(pd),
      send_cq_(send_cq),
      recv_cq_(recv_cq),
      capabilities_(capabilities) {
  {
    const std::scoped_lock guard(context_.engine().lock());
    number_ = context_.engine().add_receive_end(this);
  }
  if (number_ == 0) throw Error(ENOMEM, "all QP numbers are taken");
  send_cq_.senders_.push_back(this);
}

QueuePair::~QueuePair() {
  std::erase(send_cq_.senders_, this);
  {
    const std::scoped_lock guard(context_.engine().lock());
    context_.engine().remove_receive_end(number_);
  }
  // Requests under way refer to memory of the caller's: they end before the QP does.
  const auto under_way = [](const auto& request) { return request->started && !request->finished; };
  while (std::any_of(requests_.begin(), requests_.end(), under_way)) context_.progress();
}

void QueuePair::connect(const Address& peer, std::uint32_t peer_qp) {
  if (state() != QpState::init) throw Error(EINVAL, "only a QP in state INIT can be connected");
  link_ = context_.connect(peer);
  peer_qp_ = peer_qp;
  state_.store(QpState::rts, std::memory_order_release);
}

void QueuePair::post_send(const SendWr& wr) {
  if (state() != QpState::rts && state() != QpState::error) {
    throw Error(EINVAL, "a QP takes sends only when it is connected");
  }
  if (wr.sg_list.size() > capabilities_.max_send_sge) {
    throw Error(EINVAL, std::to_string(wr.sg_list.size()) + " SGEs, the QP takes " +
                            std::to_string(capabilities_.max_send_sge));
  }
  if (is_atomic(wr.opcode) && (wr.sg_list.size() != 1 || wr.sg_list[0].length != 8)) {
    throw Error(EINVAL, "an atomic needs one SGE of 8 bytes for its result");
  }
  if (requests_.size() == capabilities_.max_send_wr) {
    throw Error(ENOMEM, "the send queue of " + std::to_string(capabilities_.max_send_wr) +
                            " requests is full");
  }
  auto request = std::make_unique<Request>();
  request->wr = wr;
  request->done = [](Operation* self, WcStatus status) {
    auto* ended = static_cast<Request*>(self);
    ended->status = status;
    ended->finished = true;
  };
  requests_.push_back(std::move(request));
  advance();
}

void QueuePair::post_recv(const RecvWr& wr) {
  if (wr.sg_list.size() > capabilities_.max_recv_sge) {
    throw Error(EINVAL, std::to_string(wr.sg_list.size()) + " SGEs, the QP takes " +
                            std::to_string(capabilities_.max_recv_sge));
  }
  {
    const std::scoped_lock guard(context_.engine().lock());
    if (receives_.size() == capabilities_.max_recv_wr) {
      throw Error(ENOMEM, "the receive queue of " + std::to_string(capabilities_.max_recv_wr) +
                              " requests is full");
    }
    receives_.push_back(wr);
  }
  if (state() == QpState::error) flush();
}

// ---- the sending side --------------------------------------------------------------------------

void QueuePair::advance() {
  // 1. Start requests in order. A send that is not acknowledged yet holds up what comes after it.
  for (const auto& request : requests_) {
    if (state() != QpState::rts) break;
    if (request->finished) {
      // An RNR comes back as this status; the send is repeated until its retries are used up.
      const bool again = request->status == WcStatus::rnr_retry_exc_err &&
                         (capabilities_.rnr_retry == repeat_for_ever ||
                          request->repeats < capabilities_.rnr_retry);
      if (!again) {
        if (request->status != WcStatus::success) break;
        continue;
      }
      request->finished = false;
      request->started = false;
      request->not_before = now_ns() + rnr_delay_ns;
      ++request->repeats;
    }
    if (!request->started && !try_start(*request)) break;
    if (!request->finished && request->wr.opcode == WrOpcode::send) break;
  }
  // 2. Report from the front what has ended, in order.
  while (!requests_.empty() && requests_.front()->finished) {
    const auto request = std::move(requests_.front());
    requests_.pop_front();
    report(*request, request->status);
    if (request->status != WcStatus::success) fail();
  }
  if (state() == QpState::error) flush();
}

bool QueuePair::try_start(Request& request) {
  if (request.not_before != 0 && now_ns() < request.not_before) return false;
  if (request.wr.fence) {
    for (const auto& earlier : requests_) {
      if (earlier.get() == &request) break;
      if (!earlier->finished && returns_data(earlier->wr.opcode)) return false;
    }
  }
  {
    const std::scoped_lock guard(context_.engine().lock());
    const Access need = returns_data(request.wr.opcode) ? Access::local_write : Access::none;
    request.memory = context_.engine().local_memory(request.wr.sg_list, need, pd_.number());
  }
  if (!request.memory) {
    request.started = true;
    request.finished = true;
    request.status = WcStatus::loc_prot_err;
    return true;
  }
  request.started = post(request, {nullptr, request.memory.get(), 0});
  return request.started;
}

bool QueuePair::post(Request& request, const LocalMemory& local) {
  const SendWr& wr = request.wr;
  switch (wr.opcode) {
    case WrOpcode::send:
      return link_->send(&request, local, request.memory->size(), peer_qp_, wr.immediate);
    case WrOpcode::rdma_write:
      return link_->write(&request, local, wr.remote, request.memory->size());
    case WrOpcode::rdma_read:
      return link_->read(&request, local, wr.remote, request.memory->size());
    case WrOpcode::atomic_fetch_and_add:
      return link_->atomic(&request, AtomicOp::fetch_add, 8, wr.remote, wr.operand, 0);
    case WrOpcode::atomic_cmp_and_swp:
      return link_->atomic(&request, AtomicOp::compare_swap, 8, wr.remote, wr.operand, wr.compare);
  }
  return false;
}

void QueuePair::report(const Request& request, WcStatus status) {
  if (status == WcStatus::success && is_atomic(request.wr.opcode)) {
    std::byte before[8];
    std::memcpy(before, &request.result, sizeof before);
    request.memory->scatter(nullptr, 0, before);
  }
  if (status == WcStatus::success && !request.wr.signaled) return;
  send_cq_.push({request.wr.wr_id,
                 status,
                 completed_as(request.wr.opcode),
                 request.memory ? request.memory->size() : 0,
                 {},
                 number_});
}

void QueuePair::fail() noexcept {
  state_.store(QpState::error, std::memory_order_release);
}

void QueuePair::flush() noexcept {
  // Requests that are under way end first; they may still write to the caller's memory.
  while (!requests_.empty() && (requests_.front()->finished || !requests_.front()->started)) {
    const auto request = std::move(requests_.front());
    requests_.pop_front();
    report(*request, WcStatus::wr_flush_err);
  }
  const std::scoped_lock guard(context_.engine().lock());
  for (; !receives_.empty(); receives_.pop_front()) {
    recv_cq_.push(
        {receives_.front().wr_id, WcStatus::wr_flush_err, WcOpcode::recv, 0, {}, number_});
  }
}

// ---- the receiving side ------------------------------------------------------------------------

WcStatus QueuePair::begin(const Link& link, std::uint64_t length) noexcept {
  if (state() == QpState::init) return WcStatus::rnr_retry_exc_err;
  if (state() != QpState::rts || &link != link_.get()) return WcStatus::rem_inv_req_err;
  if (receives_.empty()) return WcStatus::rnr_retry_exc_err;
  const RecvWr& wr = receives_.front();
  receiving_ = context_.engine().local_memory(wr.sg_list, Access::local_write, pd_.number());
  received_ = 0;
  if (receiving_ && receiving_->size() >= length) return WcStatus::success;
  const WcStatus own = receiving_ ? WcStatus::loc_len_err : WcStatus::loc_prot_err;
  recv_cq_.push({wr.wr_id, own, WcOpcode::recv, 0, {}, number_});
  receives_.pop_front();
  fail();
  return own == WcStatus::loc_len_err ? WcStatus::rem_inv_req_err : WcStatus::rem_op_err;
}

void QueuePair::place(std::span<const std::byte> piece) noexcept {
  receiving_->scatter(nullptr, received_, piece);
  received_ += piece.size();
}

void QueuePair::end(Immediate immediate) noexcept {
  recv_cq_.push(
      {receives_.front().wr_id, WcStatus::success, WcOpcode::recv, received_, immediate, number_});
  receives_.pop_front();
  receiving_.reset();
}

}  // namespace weft::hca::emu
