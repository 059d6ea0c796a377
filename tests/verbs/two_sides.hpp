// Two contexts of the emulated device in one process, through stock libibverbs' header: a PD, a CQ
// with a channel, memory and a QP on each side. The program is linked with the interposing objects
// instead of having them preloaded.
#pragma once

#include <gtest/gtest.h>
#include <infiniband/verbs.h>
#include <poll.h>
#include <unistd.h>

#include <array>
#include <chrono>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <string>
#include <vector>

namespace weft::test {

inline ibv_context* open_device() {
  // A device of this test's own, so that a running job is not disturbed.
  static const bool named = [] {
    ::setenv("WEFT_DEVICE", ("test" + std::to_string(::getpid())).c_str(), 1);
    return true;
  }();
  EXPECT_TRUE(named);
  int count = 0;
  ibv_device** list = ibv_get_device_list(&count);
  EXPECT_GE(count, 1);
  ibv_context* context = ibv_open_device(list[count - 1]);
  ibv_free_device_list(list);
  return context;
}

constexpr int all_access = IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE |
                           IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_ATOMIC | IBV_ACCESS_MW_BIND;

struct SideOptions {
  ibv_qp_type type = IBV_QPT_RC;
  bool srq = false;
  std::uint64_t send_ops = 0;
  int cqe = 256;
};

struct Side {
  explicit Side(const SideOptions& options = {})
      : context(open_device()),
        pd(ibv_alloc_pd(context)),
        channel(ibv_create_comp_channel(context)),
        cq(ibv_create_cq(context, options.cqe, this, channel, 0)),
        memory(1 << 16),
        mr(ibv_reg_mr(pd, memory.data(), memory.size(), all_access)) {
    if (options.srq) {
      ibv_srq_init_attr srq_attr{};
      srq_attr.attr = {16, 1, 0};
      srq = ibv_create_srq(pd, &srq_attr);
    }
    ibv_qp_init_attr_ex attr{};
    attr.send_cq = cq;
    attr.recv_cq = cq;
    attr.srq = srq;
    attr.cap = {16, 16, 4, 4, 128};
    attr.qp_type = options.type;
    attr.pd = pd;
    attr.comp_mask = IBV_QP_INIT_ATTR_PD;
    if (options.send_ops != 0) {
      attr.comp_mask |= IBV_QP_INIT_ATTR_SEND_OPS_FLAGS;
      attr.send_ops_flags = options.send_ops;
    }
    qp = ibv_create_qp_ex(context, &attr);
    EXPECT_NE(qp, nullptr);
  }
  ~Side() {
    if (qp != nullptr) {
      EXPECT_EQ(ibv_destroy_qp(qp), 0);
    }
    if (srq != nullptr) {
      EXPECT_EQ(ibv_destroy_srq(srq), 0);
    }
    EXPECT_EQ(ibv_dereg_mr(mr), 0);
    EXPECT_EQ(ibv_destroy_cq(cq), 0);
    EXPECT_EQ(ibv_destroy_comp_channel(channel), 0);
    EXPECT_EQ(ibv_dealloc_pd(pd), 0);
    EXPECT_EQ(ibv_close_device(context), 0);
  }
  Side(const Side&) = delete;
  Side& operator=(const Side&) = delete;

  [[nodiscard]] ibv_sge sge(std::size_t offset, std::uint32_t length) const {
    return {reinterpret_cast<std::uint64_t>(memory.data()) + offset, length, mr->lkey};
  }
  [[nodiscard]] std::uint64_t address(std::size_t offset = 0) const {
    return reinterpret_cast<std::uint64_t>(memory.data()) + offset;
  }
  template <class Value>
  Value value(std::size_t offset) const {
    Value result;
    std::memcpy(&result, memory.data() + offset, sizeof result);
    return result;
  }
  void fill(unsigned seed) {
    for (std::size_t i = 0; i < memory.size(); ++i) {
      memory[i] = static_cast<std::uint8_t>(i * 7 + seed);
    }
    hand_over();
  }
  /// Between the test's use of this memory and the device's, or the other way round: in one process
  /// a sanitizer does not see that a completion came after what it tells of. The call takes the
  /// lock under which this side's helper works.
  void hand_over() const {
    ibv_qp_attr attr;
    ibv_qp_init_attr init;
    ibv_query_qp(qp, &attr, 0, &init);
  }
  int post_recv(std::uint64_t id, ibv_sge sge) const {
    ibv_recv_wr wr{id, nullptr, &sge, 1};
    ibv_recv_wr* bad = nullptr;
    return srq != nullptr ? ibv_post_srq_recv(srq, &wr, &bad) : ibv_post_recv(qp, &wr, &bad);
  }
  int post(ibv_send_wr wr, ibv_sge sge) const {
    wr.sg_list = &sge;
    wr.num_sge = 1;
    wr.send_flags |= IBV_SEND_SIGNALED;
    ibv_send_wr* bad = nullptr;
    return ibv_post_send(qp, &wr, &bad);
  }
  /// The next completion; status IBV_WC_GENERAL_ERR when none comes.
  ibv_wc wait(Side* other = nullptr) const {
    ibv_wc wc{};
    const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(20);
    while (std::chrono::steady_clock::now() < end) {
      if (ibv_poll_cq(cq, 1, &wc) == 1) {
        if (other != nullptr) other->hand_over();
        return wc;
      }
      if (other != nullptr) ibv_poll_cq(other->cq, 0, nullptr);
    }
    ADD_FAILURE() << "no completion came";
    wc.status = IBV_WC_GENERAL_ERR;
    return wc;
  }

