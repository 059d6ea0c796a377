// Sleeping on a word of shared memory, and waking who sleeps there.
#pragma once

#include <linux/futex.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <chrono>
#include <cstdint>
#include <ctime>

namespace weft::dm {

/// Sleeps while `*word` is `value`, until somebody wakes or `most` is over.
inline void futex_wait(const std::uint32_t* word, std::uint32_t value,
                       std::chrono::nanoseconds most) noexcept {
  const auto count = most.count();
  const timespec time{static_cast<time_t>(count / 1'000'000'000),
                      static_cast<long>(count % 1'000'000'000)};
  // Shared, not private: the word is in memory of several processes.
  ::syscall(SYS_futex, word, FUTEX_WAIT, value, &time, nullptr, 0);
}

inline void futex_wake_all(const std::uint32_t* word) noexcept {
  ::syscall(SYS_futex, word, FUTEX_WAKE, INT32_MAX, nullptr, nullptr, 0);
}

}  // namespace weft::dm
