// A queue of events with a descriptor that is readable while there are some.
#pragma once

#include <sys/eventfd.h>
#include <unistd.h>

#include <cerrno>
#include <condition_variable>
#include <cstdint>
#include <cstring>
#include <deque>
#include <mutex>
#include <optional>
#include <string>

#include "hca/status.hpp"

namespace weft::verbs {

template <class Event>
class EventQueue {
 public:
  /// Throws hca::Error when there is no descriptor to be had.
  EventQueue() : fd_(::eventfd(0, EFD_CLOEXEC | EFD_SEMAPHORE)) {
    if (fd_ < 0) {
      throw hca::Error(errno, std::string("no event descriptor: ") + std::strerror(errno));
    }
  }
  ~EventQueue() { ::close(fd_); }
  EventQueue(const EventQueue&) = delete;
  EventQueue& operator=(const EventQueue&) = delete;

  [[nodiscard]] int fd() const noexcept { return fd_; }

  void push(const Event& event) {
    {
      const std::scoped_lock guard(mutex_);
      events_.push_back(event);
    }
    const std::uint64_t one = 1;
    [[maybe_unused]] const auto put = ::write(fd_, &one, sizeof one);
  }

  /// Waits for an event, unless the descriptor was made non-blocking; nothing then, with errno.
  /// `taken` is called with it before anybody else can remove events.
  template <class Taken>
  std::optional<Event> take(Taken taken) {
    for (;;) {
      std::uint64_t count = 0;
      if (::read(fd_, &count, sizeof count) != sizeof count) return std::nullopt;
      const std::scoped_lock guard(mutex_);
      if (events_.empty()) continue;  // it was removed with its object
      const Event event = events_.front();
      events_.pop_front();
      taken(event);
      return event;
    }
  }

  /// Takes out the events of an object that goes.
  template <class Of>
  void remove(Of of) {
    const std::scoped_lock guard(mutex_);
    std::erase_if(events_, of);
  }

 private:
  int fd_;
  std::mutex mutex_;
  std::deque<Event> events_;
};

/// Counts the events of one object that were handed out, until the program has acknowledged them.
class UnacknowledgedEvents {
 public:
  void handed_out() noexcept {
    const std::scoped_lock guard(mutex_);
    ++count_;
  }
  void acknowledged(unsigned count) noexcept {
    const std::scoped_lock guard(mutex_);
    count_ = count < count_ ? count_ - count : 0;
    if (count_ == 0) none_.notify_all();
  }
  void wait_for_none() {
    std::unique_lock guard(mutex_);
    none_.wait(guard, [this] { return count_ == 0; });
  }

 private:
  std::mutex mutex_;
  std::condition_variable none_;
  unsigned count_ = 0;
};

}  // namespace weft::verbs
