// Completion queues.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "hca/emu/context.hpp"
#include "hca/emu/spin_lock.hpp"
#include "hca/emu/work_request.hpp"

namespace weft::hca::emu {

class CompletionQueue {
 public:
  /// Holds at least `entries` completions (a power of two of them).
  CompletionQueue(Context& context, std::size_t entries);
  ~CompletionQueue();
  CompletionQueue(const CompletionQueue&) = delete;
  CompletionQueue& operator=(const CompletionQueue&) = delete;

  /// Makes progress, unless another thread does, and takes up to `out.size()` completions; returns
  /// how many. Any thread. After many calls without a completion it gives the core away. Throws
  /// hca::Error EOVERFLOW once completions were lost because the queue was full.
  std::size_t poll(std::span<WorkCompletion> out);

  [[nodiscard]] std::size_t entries() const noexcept { return mask_ + 1; }
  /// Keeps what is queued. Throws hca::Error EINVAL when that is more than `entries`.
  void resize(std::size_t entries);

  /// `event` is called once when a completion comes (`solicited_only`: one of a solicited message,
  /// or an error). At once when completions wait that no event has told of, or that were left when
  /// others were polled after the last one. It runs in any thread, under the engine's lock or the
  /// caller's.
  enum class Event : std::uint8_t { completion, overrun };
  using Handler = void (*)(void* arg, Event event);
  void set_handler(Handler handler, void* arg) noexcept {
    handler_ = handler;
    handler_arg_ = arg;
  }
  void request_notify(bool solicited_only);

  /// From any thread.
  void push(const WorkCompletion& completion) noexcept;
  /// Takes out what a QP that is reset has left here.
  void purge(std::uint32_t qp_num) noexcept;

 private:
  enum class Armed : std::uint8_t { no, solicited, any };
  std::size_t take(std::span<WorkCompletion> out);

  Context& context_;
  SpinLock lock_;
  std::vector<WorkCompletion> ring_;
  std::uint32_t mask_;
  std::uint32_t head_ = 0;
  std::uint32_t tail_ = 0;
  /// Something is queued, or was lost: an empty poll looks here without the lock.
  std::atomic<bool> notable_{false};
  std::atomic<std::uint32_t> idle_polls_{0};  ///< roughly, when several threads poll
  std::uint32_t announced_ = 0;               ///< tail_ at the last event
  bool polled_ = false;                       ///< something was taken since then
  bool overrun_ = false;
  Armed armed_ = Armed::no;
  Handler handler_ = nullptr;
  void* handler_arg_ = nullptr;
};

}  // namespace weft::hca::emu
