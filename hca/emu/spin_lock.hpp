// A lock for a few hundred nanoseconds of work; yields when it has to wait longer.
#pragma once

#include <sched.h>

#include <atomic>

namespace weft::hca::emu {

class SpinLock {
 public:
  void lock() noexcept {
    for (unsigned spins = 0; !try_lock(); ++spins) {
      // The holder may have been preempted; with more threads than cores only a yield helps.
      if (spins > 64) ::sched_yield();
    }
  }
  bool try_lock() noexcept {
    // Acquire pairs with unlock().
    return !held_.load(std::memory_order_relaxed) &&
           !held_.exchange(true, std::memory_order_acquire);
  }
  void unlock() noexcept { held_.store(false, std::memory_order_release); }

 private:
  std::atomic<bool> held_{false};
};

}  // namespace weft::hca::emu
