// Who a process is: pid and start time together, so that a reused pid is not taken for its
// predecessor.
#pragma once

#include <cstdint>
#include <string_view>

namespace weft::hca::emu {

struct ProcessId {
  std::uint32_t pid = 0;
  std::uint64_t start_time = 0;  ///< field 22 of /proc/PID/stat, clock ticks since boot
  bool operator==(const ProcessId&) const = default;

  /// 64 bits that name the process in shared memory; never 0.
  [[nodiscard]] std::uint64_t tag() const noexcept {
    return (std::uint64_t{pid} << 32) | (start_time & 0xffffffffu);
  }
};

/// The calling process. Not cached across fork.
ProcessId this_process();

/// Start time of a process, 0 when there is none (a zombie counts as none).
std::uint64_t start_time_of(std::uint32_t pid) noexcept;

/// True when the process that `tag` was made of still runs.
bool process_alive(std::uint64_t tag) noexcept;

/// Boot id, pid namespace and the device's name, hashed: equal for openers of one device that can
/// reach each other's /proc.
std::uint64_t host_id(std::string_view device);

}  // namespace weft::hca::emu
