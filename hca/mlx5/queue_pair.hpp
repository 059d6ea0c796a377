// Completion queues and queue pairs of type RC.
#pragma once

#include <infiniband/verbs.h>

#include <cstdint>
#include <span>

#include "hca/mlx5/context.hpp"
#include "hca/mlx5/handle.hpp"
#include "hca/mlx5/memory.hpp"
#include "hca/status.hpp"

namespace weft::hca::mlx5 {

/// The first port that is up, from 1. Throws hca::Error ENETDOWN.
std::uint8_t active_port(ibv_context* context);

/// What a peer must know to connect.
struct Endpoint {
  std::uint32_t qp = 0;
  std::uint16_t lid = 0;
  ibv_gid gid{};  ///< RoCE, and other subnets
};

Endpoint endpoint_of(ibv_qp* qp, std::uint8_t port);
/// INIT, RTR and RTS, with all accesses; the keys decide. Throws hca::Error.
void connect(ibv_qp* qp, std::uint8_t port, const Endpoint& peer);

struct Completion {
  std::uint64_t wr_id;
  WcStatus status;
  std::uint32_t byte_len;  ///< of what was received or read
};

class CompletionQueue {
 public:
  CompletionQueue(const Context& context, int entries) : CompletionQueue(context.get(), entries) {}
  CompletionQueue(ibv_context* context, int entries)
      : cq_(made(ibv_create_cq(context, entries, nullptr, nullptr, 0), "no CQ")) {}
  [[nodiscard]] ibv_cq* get() const noexcept { return cq_.get(); }
  /// Up to `out.size()` completions; returns how many. Throws hca::Error EIO.
  std::size_t poll(std::span<Completion> out) const;

 private:
  Handle<ibv_cq, ibv_destroy_cq> cq_;
};

/// Throws hca::Error with the errno of the call that failed.
class QueuePair {
 public:
  /// Room for `depth` requests each way, of one SGE each.
  QueuePair(const ProtectionDomain& pd, const CompletionQueue& cq, std::uint32_t depth);
  [[nodiscard]] ibv_qp* get() const noexcept { return qp_.get(); }
  [[nodiscard]] Endpoint endpoint() const { return endpoint_of(qp_.get(), port_); }
  void connect(const Endpoint& peer) { mlx5::connect(qp_.get(), port_, peer); }

  void send(std::uint64_t wr_id, ibv_sge local);
  void receive(std::uint64_t wr_id, ibv_sge local);
  void write(std::uint64_t wr_id, ibv_sge local, std::uint64_t addr, std::uint32_t rkey);
  void read(std::uint64_t wr_id, ibv_sge local, std::uint64_t addr, std::uint32_t rkey);
  /// On 8 bytes; the value before goes to `local`.
  void fetch_add(std::uint64_t wr_id, ibv_sge local, std::uint64_t addr, std::uint32_t rkey,
                 std::uint64_t add);
  void compare_swap(std::uint64_t wr_id, ibv_sge local, std::uint64_t addr, std::uint32_t rkey,
                    std::uint64_t compare, std::uint64_t swap);

 private:
  void post(ibv_send_wr& wr, std::uint64_t wr_id, ibv_sge& local);

  std::uint8_t port_;
  Handle<ibv_qp, ibv_destroy_qp> qp_;
};

}  // namespace weft::hca::mlx5
