// Work requests and completions, under the names of the IB specification (11.4).
#pragma once

#include <cstdint>
#include <vector>

#include "hca/emu/operation.hpp"
#include "hca/status.hpp"

namespace weft::hca::emu {

/// A piece of local memory: `length` bytes from `addr` on, which `lkey` covers. For a zero-based or
/// layout MR the address is an offset into it.
struct Sge {
  std::uint64_t addr = 0;
  std::uint64_t length = 0;
  std::uint32_t lkey = 0;
};

enum class WrOpcode : std::uint8_t {
  send,
  rdma_write,
  rdma_read,
  atomic_fetch_and_add,
  atomic_cmp_and_swp,
};

struct SendWr {
  std::uint64_t wr_id = 0;
  WrOpcode opcode = WrOpcode::send;
  std::vector<Sge> sg_list{};
  RemoteMemory remote{};      ///< RDMA and atomics
  std::uint64_t operand = 0;  ///< atomics: what is added, or swapped in
  std::uint64_t compare = 0;  ///< atomic_cmp_and_swp
  Immediate immediate{};      ///< send
  bool signaled = true;
  bool fence = false;  ///< waits for all reads and atomics posted before
};

struct RecvWr {
  std::uint64_t wr_id = 0;
  std::vector<Sge> sg_list{};
};

enum class WcOpcode : std::uint8_t { send, rdma_write, rdma_read, fetch_add, comp_swap, recv };

struct WorkCompletion {
  std::uint64_t wr_id = 0;
  WcStatus status = WcStatus::success;
  WcOpcode opcode = WcOpcode::send;
  std::uint64_t byte_len = 0;
  Immediate immediate{};
  std::uint32_t qp_num = 0;
};

}  // namespace weft::hca::emu
