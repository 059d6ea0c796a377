#include "hca/emu/completion_queue.hpp"

#include <sched.h>

#include <algorithm>
#include <bit>
#include <cerrno>
#include <mutex>
#include <string>
#include <utility>

#include "hca/status.hpp"

namespace weft::hca::emu {

namespace {
/// Polls without a completion after which the core is given away, and how often from then on: the
/// peer, or a helper thread, may be waiting for it.
constexpr std::uint32_t patient_polls = 96;
constexpr std::uint32_t polls_per_yield = 4;
}  // namespace

CompletionQueue::CompletionQueue(Context& context, std::size_t entries)
    : context_(context),
      ring_(std::bit_ceil(std::max<std::size_t>(entries, 1))),
      mask_(static_cast<std::uint32_t>(ring_.size() - 1)) {}

CompletionQueue::~CompletionQueue() {
  if (armed_ != Armed::no) context_.expect_events(-1);
}

std::size_t CompletionQueue::take(std::span<WorkCompletion> out) {
  if (!notable_.load(std::memory_order_acquire)) return 0;
  const std::scoped_lock guard(lock_);
  if (overrun_) {
    throw Error(EOVERFLOW,
                "a completion queue of " + std::to_string(entries()) + " entries was overrun");
  }
  std::size_t count = 0;
  while (count < out.size() && head_ != tail_) out[count++] = ring_[head_++ & mask_];
  polled_ |= count != 0;
  notable_.store(head_ != tail_, std::memory_order_relaxed);
  return count;
}

std::size_t CompletionQueue::poll(std::span<WorkCompletion> out) {
  context_.try_progress();
  const std::size_t count = take(out);
  if (count != 0) {
    idle_polls_.store(0, std::memory_order_relaxed);
    return count;
  }
  const std::uint32_t idle = idle_polls_.load(std::memory_order_relaxed) + 1;
  idle_polls_.store(idle, std::memory_order_relaxed);
  if (idle > patient_polls && idle % polls_per_yield == 0) [[unlikely]] {
    ::sched_yield();
  }
  return count;
}

void CompletionQueue::resize(std::size_t entries) {
  std::vector<WorkCompletion> ring(std::bit_ceil(std::max<std::size_t>(entries, 1)));
  const std::scoped_lock guard(lock_);
  const std::uint32_t queued = tail_ - head_;
  if (queued > ring.size()) {
    throw Error(EINVAL, std::to_string(queued) + " completions are queued, " +
                            std::to_string(entries) + " entries asked for");
  }
  for (std::uint32_t i = 0; i < queued; ++i) ring[i] = ring_[(head_ + i) & mask_];
  ring_.swap(ring);
  mask_ = static_cast<std::uint32_t>(ring_.size() - 1);
  head_ = 0;
  tail_ = queued;
  polled_ = true;
}

void CompletionQueue::request_notify(bool solicited_only) {
  bool now = false;
  bool first = false;
  {
    const std::scoped_lock guard(lock_);
    first = armed_ == Armed::no;
    if (head_ != tail_ && (announced_ != tail_ || polled_)) {
      now = true;
      armed_ = Armed::no;
      announced_ = tail_;
      polled_ = false;
    } else if (armed_ != Armed::any) {
      armed_ = solicited_only ? Armed::solicited : Armed::any;
    }
  }
  if (now) {
    if (!first) context_.expect_events(-1);
    if (handler_ != nullptr) handler_(handler_arg_, Event::completion);
  } else if (first) {
    context_.expect_events(1);
  }
}

void CompletionQueue::push(const WorkCompletion& completion) noexcept {
  bool event = false;
  bool overrun = false;
  {
    const std::scoped_lock guard(lock_);
    if (tail_ - head_ > mask_) {
      overrun = !std::exchange(overrun_, true);
    } else {
      ring_[tail_++ & mask_] = completion;
    }
    notable_.store(true, std::memory_order_release);
    event =
        armed_ == Armed::any || (armed_ == Armed::solicited &&
                                 (completion.solicited || completion.status != WcStatus::success));
    if (event) {
      armed_ = Armed::no;
      announced_ = tail_;
      polled_ = false;
    }
  }
  if (event) context_.expect_events(-1);
  if (handler_ == nullptr) return;
  if (event) handler_(handler_arg_, Event::completion);
  if (overrun) handler_(handler_arg_, Event::overrun);
}

void CompletionQueue::purge(std::uint32_t qp_num) noexcept {
  const std::scoped_lock guard(lock_);
  std::uint32_t kept = head_;
  for (std::uint32_t i = head_; i != tail_; ++i) {
    if (ring_[i & mask_].qp_num != qp_num) ring_[kept++ & mask_] = ring_[i & mask_];
  }
  tail_ = kept;
  polled_ = true;
}

}  // namespace weft::hca::emu
