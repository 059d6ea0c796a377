// ibv_wr_*: work requests put together call by call, posted all together or not at all.
#include <cerrno>
#include <cstring>
#include <deque>
#include <mutex>
#include <vector>

#include "verbs/context.hpp"
#include "verbs/log.hpp"
#include "verbs/memory_window.hpp"
#include "verbs/queue_pair.hpp"
#include "verbs/work_request.hpp"

namespace weft::verbs {

using hca::emu::SendWr;
using hca::emu::WrOpcode;

/// What has been put together since wr_start. Its mutex is held from there to wr_complete.
struct WorkRequestBuilder {
  std::mutex mutex;
  std::vector<SendWr> requests;
  std::size_t count = 0;
  std::deque<std::vector<std::byte>> inline_data;  ///< must not move
  int error = 0;
};

namespace {

WorkRequestBuilder& builder_of(ibv_qp_ex* qp) {
  return *QueuePair::of(qp).builder;
}

/// Remembers the first error; wr_complete returns it.
template <class Body>
void collected(ibv_qp_ex* qp, const char* call, Body body) {
  const int code = guarded(call, body);
  WorkRequestBuilder& builder = builder_of(qp);
  if (code != 0 && builder.error == 0) builder.error = code;
}

/// A new request; the old ones' vectors are used again.
SendWr& add(ibv_qp_ex* which, WrOpcode opcode) {
  WorkRequestBuilder& builder = builder_of(which);
  if (builder.count == builder.requests.size()) builder.requests.emplace_back();
  SendWr& wr = builder.requests[builder.count++];
  wr.wr_id = which->wr_id;
  wr.opcode = opcode;
  wr.sg_list.clear();
  wr.immediate = {};
  wr.signaled =
      QueuePair::of(which).init.sq_sig_all != 0 || (which->wr_flags & IBV_SEND_SIGNALED) != 0;
  wr.fence = (which->wr_flags & IBV_SEND_FENCE) != 0;
  wr.solicited = (which->wr_flags & IBV_SEND_SOLICITED) != 0;
  wr.inlined = false;
  wr.invalidate = false;
  wr.work = nullptr;
  return wr;
}

/// The request that the set calls are about; null without one.
SendWr* current(ibv_qp_ex* qp) {
  WorkRequestBuilder& builder = builder_of(qp);
  if (builder.count == 0) {
    builder.error = EINVAL;
    return nullptr;
  }
  return &builder.requests[builder.count - 1];
}

void atomic_cmp_swp(ibv_qp_ex* qp, std::uint32_t rkey, std::uint64_t addr, std::uint64_t compare,
                    std::uint64_t swap) {
  SendWr& wr = add(qp, WrOpcode::atomic_cmp_and_swp);
  wr.remote = {addr, rkey};
  wr.compare = compare;
  wr.operand = swap;
}

void atomic_fetch_add(ibv_qp_ex* qp, std::uint32_t rkey, std::uint64_t addr, std::uint64_t value) {
  SendWr& wr = add(qp, WrOpcode::atomic_fetch_and_add);
  wr.remote = {addr, rkey};
  wr.operand = value;
}

void bind_window(ibv_qp_ex* qp, ibv_mw* mw, std::uint32_t rkey, const ibv_mw_bind_info* info) {
  SendWr& wr = add(qp, WrOpcode::bind_mw);
  collected(qp, "ibv_wr_bind_mw", [&] { wr.work = binding(QueuePair::of(qp), mw, rkey, *info); });
}

void local_inv(ibv_qp_ex* qp, std::uint32_t rkey) {
  add(qp, WrOpcode::local_inv).work = invalidation(QueuePair::of(qp), rkey);
}

void rdma_read(ibv_qp_ex* qp, std::uint32_t rkey, std::uint64_t addr) {
  add(qp, WrOpcode::rdma_read).remote = {addr, rkey};
}

void rdma_write(ibv_qp_ex* qp, std::uint32_t rkey, std::uint64_t addr) {
  add(qp, WrOpcode::rdma_write).remote = {addr, rkey};
}

void rdma_write_imm(ibv_qp_ex* qp, std::uint32_t rkey, std::uint64_t addr, __be32 immediate) {
  SendWr& wr = add(qp, WrOpcode::rdma_write);
  wr.remote = {addr, rkey};
  wr.immediate = {immediate, true};
}

void send(ibv_qp_ex* qp) {
  add(qp, WrOpcode::send);
}

void send_imm(ibv_qp_ex* qp, __be32 immediate) {
  add(qp, WrOpcode::send).immediate = {immediate, true};
}

void send_inv(ibv_qp_ex* qp, std::uint32_t rkey) {
  SendWr& wr = add(qp, WrOpcode::send);
  wr.invalidate = true;
  wr.immediate = {rkey, false};
}

void set_ud_addr(ibv_qp_ex* qp, ibv_ah* ah, std::uint32_t remote_qpn, std::uint32_t qkey) {
  SendWr* wr = current(qp);
  if (wr == nullptr) return;
  collected(qp, "ibv_wr_set_ud_addr",
            [&] { wr->destination = destination_of(QueuePair::of(qp), ah, remote_qpn, qkey); });
}

void set_inline_data_list(ibv_qp_ex* qp, std::size_t count, const ibv_data_buf* buffers) {
  SendWr* wr = current(qp);
  if (wr == nullptr) return;
  // Copied now: the caller may use its memory again as soon as this returns.
  std::vector<std::byte>& data = builder_of(qp).inline_data.emplace_back();
  for (std::size_t i = 0; i < count; ++i) {
    const auto* from = static_cast<const std::byte*>(buffers[i].addr);
    data.insert(data.end(), from, from + buffers[i].length);
  }
  wr->inlined = true;
  wr->sg_list = {{reinterpret_cast<std::uint64_t>(data.data()), data.size(), 0}};
}

void set_inline_data(ibv_qp_ex* qp, void* addr, std::size_t length) {
  const ibv_data_buf buffer{addr, length};
  set_inline_data_list(qp, 1, &buffer);
}

void set_sge_list(ibv_qp_ex* qp, std::size_t count, const ibv_sge* sges) {
  SendWr* wr = current(qp);
  if (wr == nullptr) return;
  wr->sg_list.clear();
  for (std::size_t i = 0; i < count; ++i) {
    wr->sg_list.push_back({sges[i].addr, sges[i].length, sges[i].lkey});
  }
}

void set_sge(ibv_qp_ex* qp, std::uint32_t lkey, std::uint64_t addr, std::uint32_t length) {
  const ibv_sge sge{addr, length, lkey};
  set_sge_list(qp, 1, &sge);
}

void start(ibv_qp_ex* qp) {
  WorkRequestBuilder& builder = builder_of(qp);
  builder.mutex.lock();
  builder.count = 0;
  builder.inline_data.clear();
  builder.error = 0;
}

void abort(ibv_qp_ex* qp) {
  builder_of(qp).mutex.unlock();
}

int complete(ibv_qp_ex* qp) {
  WorkRequestBuilder& builder = builder_of(qp);
  const std::scoped_lock guard(std::adopt_lock, builder.mutex);
  if (builder.error != 0) return builder.error;
  return guarded("ibv_wr_complete", [&] {
    QueuePair::of(qp).core->post_send({builder.requests.data(), builder.count});
  });
}

constexpr std::uint64_t ud_operations = IBV_QP_EX_WITH_SEND | IBV_QP_EX_WITH_SEND_WITH_IMM;
constexpr std::uint64_t uc_operations = ud_operations | IBV_QP_EX_WITH_RDMA_WRITE |
                                        IBV_QP_EX_WITH_RDMA_WRITE_WITH_IMM |
                                        IBV_QP_EX_WITH_BIND_MW | IBV_QP_EX_WITH_LOCAL_INV;
constexpr std::uint64_t rc_operations =
    uc_operations | IBV_QP_EX_WITH_RDMA_READ | IBV_QP_EX_WITH_ATOMIC_CMP_AND_SWP |
    IBV_QP_EX_WITH_ATOMIC_FETCH_AND_ADD | IBV_QP_EX_WITH_SEND_WITH_INV;

}  // namespace

void set_send_operations(QueuePair& qp, std::uint64_t send_ops) {
  const std::uint64_t possible = qp.qp_base.qp_type == IBV_QPT_RC   ? rc_operations
                                 : qp.qp_base.qp_type == IBV_QPT_UC ? uc_operations
                                                                    : ud_operations;
  if ((send_ops & ~possible) != 0) {
    refuse(EOPNOTSUPP, "send_ops_flags " + std::to_string(send_ops) + ", QPs of the type have " +
                           std::to_string(possible));
  }
  qp.builder = std::make_shared<WorkRequestBuilder>();
  const auto has = [send_ops](std::uint64_t bit) { return (send_ops & bit) != 0; };
  if (has(IBV_QP_EX_WITH_ATOMIC_CMP_AND_SWP)) qp.wr_atomic_cmp_swp = atomic_cmp_swp;
  if (has(IBV_QP_EX_WITH_ATOMIC_FETCH_AND_ADD)) qp.wr_atomic_fetch_add = atomic_fetch_add;
  if (has(IBV_QP_EX_WITH_BIND_MW)) qp.wr_bind_mw = bind_window;
  if (has(IBV_QP_EX_WITH_LOCAL_INV)) qp.wr_local_inv = local_inv;
  if (has(IBV_QP_EX_WITH_RDMA_READ)) qp.wr_rdma_read = rdma_read;
  if (has(IBV_QP_EX_WITH_RDMA_WRITE)) qp.wr_rdma_write = rdma_write;
  if (has(IBV_QP_EX_WITH_RDMA_WRITE_WITH_IMM)) qp.wr_rdma_write_imm = rdma_write_imm;
  if (has(IBV_QP_EX_WITH_SEND)) qp.wr_send = send;
  if (has(IBV_QP_EX_WITH_SEND_WITH_IMM)) qp.wr_send_imm = send_imm;
  if (has(IBV_QP_EX_WITH_SEND_WITH_INV)) qp.wr_send_inv = send_inv;
  if (qp.qp_base.qp_type == IBV_QPT_UD) qp.wr_set_ud_addr = set_ud_addr;
  qp.wr_set_inline_data = set_inline_data;
  qp.wr_set_inline_data_list = set_inline_data_list;
  qp.wr_set_sge = set_sge;
  qp.wr_set_sge_list = set_sge_list;
  qp.wr_start = start;
  qp.wr_complete = complete;
  qp.wr_abort = abort;
}

}  // namespace weft::verbs
