// Queue pairs: what peers' requests do to one.
#include <arpa/inet.h>

#include <algorithm>
#include <cstring>
#include <utility>

#include "hca/emu/queue_pair.hpp"
#include "hca/emu/transfer.hpp"

namespace weft::hca::emu {

namespace {
constexpr std::uint32_t psn_mask = 0xffffff;
}

void QueuePair::post_recv(const RecvWr& wr) {
  if (!own_queue_) throw Error(EINVAL, "a QP with an SRQ has no receive queue of its own");
  if (state() == QpState::reset) throw Error(EINVAL, "a QP in state RESET takes no receives");
  own_queue_->post(wr);
  if (state() != QpState::error) return;
  const std::scoped_lock guard(engine_.lock());
  flush_receives();
}

void QueuePair::establish() noexcept {
  // News only for a program that has not gone on to RTS by itself.
  if (!std::exchange(established_, true) && state() == QpState::rtr) {
    raise(QpEvent::communication_established);
  }
}

bool QueuePair::receives() const noexcept {
  const QpState now = state();
  return now == QpState::rtr || now == QpState::rts || now == QpState::sqd;
}

bool QueuePair::take_receive(std::uint64_t& wr_id, SgeMemory* memory, bool& sound) noexcept {
  if (receive_queue_->empty()) return false;
  const ReceiveQueue::Entry entry = receive_queue_->front();
  wr_id = entry.wr_id;
  sound = memory == nullptr ||
          engine_.resolve(*memory, entry.sges, Access::local_write, receive_queue_->pd().number());
  receive_keys_.clear();
  for (const Sge& sge : entry.sges) receive_keys_.push_back(sge.lkey);
  receive_queue_->pop();
  return true;
}

/// Whether the peer may have this QP lose that key: it is of a memory window bound for this QP.
bool QueuePair::may_invalidate(std::uint32_t key) const noexcept {
  const Region* region = context_.domain().find(key);
  return region != nullptr && region->pd == pd_.number() &&
         region->qp == (number_ & ((1u << qp_index_bits) - 1));
}

WcStatus QueuePair::begin(const Link& link, std::uint64_t length,
                          const Envelope& envelope) noexcept {
  if (!receives()) return WcStatus::retry_exc_err;
  if (type_ == QpType::ud) {
    if (envelope.qkey != attributes_.qkey) return WcStatus::retry_exc_err;
  } else if (&link != link_.get() || (type_ == QpType::rc && envelope.psn != expected_psn_)) {
    return WcStatus::retry_exc_err;
  }
  establish();
  if (envelope.invalidate && !may_invalidate(envelope.immediate.data)) {
    refused(WcStatus::rem_inv_req_err);
    return WcStatus::rem_inv_req_err;
  }
  bool sound = true;
  // A message that was broken off has left its receive to the next.
  if (!receiving_ && !take_receive(receive_id_, &receive_memory_, sound)) {
    return WcStatus::rnr_retry_exc_err;
  }
  receiving_ = true;
  received_ = 0;
  const std::uint64_t need = length + (type_ == QpType::ud ? grh_bytes : 0);
  if (sound && receive_memory_.size >= need) {
    if (type_ == QpType::ud) write_grh(length);
    return WcStatus::success;
  }
  receiving_ = false;
  const WcStatus own = sound ? WcStatus::loc_len_err : WcStatus::loc_prot_err;
  recv_cq_.push({receive_id_, own, WcOpcode::recv, 0, {}, number_});
  fail();
  return sound ? WcStatus::rem_inv_req_err : WcStatus::rem_op_err;
}

void QueuePair::place(std::span<const std::byte> piece) noexcept {
  // Peers that mix their messages to a UD QP could come to more than the buffer has.
  if (!receiving_ || piece.size() > receive_memory_.size - received_) return;
  scatter(receive_memory_.local, received_, piece);
  received_ += piece.size();
}

WcStatus QueuePair::end(const Envelope& envelope) noexcept {
  if (!receiving_) return WcStatus::retry_exc_err;  // flushed, or broken off
  receiving_ = false;
  expected_psn_ = (envelope.psn + 1) & psn_mask;
  // Looked at once more: this is the last piece's, and the message began some time ago.
  const bool invalidate = envelope.invalidate && may_invalidate(envelope.immediate.data);
  if (invalidate) context_.domain().unbind(envelope.immediate.data);
  WorkCompletion completion;
  completion.wr_id = receive_id_;
  completion.opcode = WcOpcode::recv;
  completion.byte_len = received_;
  completion.immediate = envelope.immediate;
  completion.invalidated = invalidate;
  completion.solicited = envelope.solicited;
  completion.qp_num = number_;
  completion.src_qp = type_ == QpType::ud ? envelope.source_qp : attributes_.peer_qp;
  completion.has_grh = type_ == QpType::ud;
  receive_memory_.list.reset();
  recv_cq_.push(completion);
  return WcStatus::success;
}

void QueuePair::key_dropped(std::uint32_t key) noexcept {
  const auto uses = [key](const Sge& sge) { return sge.lkey == key; };
  bool ended = false;
  for (std::uint32_t i = in_flight_ != 0 ? head_ : next_; i != next_; ++i) {
    Request& request = slot(i);
    const std::span<const Sge> sges = sges_of(request);
    if (!request.posted || std::none_of(sges.begin(), sges.end(), uses)) continue;
    end_locally(request, WcStatus::loc_prot_err);
    ended = true;
  }
  if (receiving_ &&
      std::find(receive_keys_.begin(), receive_keys_.end(), key) != receive_keys_.end()) {
    receiving_ = false;
    receive_broken_ = true;
    recv_cq_.push({receive_id_, WcStatus::loc_prot_err, WcOpcode::recv, 0, {}, number_});
    ended = true;
  }
  if (!ended) return;
  // Not reported here: a work request of this QP may be what drops the key.
  engine_.await(this);
  context_.watch();
}

void QueuePair::write_grh(std::uint64_t length) noexcept {
  struct Grh {
    std::uint32_t version_tclass_flow;
    std::uint16_t paylen;
    std::uint8_t next_hdr;
    std::uint8_t hop_limit;
    std::array<std::byte, 16> sgid;
    std::array<std::byte, 16> dgid;
  };
  static_assert(sizeof(Grh) == grh_bytes);
  // Sender and receiver are ports of the same device.
  const Grh grh{
      htonl(6u << 28), htons(static_cast<std::uint16_t>(length)), 0x1b, 64, context_.gid(),
      context_.gid()};
  std::byte bytes[grh_bytes];
  std::memcpy(bytes, &grh, sizeof bytes);
  place(bytes);
}

WcStatus QueuePair::admit(const Link& link, std::uint32_t psn, Access need,
                          std::uint32_t& pd) noexcept {
  if (!receives() || type_ == QpType::ud || &link != link_.get()) return WcStatus::retry_exc_err;
  if (type_ == QpType::rc && psn != expected_psn_) return WcStatus::retry_exc_err;
  establish();
  const bool returns_data = need != Access::remote_write;
  if (returns_data && (type_ == QpType::uc || attributes_.max_served_reads == 0)) {
    refused(WcStatus::rem_inv_req_err);
    return WcStatus::rem_inv_req_err;
  }
  if (!allows(attributes_.access, need)) {
    refused(WcStatus::rem_access_err);
    return WcStatus::rem_access_err;
  }
  pd = pd_.number();
  return WcStatus::success;
}

WcStatus QueuePair::executed(std::uint64_t length, const Envelope& envelope) noexcept {
  if (envelope.immediate.present) {
    WorkCompletion completion;
    bool sound = true;
    if (receiving_) {
      receiving_ = false;
      completion.wr_id = receive_id_;
    } else if (!take_receive(completion.wr_id, nullptr, sound)) {
      return WcStatus::rnr_retry_exc_err;
    }
    completion.opcode = WcOpcode::recv_rdma_with_imm;
    completion.byte_len = length;
    completion.immediate = envelope.immediate;
    completion.solicited = envelope.solicited;
    completion.qp_num = number_;
    completion.src_qp = attributes_.peer_qp;
    recv_cq_.push(completion);
  }
  expected_psn_ = (expected_psn_ + 1) & psn_mask;
  return WcStatus::success;
}

void QueuePair::refused(WcStatus status) noexcept {
  if (type_ != QpType::rc || state() == QpState::error) return;
  raise(status == WcStatus::rem_access_err ? QpEvent::access_error : QpEvent::request_error);
  fail();
}

void QueuePair::flush_receives() noexcept {
  const auto flushed = [this](std::uint64_t wr_id) {
    recv_cq_.push({wr_id, WcStatus::wr_flush_err, WcOpcode::recv, 0, {}, number_});
  };
  if (std::exchange(receiving_, false)) flushed(receive_id_);
  receive_memory_ = {};
  if (!own_queue_) return;
  for (; !own_queue_->empty(); own_queue_->pop()) flushed(own_queue_->front().wr_id);
}

}  // namespace weft::hca::emu
