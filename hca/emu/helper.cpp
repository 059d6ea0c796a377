#include "hca/emu/helper.hpp"

#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <string>
#include <system_error>

#include "hca/emu/context.hpp"
#include "hca/emu/futex.hpp"
#include "hca/emu/pause.hpp"
#include "hca/emu/segment.hpp"
#include "hca/status.hpp"

namespace weft::hca::emu {

namespace {

/// Passes without work after which the thread sleeps again.
constexpr unsigned idle_passes = 200;
/// How long it sleeps while something waits for a peer, and while somebody waits for an event (a
/// peer may die without ringing).
constexpr std::chrono::nanoseconds short_nap = std::chrono::milliseconds(1);
constexpr int restless_naps = 50;
constexpr std::chrono::nanoseconds long_nap = std::chrono::milliseconds(200);
/// An application that calls progress more often than this between two looks waits in it; one that
/// only looks in now and then does not move its transfers.
constexpr std::uint64_t looks_of_a_waiter = 16;

}  // namespace

void Helper::start() noexcept {
  if (started_.exchange(true)) return;
  pid_ = ::getpid();
  seen_ = context_.segment_.header().bell.load(std::memory_order_seq_cst);
  // The application's signals are the application's: none is delivered to this thread.
  sigset_t all;
  sigset_t before;
  ::sigfillset(&all);
  ::pthread_sigmask(SIG_SETMASK, &all, &before);
  try {
    thread_ = std::thread([this] { run(); });
    ::pthread_setname_np(thread_.native_handle(), "weft-helper");
  } catch (const std::system_error&) {
    started_.store(false);  // no thread to be had: see the header
  }
  ::pthread_sigmask(SIG_SETMASK, &before, nullptr);
}

void Helper::stop() noexcept {
  if (thread_.joinable()) {
    if (pid_ != ::getpid()) {
      thread_.detach();  // a forked child has no such thread
    } else {
      stopping_.store(true, std::memory_order_release);
      // Again and again: the bell and the mark that somebody sleeps are where peers write, too.
      SegmentHeader& header = context_.segment_.header();
      while (!ended_.load(std::memory_order_acquire)) {
        header.bell.fetch_add(1, std::memory_order_seq_cst);
        futex_wake(&header.bell, 1);
        ::sched_yield();
      }
      thread_.join();
    }
  }
  if (event_fd_ >= 0) ::close(event_fd_);
  event_fd_ = -1;
}

int Helper::event_fd() {
  if (event_fd_ < 0) {
    event_fd_ = ::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    if (event_fd_ < 0) {
      throw Error(errno, std::string("cannot create an event descriptor: ") + std::strerror(errno));
    }
    start();
  }
  return event_fd_;
}

void Helper::drain_event() noexcept {
  std::uint64_t count = 0;
  if (event_fd_ >= 0) [[maybe_unused]]
    const auto got = ::read(event_fd_, &count, sizeof count);
}

void Helper::watch() noexcept {
  if (deep_sleep_.load(std::memory_order_seq_cst)) ring(context_.segment_.header());
}

void Helper::wake(SegmentHeader& header) noexcept {
  // The post before, the sleeper's mark before its look at the rings.
  std::atomic_thread_fence(std::memory_order_seq_cst);
  if (header.helper_asleep.load(std::memory_order_relaxed) != 0) ring(header);
}

void Helper::ring(SegmentHeader& header) noexcept {
  header.bell.fetch_add(1, std::memory_order_seq_cst);
  if (header.helper_asleep.load(std::memory_order_seq_cst) != 0) {
    futex_wake(&header.bell, 1);
  }
}

void Helper::run() noexcept {
  SegmentHeader& header = context_.segment_.header();
  std::uint32_t seen = seen_;
  while (!stopping_.load(std::memory_order_acquire)) {
    const std::uint64_t attended = header.attended.load(std::memory_order_relaxed);
    const bool rung = sleep(seen);
    seen = header.bell.load(std::memory_order_seq_cst);
    if (header.armed.exchange(0, std::memory_order_seq_cst) != 0 && event_fd_ >= 0) {
      const std::uint64_t one = 1;
      [[maybe_unused]] const auto put = ::write(event_fd_, &one, sizeof one);
    }
    // What comes while the application polls, it takes faster alone. On a core that it shares with
    // this thread it can only be seen to poll while this thread sleeps.
    absent_ =
        rung || header.attended.load(std::memory_order_relaxed) - attended <= looks_of_a_waiter;
    if (absent_ || !context_.eager_helper_) attend();
  }
  ended_.store(true, std::memory_order_release);
}

/// One pass, and whether it moved anything.
bool Helper::carry_on() noexcept {
  const std::scoped_lock guard(context_.engine_.lock());
  return context_.engine_.advance(context_.engine_.links()) != 0;
}

/// Returns whether somebody rang for a reason other than transfers that this thread carries on.
bool Helper::sleep(unsigned seen) noexcept {
  SegmentHeader& header = context_.segment_.header();
  // Announced before the bell is looked at once more: whoever rings after that look sees it.
  header.helper_asleep.store(1, std::memory_order_seq_cst);
  const bool expected = context_.events_expected_.load() > 0;
  const bool under_way = context_.eager_helper_ && context_.is_under_way();
  const bool carrying = under_way && absent_;
  bool busy = under_way;
  if (expected || carrying) {
    const bool nothing = context_.arm_helper();
    busy = busy || context_.engine_.waiting() != 0;
    // Something has come in just now, or a peer has given a slot back before it could see the mark.
    if ((!nothing && !busy) || (carrying && carry_on())) {
      header.helper_asleep.store(0, std::memory_order_seq_cst);
      return !carrying;
    }
  } else {
    deep_sleep_.store(true, std::memory_order_seq_cst);
  }
  // While transfers wait for a peer there is something to do even if nobody rings.
  busy = busy || context_.engine_.waiting() != 0;
  // What waited a moment ago will again: waking from a deep sleep each time would cost more.
  if (busy) restless_ = restless_naps;
  busy = busy || (restless_ > 0 && --restless_ > 0);
  if (busy) deep_sleep_.store(false, std::memory_order_relaxed);
  const bool woken = futex_wait(&header.bell, seen,
                                busy       ? short_nap
                                : expected ? long_nap
                                           : std::chrono::nanoseconds::max());
  header.helper_asleep.store(0, std::memory_order_seq_cst);
  deep_sleep_.store(false, std::memory_order_relaxed);
  if (expected && !woken) context_.attend_to_the_dead();
  return woken && !carrying;
}

void Helper::attend() noexcept {
  SegmentHeader& header = context_.segment_.header();
  const bool eager = context_.eager_helper_;
  const std::uint64_t attended = header.attended.load(std::memory_order_relaxed);
  for (unsigned idle = 0; idle < idle_passes && !stopping_.load(std::memory_order_relaxed);) {
    unsigned moved = 0;
    if (context_.engine_.lock().try_lock()) {
      context_.accept_ports();
      moved = context_.engine_.advance(context_.engine_.links());
      context_.engine_.lock().unlock();
    }
    if (moved != 0) {
      idle = 0;
    } else {
      ++idle;
      // A yield would give the core to an application that computes for the rest of its time slice;
      // from a sleep it is had back as soon as there is something to do.
      if (eager) {
        pause();
      } else {
        ::sched_yield();
      }
    }
    // The application is back: it does this faster alone.
    const std::uint64_t looks = header.attended.load(std::memory_order_relaxed) - attended;
    if (looks > (eager ? looks_of_a_waiter : 0)) {
      absent_ = false;
      return;
    }
  }
}

}  // namespace weft::hca::emu
