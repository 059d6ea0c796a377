// The MCA parameters coll_weft_*, and the counters that MPI_T shows under that name.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>

namespace weft::coll {

struct Params {
  bool enable = true;
  int priority = 78;
  int verbose = 0;
  /// Largest payload, bytes of one process.
  std::size_t max_size = 2048;
  /// Device memory of one communicator, bytes.
  std::size_t board_size = 16 * 1024;
  /// Larger communicators are left to others.
  int max_ranks = 64;
  /// Processes of a node that work together; 0: all of them.
  int group_size = 0;
  char* device = nullptr;
};

extern Params params;

enum class Call : std::uint8_t { barrier, ibarrier, bcast, reduce, allreduce, allgather };
inline constexpr std::size_t calls = 6;

/// Why a call went to the module that was there before.
enum class Fallback : std::uint8_t {
  size,       ///< the payload is over the limit
  operation,  ///< a user's operation, or a predefined one on a derived datatype
  exhausted,  ///< no device memory left when the communicator first asked
  unusable,   ///< the device could not be opened by all
  not_ready,  ///< non-blocking, and no blocking call has set the communicator up yet
};
inline constexpr std::size_t fallbacks = 5;

struct Counts {
  std::array<std::atomic<std::uint64_t>, calls> done;
  std::array<std::atomic<std::uint64_t>, fallbacks> fallen_back;
  std::atomic<std::uint64_t> boards;

  void count(Call call) noexcept { bump(done[static_cast<std::size_t>(call)]); }
  void count(Fallback reason) noexcept { bump(fallen_back[static_cast<std::size_t>(reason)]); }
  /// Without MPI_THREAD_MULTIPLE a plain addition does.
  static void bump(std::atomic<std::uint64_t>& counter) noexcept;
};

extern Counts counts;
extern bool concurrent;

inline void Counts::bump(std::atomic<std::uint64_t>& counter) noexcept {
  if (concurrent) [[unlikely]] {
    counter.fetch_add(1, std::memory_order_relaxed);
  } else {
    counter.store(counter.load(std::memory_order_relaxed) + 1, std::memory_order_relaxed);
  }
}

void register_params();

}  // namespace weft::coll
