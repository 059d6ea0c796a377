#include "hca/emu/completion_queue.hpp"

#include <cerrno>
#include <mutex>
#include <string>

#include "hca/emu/queue_pair.hpp"
#include "hca/status.hpp"

namespace weft::hca::emu {

std::size_t CompletionQueue::poll(std::span<WorkCompletion> out) {
  context_.progress();
  for (QueuePair* qp : senders_) qp->advance();
  const std::scoped_lock guard(lock_);
  if (overrun_) {
    throw Error(EOVERFLOW,
                "a completion queue of " + std::to_string(entries_) + " entries was overrun");
  }
  std::size_t count = 0;
  while (count < out.size() && !queue_.empty()) {
    out[count++] = queue_.front();
    queue_.pop_front();
  }
  return count;
}

void CompletionQueue::push(const WorkCompletion& completion) noexcept {
  const std::scoped_lock guard(lock_);
  if (queue_.size() == entries_) {
    overrun_ = true;
  } else {
    queue_.push_back(completion);
  }
}

}  // namespace weft::hca::emu
