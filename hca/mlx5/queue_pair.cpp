#include "hca/mlx5/queue_pair.hpp"

#include <algorithm>
#include <array>

namespace weft::hca::mlx5 {

std::uint8_t active_port(ibv_context* context) {
  ibv_device_attr device{};
  succeeded(ibv_query_device(context, &device), "cannot query the device");
  for (std::uint8_t port = 1; port <= device.phys_port_cnt; ++port) {
    ibv_port_attr attr{};
    if (ibv_query_port(context, port, &attr) == 0 && attr.state == IBV_PORT_ACTIVE) return port;
  }
  throw Error(ENETDOWN,
              "none of the device's " + std::to_string(device.phys_port_cnt) + " ports is active");
}

Endpoint endpoint_of(ibv_qp* qp, std::uint8_t port) {
  ibv_port_attr attr{};
  succeeded(ibv_query_port(qp->context, port, &attr), "cannot query the port");
  Endpoint endpoint{qp->qp_num, attr.lid, {}};
  succeeded(ibv_query_gid(qp->context, port, 0, &endpoint.gid), "the port has no GID");
  return endpoint;
}

void connect(ibv_qp* qp, std::uint8_t port, const Endpoint& peer) {
  ibv_port_attr link{};
  succeeded(ibv_query_port(qp->context, port, &link), "cannot query the port");
  ibv_qp_attr attr{};
  attr.qp_state = IBV_QPS_INIT;
  attr.port_num = port;
  attr.qp_access_flags = flags_of(Access::all);
  succeeded(ibv_modify_qp(qp, &attr,
                          IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS),
            "QP to INIT");
  attr = {};
  attr.qp_state = IBV_QPS_RTR;
  attr.path_mtu = link.active_mtu;
  attr.dest_qp_num = peer.qp;
  attr.max_dest_rd_atomic = 1;
  attr.min_rnr_timer = 12;  // 0.64 ms
  attr.ah_attr.port_num = port;
  attr.ah_attr.dlid = peer.lid;
  if (link.link_layer == IBV_LINK_LAYER_ETHERNET) {
    attr.ah_attr.is_global = 1;
    attr.ah_attr.grh.dgid = peer.gid;
    attr.ah_attr.grh.hop_limit = 64;
  }
  succeeded(ibv_modify_qp(qp, &attr,
                          IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN |
                              IBV_QP_RQ_PSN | IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER),
            "QP to RTR");
  attr = {};
  attr.qp_state = IBV_QPS_RTS;
  attr.timeout = 14;  // 67 ms
  attr.retry_cnt = 7;
  attr.rnr_retry = 7;
  attr.max_rd_atomic = 1;
  succeeded(ibv_modify_qp(qp, &attr,
                          IBV_QP_STATE | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY |
                              IBV_QP_SQ_PSN | IBV_QP_MAX_QP_RD_ATOMIC),
            "QP to RTS");
}

namespace {

WcStatus status_of(ibv_wc_status status) noexcept {
  switch (status) {
    case IBV_WC_SUCCESS:
      return WcStatus::success;
    case IBV_WC_LOC_LEN_ERR:
      return WcStatus::loc_len_err;
    case IBV_WC_LOC_PROT_ERR:
      return WcStatus::loc_prot_err;
    case IBV_WC_WR_FLUSH_ERR:
      return WcStatus::wr_flush_err;
    case IBV_WC_MW_BIND_ERR:
      return WcStatus::mw_bind_err;
    case IBV_WC_REM_INV_REQ_ERR:
      return WcStatus::rem_inv_req_err;
    case IBV_WC_REM_ACCESS_ERR:
      return WcStatus::rem_access_err;
    case IBV_WC_REM_OP_ERR:
      return WcStatus::rem_op_err;
    case IBV_WC_RETRY_EXC_ERR:
      return WcStatus::retry_exc_err;
    case IBV_WC_RNR_RETRY_EXC_ERR:
      return WcStatus::rnr_retry_exc_err;
    default:
      return WcStatus::loc_qp_op_err;
  }
}

}  // namespace

std::size_t CompletionQueue::poll(std::span<Completion> out) const {
  std::array<ibv_wc, 16> wc{};
  const auto most = static_cast<int>(std::min(out.size(), wc.size()));
  const int got = ibv_poll_cq(cq_.get(), most, wc.data());
  if (got < 0) throw Error(EIO, "the CQ cannot be polled");
  for (std::size_t i = 0; i < static_cast<std::size_t>(got); ++i) {
    out[i] = {wc[i].wr_id, status_of(wc[i].status), wc[i].byte_len};
  }
  return static_cast<std::size_t>(got);
}

namespace {

ibv_qp* create(const ProtectionDomain& pd, const CompletionQueue& cq, std::uint32_t depth) {
  ibv_qp_init_attr attr{};
  attr.send_cq = cq.get();
  attr.recv_cq = cq.get();
  attr.cap = {depth, depth, 1, 1, 0};
  attr.qp_type = IBV_QPT_RC;
  return made(ibv_create_qp(pd.get(), &attr),
              "no QP of " + std::to_string(depth) + " requests each way");
}

}  // namespace

QueuePair::QueuePair(const ProtectionDomain& pd, const CompletionQueue& cq, std::uint32_t depth)
    : port_(active_port(pd.get()->context)), qp_(create(pd, cq, depth)) {}

void QueuePair::post(ibv_send_wr& wr, std::uint64_t wr_id, ibv_sge& local) {
  wr.wr_id = wr_id;
  wr.sg_list = &local;
  wr.num_sge = 1;
  wr.send_flags = IBV_SEND_SIGNALED;
  ibv_send_wr* bad = nullptr;
  succeeded(ibv_post_send(qp_.get(), &wr, &bad), "cannot post a send request");
}

void QueuePair::send(std::uint64_t wr_id, ibv_sge local) {
  ibv_send_wr wr{};
  wr.opcode = IBV_WR_SEND;
  post(wr, wr_id, local);
}

void QueuePair::receive(std::uint64_t wr_id, ibv_sge local) {
  ibv_recv_wr wr{wr_id, nullptr, &local, 1};
  ibv_recv_wr* bad = nullptr;
  succeeded(ibv_post_recv(qp_.get(), &wr, &bad), "cannot post a receive request");
}

void QueuePair::write(std::uint64_t wr_id, ibv_sge local, std::uint64_t addr, std::uint32_t rkey) {
  ibv_send_wr wr{};
  wr.opcode = IBV_WR_RDMA_WRITE;
  wr.wr.rdma = {addr, rkey};
  post(wr, wr_id, local);
}

void QueuePair::read(std::uint64_t wr_id, ibv_sge local, std::uint64_t addr, std::uint32_t rkey) {
  ibv_send_wr wr{};
  wr.opcode = IBV_WR_RDMA_READ;
  wr.wr.rdma = {addr, rkey};
  post(wr, wr_id, local);
}

void QueuePair::fetch_add(std::uint64_t wr_id, ibv_sge local, std::uint64_t addr,
                          std::uint32_t rkey, std::uint64_t add) {
  ibv_send_wr wr{};
  wr.opcode = IBV_WR_ATOMIC_FETCH_AND_ADD;
  wr.wr.atomic = {addr, add, 0, rkey};
  post(wr, wr_id, local);
}

void QueuePair::compare_swap(std::uint64_t wr_id, ibv_sge local, std::uint64_t addr,
                             std::uint32_t rkey, std::uint64_t compare, std::uint64_t swap) {
  ibv_send_wr wr{};
  wr.opcode = IBV_WR_ATOMIC_CMP_AND_SWP;
  wr.wr.atomic = {addr, compare, swap, rkey};
  post(wr, wr_id, local);
}

}  // namespace weft::hca::mlx5
