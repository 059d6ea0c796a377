#include "hca/emu/receive_queue.hpp"

#include <algorithm>
#include <bit>
#include <cerrno>
#include <mutex>
#include <string>

#include "hca/status.hpp"

namespace weft::hca::emu {

// Counters wrap at 2^32, so the number of slots is a power of two.
ReceiveQueue::ReceiveQueue(Context& context, ProtectionDomain& pd, std::uint32_t max_wr,
                           std::uint32_t max_sge)
    : context_(context), pd_(pd), max_wr_(std::bit_ceil(std::max(max_wr, 1u))), max_sge_(max_sge) {
  slots_.resize(max_wr_);
  sges_.resize(std::size_t{max_wr_} * max_sge_);
}

void ReceiveQueue::post(const RecvWr& wr) {
  if (wr.sg_list.size() > max_sge_) {
    throw Error(EINVAL, std::to_string(wr.sg_list.size()) + " SGEs, the queue takes " +
                            std::to_string(max_sge_));
  }
  const std::scoped_lock guard(context_.engine().lock());
  if (tail_ - head_ == max_wr_) {
    throw Error(ENOMEM, "the receive queue of " + std::to_string(max_wr_) + " requests is full");
  }
  slots_[at(tail_)] = {wr.wr_id, static_cast<std::uint32_t>(wr.sg_list.size())};
  std::copy(wr.sg_list.begin(), wr.sg_list.end(), sges_.data() + at(tail_) * max_sge_);
  ++tail_;
}

void ReceiveQueue::set_limit(std::uint32_t limit) noexcept {
  const std::scoped_lock guard(context_.engine().lock());
  limit_ = limit;
}

void ReceiveQueue::resize(std::uint32_t max_wr) {
  const std::uint32_t wanted = std::bit_ceil(std::max(max_wr, 1u));
  const std::scoped_lock guard(context_.engine().lock());
  const std::uint32_t posted = tail_ - head_;
  if (posted > wanted) {
    throw Error(EINVAL, std::to_string(posted) + " requests are posted, " + std::to_string(max_wr) +
                            " asked for");
  }
  std::vector<Slot> slots(wanted);
  std::vector<Sge> sges(std::size_t{wanted} * max_sge_);
  for (std::uint32_t i = 0; i < posted; ++i) {
    slots[i] = slots_[at(head_ + i)];
    std::copy_n(sges_.data() + at(head_ + i) * max_sge_, slots[i].count,
                sges.data() + std::size_t{i} * max_sge_);
  }
  slots_.swap(slots);
  sges_.swap(sges);
  max_wr_ = wanted;
  head_ = 0;
  tail_ = posted;
}

ReceiveQueue::Entry ReceiveQueue::front() const noexcept {
  const Slot& slot = slots_[at(head_)];
  return {slot.wr_id, {sges_.data() + at(head_) * max_sge_, slot.count}};
}

void ReceiveQueue::pop() noexcept {
  ++head_;
  if (tail_ - head_ < limit_) {
    limit_ = 0;
    if (limit_reached_ != nullptr) limit_reached_(limit_arg_);
  }
}

}  // namespace weft::hca::emu
