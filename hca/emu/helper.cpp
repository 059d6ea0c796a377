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
    sleep(seen);
    seen = header.bell.load(std::memory_order_seq_cst);
    if (header.armed.exchange(0, std::memory_order_seq_cst) != 0 && event_fd_ >= 0) {
      const std::uint64_t one = 1;
      [[maybe_unused]] const auto put = ::write(event_fd_, &one, sizeof one);
    }
    attend();
  }
  ended_.store(true, std::memory_order_release);
}

void Helper::sleep(unsigned seen) noexcept {
  SegmentHeader& header = context_.segment_.header();
  // Announced before the bell is looked at once more: whoever rings after that look sees it.
  header.helper_asleep.store(1, std::memory_order_seq_cst);
  const bool expected = context_.events_expected_.load() > 0;
  bool busy = false;
  if (expected) {
    if (!context_.arm_helper()) {
      busy = context_.engine_.waiting() != 0;
      if (!busy) {  // something has come in just now
        header.helper_asleep.store(0, std::memory_order_seq_cst);
        return;
      }
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
}

void Helper::attend() noexcept {
  SegmentHeader& header = context_.segment_.header();
  std::uint64_t attended = header.attended.load(std::memory_order_relaxed);
  for (unsigned idle = 0; idle < idle_passes && !stopping_.load(std::memory_order_relaxed);) {
    unsigned moved = 0;
    if (context_.engine_.lock().try_lock()) {
      context_.accept_ports();
      moved = context_.engine_.advance();
      context_.engine_.lock().unlock();
    }
    if (moved != 0) {
      idle = 0;
    } else {
      ++idle;
      ::sched_yield();
    }
    // The application is back: it does this faster alone.
    const std::uint64_t now = header.attended.load(std::memory_order_relaxed);
    if (now != attended) return;
    attended = now;
  }
}

}  // namespace weft::hca::emu
