// What one process tells another so that it can connect to its context.
#pragma once

#include <cstdint>

namespace weft::hca::emu {

/// Trivially copyable; UCX carries it as device and interface address.
struct Address {
  std::uint64_t host;        ///< host_id(): equal for openers of one device on one node
  std::uint64_t segment_id;  ///< random; also written in the segment itself
  std::uint64_t start_time;  ///< of the process, field 22 of /proc/PID/stat
  std::uint32_t pid;
  std::uint32_t fd;  ///< of the segment's memfd, opened by peers as /proc/PID/fd/FD
  std::uint32_t uid;
  std::uint32_t abi;  ///< version of the segment's structure
  bool operator==(const Address&) const = default;
};

}  // namespace weft::hca::emu
