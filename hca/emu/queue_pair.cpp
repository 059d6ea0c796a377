// Queue pairs: creation, states, the events of both sides. The sending and the receiving side have
// files of their own.
#include "hca/emu/queue_pair.hpp"

#include <algorithm>
#include <bit>
#include <cerrno>
#include <mutex>
#include <string>
#include <utility>

namespace weft::hca::emu {

namespace {

const char* name_of(QpState state) noexcept {
  constexpr std::array<const char*, 6> names{"RESET", "INIT", "RTR", "RTS", "SQD", "ERR"};
  return names[static_cast<std::size_t>(state)];
}

bool is_transition(QpState from, QpState to) noexcept {
  switch (to) {
    case QpState::reset:
    case QpState::error:
      return true;
    case QpState::init:
      return from == QpState::reset || from == QpState::init;
    case QpState::rtr:
      return from == QpState::init;
    case QpState::rts:
      return from == QpState::rtr || from == QpState::rts || from == QpState::sqd;
    case QpState::sqd:
      return from == QpState::rts || from == QpState::sqd;
  }
  return false;
}

}  // namespace

QueuePair::QueuePair(Context& context, ProtectionDomain& pd, CompletionQueue& send_cq,
                     CompletionQueue& recv_cq, const QpCapabilities& capabilities, QpType type,
                     ReceiveQueue* srq)
    : context_(context),
      engine_(context.engine()),
      pd_(pd),
      send_cq_(send_cq),
      recv_cq_(recv_cq),
      capabilities_(capabilities),
      type_(type),
      own_queue_(srq != nullptr
                     ? nullptr
                     : std::make_unique<ReceiveQueue>(context, pd, capabilities.max_recv_wr,
                                                      capabilities.max_recv_sge)),
      receive_queue_(srq != nullptr ? srq : own_queue_.get()),
      requests_(std::bit_ceil(std::max(capabilities.max_send_wr, 1u))),
      sges_(requests_.size() * capabilities.max_send_sge),
      inline_data_(requests_.size() * capabilities.max_inline_data) {
  capabilities_.max_send_wr = static_cast<std::uint32_t>(requests_.size());
  capabilities_.max_recv_wr = own_queue_ ? own_queue_->max_wr() : 0;
  std::uint32_t index = 0;
  {
    const std::scoped_lock guard(engine_.lock());
    index = engine_.add_receive_end(this);
  }
  if (index == 0) {
    throw Error(ENOMEM, "all " + std::to_string(max_qps) + " QP numbers are taken");
  }
  number_ = context_.qp_base() | index;
  for (Request& request : requests_) {
    request.qp = this;
    request.in_engine = true;
    request.done = [](Operation* self, WcStatus status) {
      auto& ended = *static_cast<Request*>(self);
      ended.qp->take_end(ended, status);
    };
  }
  context_.start_helper();
}

QueuePair::~QueuePair() {
  const std::scoped_lock guard(engine_.lock());
  clear();
  engine_.remove_receive_end(number_ & ((1u << qp_index_bits) - 1));
}

QpAttributes QueuePair::attributes() const {
  const std::scoped_lock guard(engine_.lock());
  QpAttributes result = attributes_;
  result.send_psn = send_psn_;
  result.recv_psn = expected_psn_;
  return result;
}

void QueuePair::modify(QpState to, const QpAttributes& attributes) {
  std::shared_ptr<Link> link;
  if (to == QpState::rtr && type_ != QpType::ud && attributes.peer) {
    try {
      link = context_.connect(*attributes.peer);
    } catch (const Error&) {
      // Nobody is there: as on a network, what is sent will find out.
    }
  }
  const std::scoped_lock guard(engine_.lock());
  const QpState from = state();
  if (!is_transition(from, to)) {
    throw Error(EINVAL,
                std::string("a QP does not go from ") + name_of(from) + " to " + name_of(to));
  }
  attributes_ = attributes;
  if (to == from && to != QpState::reset) return;
  state_.store(to, std::memory_order_release);
  switch (to) {
    case QpState::reset:
      clear();
      send_cq_.purge(number_);
      recv_cq_.purge(number_);
      break;
    case QpState::error:
      fail();
      break;
    case QpState::rtr:
      link_ = std::move(link);
      expected_psn_ = attributes.recv_psn;
      break;
    case QpState::rts:
      if (from == QpState::rtr) send_psn_ = attributes.send_psn;
      start_more();
      break;
    case QpState::sqd:
      if (in_flight_ == 0) raise(QpEvent::send_queue_drained);
      break;
    case QpState::init:
      break;
  }
}

void QueuePair::connect(const Address& peer, std::uint32_t peer_qp, QpAttributes attributes) {
  attributes.peer = peer;
  attributes.peer_qp = peer_qp;
  if (state() == QpState::reset) modify(QpState::init, attributes);
  modify(QpState::rtr, attributes);
  modify(QpState::rts, attributes);
}

void QueuePair::raise(QpEvent event) noexcept {
  if (event_handler_ != nullptr) event_handler_(event_arg_, event);
}

void QueuePair::fail() noexcept {
  state_.store(QpState::error, std::memory_order_release);
  flush();
  flush_receives();
  if (!own_queue_) raise(QpEvent::last_wqe_reached);
}

void QueuePair::clear() noexcept {
  for (; head_ != tail_; ++head_) {
    Request& request = slot(head_);
    if (std::exchange(request.posted, false)) engine_.abandon(&request);
    request.memory = {};
    request.destination = {};
    request.work = nullptr;
  }
  next_ = head_;
  in_flight_ = 0;
  reads_in_flight_ = 0;
  rewinding_ = false;
  engine_.forget(this);
  receiving_ = false;
  receive_memory_ = {};
  receive_broken_ = false;
  established_ = false;
  link_.reset();
  while (own_queue_ && !own_queue_->empty()) own_queue_->pop();
}

}  // namespace weft::hca::emu
