// Work requests and completions, under the names of the IB specification (11.4).
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

#include "hca/emu/operation.hpp"
#include "hca/status.hpp"

namespace weft::hca::emu {

class Link;

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
  local_inv,
  bind_mw,
  local,  ///< other work of this process, in its turn
};

enum class WcOpcode : std::uint8_t {
  send,
  rdma_write,
  rdma_read,
  fetch_add,
  comp_swap,
  local_inv,
  bind_mw,
  local,
  recv,
  recv_rdma_with_imm,
};

/// Where a datagram goes.
struct Destination {
  std::shared_ptr<Link> link{};  ///< null: nobody is there, the datagram is lost
  std::uint32_t qp = 0;
  std::uint32_t qkey = 0;
};

struct SendWr {
  std::uint64_t wr_id = 0;
  WrOpcode opcode = WrOpcode::send;
  std::vector<Sge> sg_list{};
  RemoteMemory remote{};      ///< RDMA and atomics
  std::uint64_t operand = 0;  ///< atomics: what is added, or swapped in
  std::uint64_t compare = 0;  ///< atomic_cmp_and_swp
  Immediate immediate{};      ///< send, rdma_write
  bool signaled = true;
  bool fence = false;  ///< waits for all reads and atomics posted before
  bool solicited = false;
  bool inlined = false;       ///< the data is copied at posting, lkeys do not matter
  bool invalidate = false;    ///< send: `immediate.data` is a key that the receiver loses
  Destination destination{};  ///< UD
  /// local_inv, bind_mw, local: what is done, under the engine's lock, when it is this request's
  /// turn.
  std::function<WcStatus()> work{};
};

struct RecvWr {
  std::uint64_t wr_id = 0;
  std::vector<Sge> sg_list{};
};

struct WorkCompletion {
  std::uint64_t wr_id = 0;
  WcStatus status = WcStatus::success;
  WcOpcode opcode = WcOpcode::send;
  std::uint64_t byte_len = 0;
  Immediate immediate{};
  std::uint32_t qp_num = 0;
  std::uint32_t src_qp = 0;  ///< UD
  bool solicited = false;
  bool invalidated = false;  ///< `immediate.data` is the key that was invalidated
  bool has_grh = false;
};

}  // namespace weft::hca::emu
