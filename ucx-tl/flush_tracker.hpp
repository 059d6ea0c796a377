// Which flushes wait for which operations.
#pragma once

#include <uct/api/uct.h>

#include <cstdint>
#include <deque>

namespace weft::ucx {

/// Counts one completion down, as UCT wants it.
inline void complete(uct_completion_t* comp, ucs_status_t status) {
  uct_completion_update_status(comp, status);
  if (--comp->count == 0) comp->func(comp);
}

/// Operations complete in any order; a flush waits for those posted before it and for no others, so
/// that it ends even where operations never cease. Flushes cut the sequence of operations into
/// spans; an operation remembers its span.
class FlushTracker {
 public:
  [[nodiscard]] std::uint64_t outstanding() const noexcept { return outstanding_; }

  /// An operation is posted; keep what is returned until it completes.
  std::uint64_t start() noexcept {
    ++outstanding_;
    ++open_count_;
    return open_span_;
  }

  /// An operation of that span is complete. True when ready() has something to say.
  bool finish(std::uint64_t span) noexcept {
    --outstanding_;
    if (span == open_span_) [[likely]] {
      --open_count_;
      return false;
    }
    Span& closed = closed_[span - (open_span_ - closed_.size())];
    return --closed.count == 0;
  }

  /// Asks for `comp` once everything posted so far is complete. There must be something
  /// outstanding.
  void add(uct_completion_t* comp) {
    closed_.push_back({open_count_, comp});
    open_count_ = 0;
    ++open_span_;
  }

  /// Takes the next flush that is due, null when there is none.
  uct_completion_t* ready() noexcept {
    if (closed_.empty() || closed_.front().count != 0) return nullptr;
    uct_completion_t* comp = closed_.front().comp;
    closed_.pop_front();
    return comp;
  }

 private:
  struct Span {
    std::uint64_t count;
    uct_completion_t* comp;
  };
  std::uint64_t outstanding_ = 0;
  std::uint64_t open_span_ = 0;
  std::uint64_t open_count_ = 0;
  std::deque<Span> closed_;
};

}  // namespace weft::ucx
