// QPs through the verbs: states and attributes, statuses of completions, SRQ, UD, ibv_wr_*.
#include <arpa/inet.h>

#include <memory>

#include "tests/verbs/two_sides.hpp"

namespace weft::test {
namespace {

class VerbsQp : public ::testing::Test {
 protected:
  void make(const SideOptions& options = {}) {
    left = std::make_unique<Side>(options);
    right = std::make_unique<Side>(options);
    left->fill(1);
  }
  void make_connected(const SideOptions& options = {}, int access = all_access) {
    make(options);
    connect(left->qp, right->qp, access);
    connect(right->qp, left->qp, access);
  }
  std::unique_ptr<Side> left;
  std::unique_ptr<Side> right;
};

TEST_F(VerbsQp, StatesAreGoneThroughInOrderWithTheirAttributes) {
  make();
  ibv_qp_attr attr = connection(right->qp->qp_num);
  attr.qp_state = IBV_QPS_RTS;
  EXPECT_EQ(ibv_modify_qp(left->qp, &attr, rts_mask), EINVAL);
  EXPECT_EQ(state_of(left->qp), IBV_QPS_RESET);
  attr.qp_state = IBV_QPS_INIT;
  attr.port_num = 1;
  EXPECT_EQ(ibv_modify_qp(left->qp, &attr, IBV_QP_STATE | IBV_QP_PORT), EINVAL) << "pkey, access";
  attr.port_num = 2;
  EXPECT_EQ(ibv_modify_qp(left->qp, &attr,
                          IBV_QP_STATE | IBV_QP_PORT | IBV_QP_PKEY_INDEX | IBV_QP_ACCESS_FLAGS),
            EINVAL);
  EXPECT_EQ(to_init(left->qp), 0);
  EXPECT_EQ(to_init(left->qp), 0) << "INIT to INIT";
  attr.port_num = 1;
  attr.qp_state = IBV_QPS_RTR;
  EXPECT_EQ(ibv_modify_qp(left->qp, &attr, rtr_mask & ~IBV_QP_RQ_PSN), EINVAL);
  EXPECT_EQ(ibv_modify_qp(left->qp, &attr, rtr_mask | IBV_QP_TIMEOUT), EINVAL);
  for (const auto spoil : {+[](ibv_qp_attr& a) { a.path_mtu = static_cast<ibv_mtu>(6); },
                           +[](ibv_qp_attr& a) { a.dest_qp_num = 1 << 24; },
                           +[](ibv_qp_attr& a) { a.min_rnr_timer = 32; },
                           +[](ibv_qp_attr& a) { a.max_dest_rd_atomic = 129; },
                           +[](ibv_qp_attr& a) { a.ah_attr.port_num = 0; }}) {
    ibv_qp_attr bad = attr;
    spoil(bad);
    EXPECT_EQ(ibv_modify_qp(left->qp, &bad, rtr_mask), EINVAL);
    EXPECT_EQ(state_of(left->qp), IBV_QPS_INIT);
  }
  EXPECT_EQ(to_rtr(left->qp, right->qp->qp_num), 0);
  EXPECT_NE(left->post(request(IBV_WR_SEND), left->sge(0, 8)), 0) << "no sends in RTR";
  attr.qp_state = IBV_QPS_RTS;
  attr.retry_cnt = 8;
  EXPECT_EQ(ibv_modify_qp(left->qp, &attr, rts_mask), EINVAL);
  EXPECT_EQ(to_rts(left->qp), 0);
  ibv_qp_init_attr init{};
  EXPECT_EQ(ibv_query_qp(left->qp, &attr, 0, &init), 0);
  EXPECT_EQ(attr.qp_state, IBV_QPS_RTS);
  EXPECT_EQ(attr.dest_qp_num, right->qp->qp_num);
  EXPECT_EQ(attr.sq_psn, 100u);
  EXPECT_EQ(init.cap.max_inline_data, 128u);
}

TEST_F(VerbsQp, EveryOperationOfRcArrives) {
  make_connected();
  right->post_recv(5, right->sge(1000, 5000));
  ibv_send_wr send = request(IBV_WR_SEND_WITH_IMM, 1);
  send.imm_data = htonl(77);
  ASSERT_EQ(left->post(send, left->sge(3, 4999)), 0);
  ibv_wc wc = right->wait();
  EXPECT_EQ(wc.status, IBV_WC_SUCCESS);
  EXPECT_EQ(wc.opcode, IBV_WC_RECV);
  EXPECT_EQ(wc.wr_id, 5u);
  EXPECT_EQ(wc.byte_len, 4999u);
  EXPECT_EQ(wc.wc_flags, static_cast<unsigned>(IBV_WC_WITH_IMM));
  EXPECT_EQ(ntohl(wc.imm_data), 77u);
  EXPECT_EQ(wc.qp_num, right->qp->qp_num);
  EXPECT_EQ(std::memcmp(right->memory.data() + 1000, left->memory.data() + 3, 4999), 0);
  EXPECT_EQ(left->wait(right.get()).wr_id, 1u);

  right->post_recv(6, right->sge(0, 1));
  ibv_send_wr write = rdma(IBV_WR_RDMA_WRITE_WITH_IMM, *right, 20000);
  write.imm_data = htonl(78);
  ASSERT_EQ(left->post(write, left->sge(0, 30000)), 0);
  wc = right->wait();
  EXPECT_EQ(wc.opcode, IBV_WC_RECV_RDMA_WITH_IMM);
  EXPECT_EQ(wc.byte_len, 30000u);
  EXPECT_EQ(std::memcmp(right->memory.data() + 20000, left->memory.data(), 30000), 0);
  EXPECT_EQ(left->wait(right.get()).opcode, IBV_WC_RDMA_WRITE);

  ASSERT_EQ(left->post(rdma(IBV_WR_RDMA_READ, *right, 20000), left->sge(40000, 5000)), 0);
  EXPECT_EQ(left->wait(right.get()).opcode, IBV_WC_RDMA_READ);
  EXPECT_EQ(std::memcmp(left->memory.data() + 40000, right->memory.data() + 20000, 5000), 0);

  const std::uint64_t start = 40;
  std::memcpy(right->memory.data(), &start, 8);
  right->hand_over();
  ibv_send_wr add = request(IBV_WR_ATOMIC_FETCH_AND_ADD);
  add.wr.atomic.remote_addr = right->address();
  add.wr.atomic.rkey = right->mr->rkey;
  add.wr.atomic.compare_add = 2;
  ASSERT_EQ(left->post(add, left->sge(0, 8)), 0);
  EXPECT_EQ(left->wait(right.get()).opcode, IBV_WC_FETCH_ADD);
  EXPECT_EQ(left->value<std::uint64_t>(0), 40u);
  ibv_send_wr swap = add;
  swap.opcode = IBV_WR_ATOMIC_CMP_AND_SWP;
  swap.wr.atomic.compare_add = 42;
  swap.wr.atomic.swap = 7;
  ASSERT_EQ(left->post(swap, left->sge(8, 8)), 0);
  EXPECT_EQ(left->wait(right.get()).opcode, IBV_WC_COMP_SWAP);
  EXPECT_EQ(left->value<std::uint64_t>(8), 42u);
  EXPECT_EQ(right->value<std::uint64_t>(0), 7u);
}

TEST_F(VerbsQp, LocalErrorsAreTheSendersOwn) {
  make_connected();
  ibv_sge foreign = left->sge(0, 8);
  foreign.lkey = left->mr->lkey + 1;
  ASSERT_EQ(left->post(rdma(IBV_WR_RDMA_WRITE, *right, 0), foreign), 0);
  ASSERT_EQ(left->post(request(IBV_WR_SEND, 9), left->sge(0, 8)), 0);
  EXPECT_EQ(left->wait().status, IBV_WC_LOC_PROT_ERR);
  const ibv_wc flushed = left->wait();
  EXPECT_EQ(flushed.status, IBV_WC_WR_FLUSH_ERR);
  EXPECT_EQ(flushed.wr_id, 9u);
  EXPECT_EQ(state_of(left->qp), IBV_QPS_ERR);
}

TEST_F(VerbsQp, WhatTheKeyOrTheQpForbidsIsARemoteAccessError) {
  make_connected({}, IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_READ);
  ASSERT_EQ(left->post(rdma(IBV_WR_RDMA_READ, *right, 0), left->sge(0, 8)), 0);
  EXPECT_EQ(left->wait(right.get()).status, IBV_WC_SUCCESS);
  right->post_recv(3, right->sge(0, 8));
  ASSERT_EQ(left->post(rdma(IBV_WR_RDMA_WRITE, *right, 0), left->sge(0, 8)), 0);
  EXPECT_EQ(left->wait(right.get()).status, IBV_WC_REM_ACCESS_ERR);
  EXPECT_EQ(right->wait().status, IBV_WC_WR_FLUSH_ERR) << "the responder's QP fails as well";
  EXPECT_EQ(state_of(right->qp), IBV_QPS_ERR);
  expect_event(right->context, IBV_EVENT_QP_ACCESS_ERR);
}

TEST_F(VerbsQp, KeysOfAnotherPdAreOfNoUseToAQp) {
  make_connected();
  ibv_pd* other = ibv_alloc_pd(right->context);
  ibv_mr* mr = ibv_reg_mr(other, right->memory.data(), 100, all_access);
  ibv_send_wr write = rdma(IBV_WR_RDMA_WRITE, *right, 0);
  write.wr.rdma.rkey = mr->rkey;
  ASSERT_EQ(left->post(write, left->sge(0, 8)), 0);
  EXPECT_EQ(left->wait(right.get()).status, IBV_WC_REM_ACCESS_ERR);
  EXPECT_EQ(ibv_dealloc_pd(other), EBUSY);
  EXPECT_EQ(ibv_dereg_mr(mr), 0);
  EXPECT_EQ(ibv_dealloc_pd(other), 0);
}

TEST_F(VerbsQp, AMessageTooLongForItsReceive) {
  make_connected();
  right->post_recv(1, right->sge(0, 99));
  ASSERT_EQ(left->post(request(IBV_WR_SEND), left->sge(0, 100)), 0);
  EXPECT_EQ(left->wait(right.get()).status, IBV_WC_REM_INV_REQ_ERR);
  EXPECT_EQ(right->wait().status, IBV_WC_LOC_LEN_ERR);
  EXPECT_EQ(right->memory[0], 0);
}

TEST_F(VerbsQp, RnrRetriesAndRetriesRunOut) {
  make_connected();
  ASSERT_EQ(left->post(request(IBV_WR_SEND), left->sge(0, 8)), 0);
  EXPECT_EQ(left->wait(right.get()).status, IBV_WC_RNR_RETRY_EXC_ERR);
  make();
  connect(left->qp, right->qp);
  ASSERT_EQ(left->post(request(IBV_WR_SEND), left->sge(0, 8)), 0);
  EXPECT_EQ(left->wait(right.get()).status, IBV_WC_RETRY_EXC_ERR) << "its peer is in RESET";
  make();
  EXPECT_EQ(to_init(left->qp), 0);
  EXPECT_EQ(to_rtr(left->qp, 0xffff00), 0);
  EXPECT_EQ(to_rts(left->qp), 0);
  ASSERT_EQ(left->post(request(IBV_WR_SEND), left->sge(0, 8)), 0);
  EXPECT_EQ(left->wait().status, IBV_WC_RETRY_EXC_ERR) << "nobody has the number";
}

TEST_F(VerbsQp, ALateReceiveIsNotAnError) {
  make();
  ibv_qp_attr patient = connection(right->qp->qp_num);
  EXPECT_EQ(to_init(left->qp), 0);
  EXPECT_EQ(to_rtr(left->qp, right->qp->qp_num), 0);
  patient.qp_state = IBV_QPS_RTS;
  patient.rnr_retry = 7;
  EXPECT_EQ(ibv_modify_qp(left->qp, &patient, rts_mask), 0);
  connect(right->qp, left->qp);
  for (std::uint64_t i = 0; i < 3; ++i) {
    ASSERT_EQ(left->post(request(IBV_WR_SEND, i), left->sge(i * 100, 100)), 0);
  }
  ASSERT_EQ(left->post(rdma(IBV_WR_RDMA_WRITE, *right, 5000), left->sge(300, 100)), 0);
  for (int i = 0; i < 300; ++i) {
    ibv_wc wc;
    ASSERT_EQ(ibv_poll_cq(left->cq, 1, &wc), 0);
    ASSERT_EQ(ibv_poll_cq(right->cq, 1, &wc), 0);
  }
  EXPECT_EQ(right->memory[5000], 0) << "a write does not overtake a send that waits";
  for (std::uint64_t i = 0; i < 3; ++i) right->post_recv(i, right->sge(i * 100, 100));
  for (std::uint64_t i = 0; i < 3; ++i) {
    const ibv_wc wc = left->wait(right.get());
    EXPECT_EQ(wc.wr_id, i);
    EXPECT_EQ(wc.status, IBV_WC_SUCCESS);
    EXPECT_EQ(right->wait().wr_id, i);
  }
  EXPECT_EQ(left->wait(right.get()).opcode, IBV_WC_RDMA_WRITE);
  EXPECT_EQ(std::memcmp(right->memory.data(), left->memory.data(), 300), 0);
  EXPECT_EQ(std::memcmp(right->memory.data() + 5000, left->memory.data() + 300, 100), 0);
}

TEST_F(VerbsQp, ErrorFlushesAndResetForgets) {
  make_connected();
  right->post_recv(1, right->sge(0, 8));
  ibv_qp_attr attr{};
  attr.qp_state = IBV_QPS_ERR;
  EXPECT_EQ(ibv_modify_qp(right->qp, &attr, IBV_QP_STATE), 0);
  right->post_recv(2, right->sge(0, 8));
  EXPECT_EQ(right->wait().status, IBV_WC_WR_FLUSH_ERR);
  attr.qp_state = IBV_QPS_RESET;
  EXPECT_EQ(ibv_modify_qp(right->qp, &attr, IBV_QP_STATE), 0);
  ibv_wc wc;
  EXPECT_EQ(ibv_poll_cq(right->cq, 1, &wc), 0) << "the second completion went with the reset";
  EXPECT_NE(right->post_recv(3, right->sge(0, 8)), 0) << "no receives in RESET";
}

TEST_F(VerbsQp, AnSrqServesItsQpsAndSaysWhenItRunsLow) {
  make_connected({IBV_QPT_RC, true});
  for (std::uint64_t i = 0; i < 3; ++i) right->post_recv(i, right->sge(i * 8, 8));
  ibv_srq_attr limit{0, 0, 2};
  EXPECT_EQ(ibv_modify_srq(right->srq, &limit, IBV_SRQ_LIMIT), 0);
  for (int i = 0; i < 2; ++i) {
    ASSERT_EQ(left->post(request(IBV_WR_SEND), left->sge(0, 8)), 0);
    EXPECT_EQ(left->wait(right.get()).status, IBV_WC_SUCCESS);
  }
  expect_event(right->context, IBV_EVENT_SRQ_LIMIT_REACHED);
  limit = {1 << 20, 0, 0};
  EXPECT_EQ(ibv_modify_srq(right->srq, &limit, IBV_SRQ_MAX_WR), EINVAL);
  EXPECT_EQ(ibv_destroy_srq(right->srq), EBUSY);
  ibv_qp_attr attr{};
  attr.qp_state = IBV_QPS_ERR;
  EXPECT_EQ(ibv_modify_qp(right->qp, &attr, IBV_QP_STATE), 0);
  expect_event(right->context, IBV_EVENT_QP_LAST_WQE_REACHED);
}

TEST_F(VerbsQp, DatagramsBringTheirSendersAddress) {
  make({IBV_QPT_UD});
  for (Side* side : {left.get(), right.get()}) {
    EXPECT_EQ(to_init(side->qp), 0);
    EXPECT_EQ(to_rtr(side->qp, 0), 0);
    EXPECT_EQ(to_rts(side->qp), 0);
  }
  ibv_ah_attr address{};
  address.dlid = 1;
  address.port_num = 1;
  ibv_ah* ah = ibv_create_ah(left->pd, &address);
  ASSERT_NE(ah, nullptr);
  ibv_send_wr wr = request(IBV_WR_SEND);
  wr.wr.ud = {ah, right->qp->qp_num, 18};
  ASSERT_EQ(left->post(wr, left->sge(0, 100)), 0);
  EXPECT_EQ(left->wait(right.get()).status, IBV_WC_SUCCESS) << "a wrong qkey is the sender's loss";
  right->post_recv(1, right->sge(0, 200));
  wr.wr.ud.remote_qkey = 17;
  ASSERT_EQ(left->post(wr, left->sge(0, 100)), 0);
  const ibv_wc wc = right->wait(left.get());
  EXPECT_EQ(wc.byte_len, 140u);
  EXPECT_EQ(wc.src_qp, left->qp->qp_num);
  EXPECT_EQ(wc.wc_flags & IBV_WC_GRH, static_cast<unsigned>(IBV_WC_GRH));
  EXPECT_EQ(std::memcmp(right->memory.data() + 40, left->memory.data(), 100), 0);
  ibv_wc copy = wc;
  ibv_ah* back =
      ibv_create_ah_from_wc(right->pd, &copy, reinterpret_cast<ibv_grh*>(right->memory.data()), 1);
  ASSERT_NE(back, nullptr);
  left->wait(right.get());
  left->post_recv(2, left->sge(1000, 200));
  wr.wr.ud = {back, wc.src_qp, 17};
  ASSERT_EQ(right->post(wr, right->sge(40, 60)), 0);
  EXPECT_EQ(left->wait(right.get()).byte_len, 100u);
  wr.wr.ud = {ah, right->qp->qp_num, 17};
  ASSERT_EQ(left->post(wr, left->sge(0, 4097)), 0);
  EXPECT_EQ(left->wait().status, IBV_WC_LOC_LEN_ERR) << "longer than the MTU";
  EXPECT_EQ(ibv_destroy_ah(ah), 0);
  EXPECT_EQ(ibv_destroy_ah(back), 0);
}

TEST_F(VerbsQp, UcWritesAndSendsWithoutPromises) {
  make_connected({IBV_QPT_UC});
  ASSERT_EQ(left->post(request(IBV_WR_SEND), left->sge(0, 8)), 0);
  EXPECT_EQ(left->wait(right.get()).status, IBV_WC_SUCCESS) << "lost: no receive";
  right->post_recv(4, right->sge(0, 8));
  ASSERT_EQ(left->post(request(IBV_WR_SEND), left->sge(0, 8)), 0);
  EXPECT_EQ(right->wait(left.get()).wr_id, 4u);
  left->wait(right.get());
  EXPECT_EQ(left->post(rdma(IBV_WR_RDMA_READ, *right, 0), left->sge(0, 8)), EINVAL);
}

TEST_F(VerbsQp, WrCallsPostAllOrNothing) {
  make_connected({IBV_QPT_RC, false, IBV_QP_EX_WITH_RDMA_WRITE | IBV_QP_EX_WITH_SEND});
  ibv_qp_ex* qp = ibv_qp_to_qp_ex(left->qp);
  ASSERT_NE(qp, nullptr);
  std::array<char, 8> text{"seven c"};
  ibv_wr_start(qp);
  qp->wr_id = 1;
  qp->wr_flags = IBV_SEND_SIGNALED;
  ibv_wr_rdma_write(qp, right->mr->rkey, right->address(500));
  ibv_wr_set_inline_data(qp, text.data(), text.size());
  text = {"gone"};
  qp->wr_id = 2;
  ibv_wr_rdma_write(qp, right->mr->rkey, right->address(600));
  ibv_wr_set_sge(qp, left->mr->lkey, left->address(), 50);
  EXPECT_EQ(ibv_wr_complete(qp), 0);
  EXPECT_EQ(left->wait(right.get()).wr_id, 1u);
  EXPECT_EQ(left->wait(right.get()).wr_id, 2u);
  EXPECT_STREQ(reinterpret_cast<char*>(right->memory.data() + 500), "seven c");
  EXPECT_EQ(std::memcmp(right->memory.data() + 600, left->memory.data(), 50), 0);
  ibv_wr_start(qp);
  for (int i = 0; i < 17; ++i) {
    ibv_wr_rdma_write(qp, right->mr->rkey, right->address(900));
    ibv_wr_set_sge(qp, left->mr->lkey, left->address(), 50);
  }
  EXPECT_EQ(ibv_wr_complete(qp), ENOMEM);
  ibv_wr_start(qp);
  ibv_wr_rdma_write(qp, right->mr->rkey, right->address(900));
  ibv_wr_abort(qp);
  for (int i = 0; i < 100; ++i) {
    ibv_wc wc;
    ASSERT_EQ(ibv_poll_cq(left->cq, 1, &wc), 0);
    ibv_poll_cq(right->cq, 0, nullptr);
  }
  EXPECT_EQ(right->memory[900], 0);
}

TEST_F(VerbsQp, BadRequestsAreRefusedAtOnce) {
  make_connected();
  ibv_send_wr wr = request(IBV_WR_SEND);
  wr.send_flags = IBV_SEND_INLINE;
  EXPECT_EQ(left->post(wr, left->sge(0, 129)), EINVAL);
  std::array<ibv_sge, 5> many;
  many.fill(left->sge(0, 1));
  wr.send_flags = 0;
  wr.sg_list = many.data();
  wr.num_sge = 5;
  ibv_send_wr* bad = nullptr;
  EXPECT_EQ(ibv_post_send(left->qp, &wr, &bad), EINVAL);
  EXPECT_EQ(bad, &wr);
  wr.opcode = IBV_WR_TSO;
  wr.num_sge = 1;
  EXPECT_EQ(ibv_post_send(left->qp, &wr, &bad), EINVAL);
  EXPECT_EQ(left->post(request(IBV_WR_ATOMIC_FETCH_AND_ADD), left->sge(0, 4)), EINVAL);
  for (int i = 0; i < 16; ++i) EXPECT_EQ(right->post_recv(0, right->sge(0, 1)), 0);
  EXPECT_EQ(right->post_recv(0, right->sge(0, 1)), ENOMEM);
  ibv_qp_init_attr attr{};
  attr.send_cq = left->cq;
  attr.recv_cq = left->cq;
  attr.qp_type = IBV_QPT_RC;
  attr.cap = {1u << 30, 1, 1, 1, 0};
  EXPECT_EQ(ibv_create_qp(left->pd, &attr), nullptr);
  EXPECT_EQ(errno, EINVAL);
  attr.cap = {1, 1, 1, 1, 0};
  attr.qp_type = IBV_QPT_RAW_PACKET;
  EXPECT_EQ(ibv_create_qp(left->pd, &attr), nullptr);
  EXPECT_EQ(errno, EOPNOTSUPP);
  EXPECT_EQ(ibv_destroy_cq(left->cq), EBUSY);
}

}  // namespace
}  // namespace weft::test