  ibv_context* context;
  ibv_pd* pd;
  ibv_comp_channel* channel;
  ibv_cq* cq;
  std::vector<std::uint8_t> memory;
  ibv_mr* mr;
  ibv_srq* srq = nullptr;
  ibv_qp* qp = nullptr;
};

inline int to_init(ibv_qp* qp, int access = all_access) {
  ibv_qp_attr attr{};
  attr.qp_state = IBV_QPS_INIT;
  attr.port_num = 1;
  attr.qp_access_flags = static_cast<unsigned>(access);
  attr.qkey = 17;
  return ibv_modify_qp(qp, &attr,
                       IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT |
                           (qp->qp_type == IBV_QPT_UD ? IBV_QP_QKEY : IBV_QP_ACCESS_FLAGS));
}

constexpr int rtr_mask = IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN |
                         IBV_QP_RQ_PSN | IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER;
constexpr int rts_mask = IBV_QP_STATE | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY |
                         IBV_QP_SQ_PSN | IBV_QP_MAX_QP_RD_ATOMIC;

inline ibv_qp_attr connection(std::uint32_t peer) {
  ibv_qp_attr attr{};
  attr.path_mtu = IBV_MTU_1024;
  attr.dest_qp_num = peer;
  attr.rq_psn = 100;
  attr.sq_psn = 100;
  attr.max_dest_rd_atomic = 4;
  attr.max_rd_atomic = 4;
  attr.min_rnr_timer = 1;
  attr.timeout = 8;  // 1 ms
  attr.retry_cnt = 2;
  attr.rnr_retry = 2;
  attr.ah_attr.dlid = 1;
  attr.ah_attr.port_num = 1;
  return attr;
}

inline int to_rtr(ibv_qp* qp, std::uint32_t peer) {
  ibv_qp_attr attr = connection(peer);
  attr.qp_state = IBV_QPS_RTR;
  constexpr int rc_only = IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER;
  return ibv_modify_qp(qp, &attr,
                       qp->qp_type == IBV_QPT_UD   ? int{IBV_QP_STATE}
                       : qp->qp_type == IBV_QPT_UC ? rtr_mask & ~rc_only
                                                   : rtr_mask);
}

inline int to_rts(ibv_qp* qp) {
  ibv_qp_attr attr = connection(0);
  attr.qp_state = IBV_QPS_RTS;
  return ibv_modify_qp(qp, &attr,
                       qp->qp_type == IBV_QPT_RC ? rts_mask : IBV_QP_STATE | IBV_QP_SQ_PSN);
}

inline void connect(ibv_qp* qp, const ibv_qp* peer, int access = all_access) {
  EXPECT_EQ(to_init(qp, access), 0);
  EXPECT_EQ(to_rtr(qp, peer->qp_num), 0);
  EXPECT_EQ(to_rts(qp), 0);
}

inline ibv_qp_state state_of(ibv_qp* qp) {
  ibv_qp_attr attr{};
  ibv_qp_init_attr init{};
  EXPECT_EQ(ibv_query_qp(qp, &attr, IBV_QP_STATE, &init), 0);
  return attr.qp_state;
}

inline ibv_send_wr request(ibv_wr_opcode opcode, std::uint64_t id = 0) {
  ibv_send_wr wr{};
  wr.wr_id = id;
  wr.opcode = opcode;
  return wr;
}

inline ibv_send_wr rdma(ibv_wr_opcode opcode, const Side& to, std::size_t offset) {
  ibv_send_wr wr = request(opcode);
  wr.wr.rdma.remote_addr = to.address(offset);
  wr.wr.rdma.rkey = to.mr->rkey;
  return wr;
}

inline bool readable(int fd, int ms) {
  pollfd descriptor{fd, POLLIN, 0};
  return ::poll(&descriptor, 1, ms) == 1;
}

/// Takes the next asynchronous event, which must be of this type.
inline void expect_event(ibv_context* context, ibv_event_type type) {
  ASSERT_TRUE(readable(context->async_fd, 10000));
  ibv_async_event event{};
  ASSERT_EQ(ibv_get_async_event(context, &event), 0);
  EXPECT_EQ(event.event_type, type) << ibv_event_type_str(event.event_type);
  ibv_ack_async_event(&event);
}

}  // namespace weft::test
