// Sleeping on a word of shared memory, and waking who sleeps there.
#pragma once

#include <linux/futex.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <cstdint>
#include <ctime>

namespace weft::hca::emu {

/// Sleeps while the 32 bits at `word` are `value`, until somebody wakes or `most` is over; the
/// longest time there is means without end. False when the time was over.
inline bool futex_wait(const void* word, std::uint32_t value,
                       std::chrono::nanoseconds most) noexcept {
  const auto count = most.count();
  const timespec time{static_cast<time_t>(count / 1'000'000'000),
                      static_cast<long>(count % 1'000'000'000)};
  // Shared, not private: the word is in memory of several processes.
  const bool endless = most == std::chrono::nanoseconds::max();
  return ::syscall(SYS_futex, word, FUTEX_WAIT, value, endless ? nullptr : &time, nullptr, 0) ==
             0 ||
         errno != ETIMEDOUT;
}

/// Wakes so many of those who sleep there.
inline void futex_wake(const void* word, int sleepers) noexcept {
  ::syscall(SYS_futex, word, FUTEX_WAKE, sleepers, nullptr, nullptr, 0);
}

}  // namespace weft::hca::emu
