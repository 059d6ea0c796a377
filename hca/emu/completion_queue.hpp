// Completion queues.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <span>
#include <vector>

#include "hca/emu/context.hpp"
#include "hca/emu/spin_lock.hpp"
#include "hca/emu/work_request.hpp"

namespace weft::hca::emu {

class QueuePair;

class CompletionQueue {
 public:
  CompletionQueue(Context& context, std::size_t entries) : context_(context), entries_(entries) {}
  CompletionQueue(const CompletionQueue&) = delete;
  CompletionQueue& operator=(const CompletionQueue&) = delete;

  /// Makes progress and takes up to `out.size()` completions; returns how many. One thread at a
  /// time per context. Throws hca::Error EOVERFLOW once completions were lost because the queue was
  /// full.
  std::size_t poll(std::span<WorkCompletion> out);

 private:
  friend class QueuePair;
  /// From any thread.
  void push(const WorkCompletion& completion) noexcept;

  Context& context_;
  const std::size_t entries_;
  SpinLock lock_;
  std::deque<WorkCompletion> queue_;
  bool overrun_ = false;
  std::vector<QueuePair*> senders_;
};

}  // namespace weft::hca::emu
