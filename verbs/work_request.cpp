#include "verbs/work_request.hpp"

#include <cerrno>

#include "verbs/address_handle.hpp"
#include "verbs/context.hpp"
#include "verbs/log.hpp"
#include "verbs/memory_window.hpp"
#include "verbs/queue_pair.hpp"

namespace weft::verbs {

using hca::emu::WrOpcode;

hca::emu::Destination destination_of(QueuePair& qp, ibv_ah* ah, std::uint32_t remote_qpn,
                                     std::uint32_t qkey) {
  if (ah == nullptr) refuse(EINVAL, "a datagram needs an address handle");
  constexpr std::uint32_t own_qkey = 0x80000000;
  return {AddressHandle::of(ah).reachable ? qp.owner().link_to(remote_qpn) : nullptr, remote_qpn,
          (qkey & own_qkey) != 0 ? qp.attr.qkey : qkey};
}

hca::emu::SendWr& translated(QueuePair& qp, const ibv_send_wr& wr) {
  thread_local hca::emu::SendWr result;
  constexpr unsigned known =
      IBV_SEND_FENCE | IBV_SEND_SIGNALED | IBV_SEND_SOLICITED | IBV_SEND_INLINE;
  if ((wr.send_flags & ~known) != 0) {
    refuse(EINVAL,
           "send_flags " + std::to_string(wr.send_flags) + ", known are " + std::to_string(known));
  }
  result.wr_id = wr.wr_id;
  result.signaled = qp.init.sq_sig_all != 0 || (wr.send_flags & IBV_SEND_SIGNALED) != 0;
  result.fence = (wr.send_flags & IBV_SEND_FENCE) != 0;
  result.solicited = (wr.send_flags & IBV_SEND_SOLICITED) != 0;
  result.inlined = (wr.send_flags & IBV_SEND_INLINE) != 0;
  result.invalidate = false;
  result.immediate = {};
  result.work = nullptr;
  result.sg_list.clear();
  for (int i = 0; i < wr.num_sge; ++i) {
    const ibv_sge& sge = wr.sg_list[i];
    result.sg_list.push_back({sge.addr, sge.length, sge.lkey});
  }
  switch (wr.opcode) {
    case IBV_WR_SEND_WITH_INV:
      result.invalidate = true;
      result.immediate = {wr.invalidate_rkey, false};
      result.opcode = WrOpcode::send;
      break;
    case IBV_WR_SEND_WITH_IMM:
      result.immediate = {wr.imm_data, true};
      [[fallthrough]];
    case IBV_WR_SEND:
      result.opcode = WrOpcode::send;
      break;
    case IBV_WR_RDMA_WRITE_WITH_IMM:
      result.immediate = {wr.imm_data, true};
      [[fallthrough]];
    case IBV_WR_RDMA_WRITE:
      result.opcode = WrOpcode::rdma_write;
      result.remote = {wr.wr.rdma.remote_addr, wr.wr.rdma.rkey};
      break;
    case IBV_WR_RDMA_READ:
      result.opcode = WrOpcode::rdma_read;
      result.remote = {wr.wr.rdma.remote_addr, wr.wr.rdma.rkey};
      break;
    case IBV_WR_ATOMIC_CMP_AND_SWP:
      result.opcode = WrOpcode::atomic_cmp_and_swp;
      result.remote = {wr.wr.atomic.remote_addr, wr.wr.atomic.rkey};
      result.compare = wr.wr.atomic.compare_add;
      result.operand = wr.wr.atomic.swap;
      break;
    case IBV_WR_ATOMIC_FETCH_AND_ADD:
      result.opcode = WrOpcode::atomic_fetch_and_add;
      result.remote = {wr.wr.atomic.remote_addr, wr.wr.atomic.rkey};
      result.operand = wr.wr.atomic.compare_add;
      break;
    case IBV_WR_LOCAL_INV:
      result.opcode = WrOpcode::local_inv;
      result.work = invalidation(qp, wr.invalidate_rkey);
      break;
    case IBV_WR_BIND_MW:
      result.opcode = WrOpcode::bind_mw;
      result.work = binding(qp, wr.bind_mw.mw, wr.bind_mw.rkey, wr.bind_mw.bind_info);
      break;
    default:
      refuse(EINVAL, "opcode " + std::to_string(wr.opcode) + " is none that the device has");
  }
  if (qp.qp_base.qp_type == IBV_QPT_UD) {
    result.destination = destination_of(qp, wr.wr.ud.ah, wr.wr.ud.remote_qpn, wr.wr.ud.remote_qkey);
  }
  return result;
}

bool is_of_qp(ibv_event_type type) noexcept {
  switch (type) {
    case IBV_EVENT_QP_FATAL:
    case IBV_EVENT_QP_REQ_ERR:
    case IBV_EVENT_QP_ACCESS_ERR:
    case IBV_EVENT_COMM_EST:
    case IBV_EVENT_SQ_DRAINED:
    case IBV_EVENT_PATH_MIG:
    case IBV_EVENT_PATH_MIG_ERR:
    case IBV_EVENT_QP_LAST_WQE_REACHED:
      return true;
    default:
      return false;
  }
}

}  // namespace weft::verbs
