// Memory through the verbs: registration, re-registration, windows, device memory, the null MR;
// completion events, the device's tables.
#include <memory>

#include "tests/verbs/two_sides.hpp"

namespace weft::test {
namespace {

class VerbsMemory : public ::testing::Test {
 protected:
  void SetUp() override {
    left = std::make_unique<Side>();
    right = std::make_unique<Side>();
    left->fill(1);
    connect(left->qp, right->qp);
    connect(right->qp, left->qp);
  }
  ibv_wc_status write(std::uint32_t rkey, std::uint64_t addr, std::uint32_t length) {
    ibv_send_wr wr = request(IBV_WR_RDMA_WRITE);
    wr.wr.rdma = {addr, rkey};
    EXPECT_EQ(left->post(wr, left->sge(0, length)), 0);
    return left->wait(right.get()).status;
  }
  void reconnect() {
    for (Side* side : {left.get(), right.get()}) {
      ibv_qp_attr attr{};
      attr.qp_state = IBV_QPS_RESET;
      EXPECT_EQ(ibv_modify_qp(side->qp, &attr, IBV_QP_STATE), 0);
    }
    connect(left->qp, right->qp);
    connect(right->qp, left->qp);
  }
  std::unique_ptr<Side> left;
  std::unique_ptr<Side> right;
};

TEST_F(VerbsMemory, BadRegistrationsAreRefused) {
  const auto refused = [&](void* addr, std::size_t length, unsigned access, int code) {
    errno = 0;
    EXPECT_EQ(ibv_reg_mr(left->pd, addr, length, access), nullptr);
    EXPECT_EQ(errno, code);
  };
  volatile unsigned write_only_remote = IBV_ACCESS_REMOTE_WRITE;
  volatile unsigned unknown = 1u << 19;
  refused(left->memory.data(), 100, write_only_remote, EINVAL);
  refused(left->memory.data(), 100, unknown, EOPNOTSUPP);
  refused(left->memory.data(), 0, IBV_ACCESS_LOCAL_WRITE, EINVAL);
  refused(reinterpret_cast<void*>(~std::uint64_t{0} - 10), 100, IBV_ACCESS_LOCAL_WRITE, EINVAL);
  refused(reinterpret_cast<void*>(4096), 100, IBV_ACCESS_LOCAL_WRITE, EFAULT);
  ibv_mr* carrier = ibv_reg_mr(left->pd, nullptr, 0, IBV_ACCESS_ZERO_BASED);
  ASSERT_NE(carrier, nullptr) << "the empty carrier of a layout";
  EXPECT_EQ(ibv_dereg_mr(carrier), 0);
}

TEST_F(VerbsMemory, AnotherFirstAddressNamesTheSameBytes) {
  ibv_mr* mr = ibv_reg_mr_iova(right->pd, right->memory.data() + 100, 50, 0x70000, all_access);
  ASSERT_NE(mr, nullptr);
  EXPECT_EQ(write(mr->rkey, 0x70000 + 10, 40), IBV_WC_SUCCESS);
  EXPECT_EQ(std::memcmp(right->memory.data() + 110, left->memory.data(), 40), 0);
  EXPECT_EQ(write(mr->rkey, 0x70000 + 11, 40), IBV_WC_REM_ACCESS_ERR);
  EXPECT_EQ(ibv_dereg_mr(mr), 0);
}

TEST_F(VerbsMemory, ReregistrationKeepsTheKeys) {
  ibv_mr* mr = ibv_reg_mr(right->pd, right->memory.data(), 100, IBV_ACCESS_LOCAL_WRITE);
  const std::uint32_t key = mr->rkey;
  EXPECT_EQ(write(key, right->address(), 8), IBV_WC_REM_ACCESS_ERR);
  EXPECT_EQ(ibv_rereg_mr(mr, IBV_REREG_MR_CHANGE_ACCESS, nullptr, nullptr, 0, all_access), 0);
  EXPECT_EQ(mr->rkey, key);
  reconnect();
  EXPECT_EQ(write(key, right->address(), 8), IBV_WC_SUCCESS);
  EXPECT_EQ(ibv_rereg_mr(mr, IBV_REREG_MR_CHANGE_TRANSLATION, nullptr, right->memory.data() + 1000,
                         200, 0),
            0);
  EXPECT_EQ(mr->length, 200u);
  EXPECT_EQ(write(key, right->address(1100), 100), IBV_WC_SUCCESS);
  EXPECT_EQ(std::memcmp(right->memory.data() + 1100, left->memory.data(), 100), 0);
  EXPECT_EQ(write(key, right->address(), 8), IBV_WC_REM_ACCESS_ERR) << "the old range";
  ibv_pd* other = ibv_alloc_pd(right->context);
  EXPECT_EQ(ibv_rereg_mr(mr, IBV_REREG_MR_CHANGE_PD, other, nullptr, 0, 0), 0);
  EXPECT_EQ(ibv_dealloc_pd(other), EBUSY);
  reconnect();
  EXPECT_EQ(write(key, right->address(1100), 8), IBV_WC_REM_ACCESS_ERR) << "the new PD";
  EXPECT_EQ(ibv_dereg_mr(mr), 0);
  EXPECT_EQ(ibv_dealloc_pd(other), 0);
}

TEST_F(VerbsMemory, BadReregistrationsLeaveTheOldRegion) {
  const auto input_error = [&](int flags, ibv_pd* pd, void* addr, std::size_t length, int access) {
    EXPECT_EQ(ibv_rereg_mr(right->mr, flags, pd, addr, length, access), IBV_REREG_MR_ERR_INPUT);
    EXPECT_EQ(errno, EINVAL);
  };
  input_error(1 << 3 /* IBV_REREG_MR_KEEP_VALID */, nullptr, nullptr, 0, 0);
  input_error(IBV_REREG_MR_CHANGE_TRANSLATION, nullptr, nullptr, 100, 0);
  input_error(IBV_REREG_MR_CHANGE_TRANSLATION, nullptr, right->memory.data(), 0, 0);
  input_error(IBV_REREG_MR_CHANGE_PD, nullptr, nullptr, 0, 0);
  input_error(IBV_REREG_MR_CHANGE_PD, left->pd, nullptr, 0, 0);
  input_error(IBV_REREG_MR_CHANGE_PD, right->pd, nullptr, 0, IBV_ACCESS_LOCAL_WRITE);
  input_error(IBV_REREG_MR_CHANGE_ACCESS, nullptr, nullptr, 0, IBV_ACCESS_REMOTE_WRITE);
  EXPECT_EQ(ibv_rereg_mr(right->mr, IBV_REREG_MR_CHANGE_TRANSLATION, nullptr,
                         reinterpret_cast<void*>(4096), 100, 0),
            IBV_REREG_MR_ERR_CMD);
  EXPECT_EQ(write(right->mr->rkey, right->address(), 8), IBV_WC_SUCCESS);
}

TEST_F(VerbsMemory, AWindowOfType1OpensAPartOfARegion) {
  ibv_mw* mw = ibv_alloc_mw(right->pd, IBV_MW_TYPE_1);
  ASSERT_NE(mw, nullptr);
  ibv_mw_bind bind{};
  bind.send_flags = IBV_SEND_SIGNALED;
  bind.bind_info = {right->mr, right->address(100), 50, IBV_ACCESS_REMOTE_WRITE};
  ASSERT_EQ(ibv_bind_mw(right->qp, mw, &bind), 0);
  EXPECT_EQ(right->wait().opcode, IBV_WC_BIND_MW);
  EXPECT_EQ(ibv_dereg_mr(right->mr), EBUSY);
  EXPECT_EQ(write(mw->rkey, right->address(110), 40), IBV_WC_SUCCESS);
  EXPECT_EQ(std::memcmp(right->memory.data() + 110, left->memory.data(), 40), 0);
  const std::uint32_t old = mw->rkey;
  bind.bind_info.length = 0;
  ASSERT_EQ(ibv_bind_mw(right->qp, mw, &bind), 0);
  EXPECT_EQ(right->wait().status, IBV_WC_SUCCESS);
  EXPECT_NE(mw->rkey, old);
  EXPECT_EQ(write(old, right->address(110), 8), IBV_WC_REM_ACCESS_ERR);
  EXPECT_EQ(ibv_dealloc_mw(mw), 0);
}

TEST_F(VerbsMemory, AWindowOfType2IsBoundInTheQueueAndInvalidatedByEitherSide) {
  ibv_mw* mw = ibv_alloc_mw(right->pd, IBV_MW_TYPE_2);
  const auto bind = [&](std::uint32_t rkey) {
    ibv_send_wr wr = request(IBV_WR_BIND_MW);
    wr.send_flags = IBV_SEND_SIGNALED;
    wr.bind_mw = {mw, rkey, {right->mr, right->address(200), 64, IBV_ACCESS_REMOTE_WRITE}};
    ibv_send_wr* bad = nullptr;
    const int code = ibv_post_send(right->qp, &wr, &bad);
    return code != 0 ? IBV_WC_FATAL_ERR : right->wait().status;
  };
  EXPECT_EQ(bind(mw->rkey ^ 0x100), IBV_WC_FATAL_ERR) << "a key of another index";
  const std::uint32_t first = ibv_inc_rkey(mw->rkey);
  EXPECT_EQ(bind(first), IBV_WC_SUCCESS);
  EXPECT_EQ(write(first, right->address(200), 64), IBV_WC_SUCCESS);
  ibv_send_wr invalidate = request(IBV_WR_LOCAL_INV);
  invalidate.send_flags = IBV_SEND_SIGNALED;
  invalidate.invalidate_rkey = first;
  ibv_send_wr* bad = nullptr;
  ASSERT_EQ(ibv_post_send(right->qp, &invalidate, &bad), 0);
  EXPECT_EQ(right->wait().opcode, IBV_WC_LOCAL_INV);
  const std::uint32_t second = ibv_inc_rkey(first);
  EXPECT_EQ(bind(second), IBV_WC_SUCCESS);
  right->post_recv(1, right->sge(0, 8));
  ibv_send_wr send = request(IBV_WR_SEND_WITH_INV);
  send.invalidate_rkey = second;
  ASSERT_EQ(left->post(send, left->sge(0, 8)), 0);
  const ibv_wc wc = right->wait(left.get());
  EXPECT_EQ(wc.wc_flags, static_cast<unsigned>(IBV_WC_WITH_INV));
  EXPECT_EQ(wc.invalidated_rkey, second);
  left->wait(right.get());
  EXPECT_EQ(write(second, right->address(200), 8), IBV_WC_REM_ACCESS_ERR);
  EXPECT_EQ(ibv_dealloc_mw(mw), 0);
}

TEST_F(VerbsMemory, DeviceMemoryTakesCopiesWritesAndAtomics) {
  ibv_device_attr_ex attr{};
  ASSERT_EQ(ibv_query_device_ex(right->context, nullptr, &attr), 0);
  EXPECT_GT(attr.max_dm_size, 0u);
  ibv_alloc_dm_attr wanted{attr.max_dm_size + 1, 0, 0};
  EXPECT_EQ(ibv_alloc_dm(right->context, &wanted), nullptr);
  EXPECT_EQ(errno, ENOMEM);
  wanted.length = 128;
  ibv_dm* dm = ibv_alloc_dm(right->context, &wanted);
  ASSERT_NE(dm, nullptr);
  const std::uint64_t five = 5;
  EXPECT_EQ(ibv_memcpy_to_dm(dm, 64, &five, 8), 0);
  EXPECT_EQ(ibv_memcpy_to_dm(dm, 121, &five, 8), EINVAL);
  constexpr unsigned access = IBV_ACCESS_ZERO_BASED | IBV_ACCESS_LOCAL_WRITE |
                              IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_ATOMIC;
  EXPECT_EQ(ibv_reg_dm_mr(right->pd, dm, 64, 65, access), nullptr);
  ibv_mr* mr = ibv_reg_dm_mr(right->pd, dm, 64, 64, access);
  ASSERT_NE(mr, nullptr);
  EXPECT_EQ(ibv_free_dm(dm), EBUSY);
  ibv_send_wr add = request(IBV_WR_ATOMIC_FETCH_AND_ADD);
  add.wr.atomic.remote_addr = 0;
  add.wr.atomic.rkey = mr->rkey;
  add.wr.atomic.compare_add = 3;
  ASSERT_EQ(left->post(add, left->sge(0, 8)), 0);
  EXPECT_EQ(left->wait(right.get()).status, IBV_WC_SUCCESS);
  EXPECT_EQ(left->value<std::uint64_t>(0), 5u);
  std::uint64_t now = 0;
  EXPECT_EQ(ibv_memcpy_from_dm(&now, dm, 64, 8), 0);
  EXPECT_EQ(now, 8u);
  EXPECT_EQ(ibv_dereg_mr(mr), 0);
  EXPECT_EQ(ibv_free_dm(dm), 0);
}

TEST_F(VerbsMemory, TheNullMrReadsAsZeros) {
  ibv_mr* null = ibv_alloc_null_mr(left->pd);
  ASSERT_NE(null, nullptr);
  right->fill(9);
  ASSERT_EQ(left->post(rdma(IBV_WR_RDMA_WRITE, *right, 0), {0, 50, null->lkey}), 0);
  EXPECT_EQ(left->wait(right.get()).status, IBV_WC_SUCCESS);
  EXPECT_EQ(right->memory[0], 0);
  EXPECT_EQ(right->memory[49], 0);
  EXPECT_NE(right->memory[50], 0);
  EXPECT_EQ(ibv_dereg_mr(null), 0);
}

TEST_F(VerbsMemory, AChannelBecomesReadableForWhatItWasArmed) {
  ASSERT_EQ(ibv_req_notify_cq(right->cq, 1), 0);
  for (std::uint64_t i = 0; i < 2; ++i) right->post_recv(i, right->sge(0, 8));
  ASSERT_EQ(left->post(request(IBV_WR_SEND), left->sge(0, 8)), 0);
  EXPECT_EQ(left->wait().status, IBV_WC_SUCCESS);  // executed by the helper: right is not polled
  EXPECT_FALSE(readable(right->channel->fd, 0)) << "not solicited";
  ibv_send_wr solicited = request(IBV_WR_SEND);
  solicited.send_flags = IBV_SEND_SOLICITED;
  ASSERT_EQ(left->post(solicited, left->sge(0, 8)), 0);
  ASSERT_TRUE(readable(right->channel->fd, 10000));
  ibv_cq* cq = nullptr;
  void* cq_context = nullptr;
  ASSERT_EQ(ibv_get_cq_event(right->channel, &cq, &cq_context), 0);
  EXPECT_EQ(cq, right->cq);
  EXPECT_EQ(cq_context, right.get());
  ibv_ack_cq_events(cq, 1);
  ASSERT_EQ(ibv_req_notify_cq(right->cq, 0), 0);
  EXPECT_FALSE(readable(right->channel->fd, 0)) << "the event told of both";
  EXPECT_EQ(right->wait().status, IBV_WC_SUCCESS);
  ASSERT_EQ(ibv_req_notify_cq(right->cq, 0), 0);
  EXPECT_TRUE(readable(right->channel->fd, 10000)) << "one was left when the other was polled";
  ASSERT_EQ(ibv_get_cq_event(right->channel, &cq, &cq_context), 0);
  ibv_ack_cq_events(cq, 1);
  right->wait();
}

TEST_F(VerbsMemory, AnOverrunCompletionQueueSaysSo) {
  ibv_cq* small = ibv_create_cq(left->context, 1, nullptr, nullptr, 0);
  EXPECT_EQ(ibv_resize_cq(small, 0), EINVAL);
  ibv_qp_init_attr attr{};
  attr.send_cq = small;
  attr.recv_cq = small;
  attr.qp_type = IBV_QPT_RC;
  attr.cap = {4, 4, 1, 1, 0};
  ibv_qp* qp = ibv_create_qp(left->pd, &attr);
  ASSERT_EQ(to_init(qp), 0);
  ibv_sge sge = left->sge(0, 8);
  for (std::uint64_t i = 0; i < 2; ++i) {
    ibv_recv_wr wr{i, nullptr, &sge, 1};
    ibv_recv_wr* bad = nullptr;
    EXPECT_EQ(ibv_post_recv(qp, &wr, &bad), 0);
  }
  ibv_qp_attr error{};
  error.qp_state = IBV_QPS_ERR;
  EXPECT_EQ(ibv_modify_qp(qp, &error, IBV_QP_STATE), 0);
  expect_event(left->context, IBV_EVENT_CQ_ERR);
  ibv_wc wc;
  EXPECT_LT(ibv_poll_cq(small, 1, &wc), 0);
  EXPECT_EQ(ibv_destroy_qp(qp), 0);
  EXPECT_EQ(ibv_destroy_cq(small), 0);
}

TEST_F(VerbsMemory, TablesAndParentDomains) {
  ibv_port_attr port{};
  EXPECT_EQ(ibv_query_port(left->context, 1, &port), 0);
  EXPECT_EQ(port.state, IBV_PORT_ACTIVE);
  EXPECT_EQ(ibv_query_port(left->context, 2, &port), EINVAL);
  ibv_gid gid{};
  EXPECT_EQ(ibv_query_gid(left->context, 1, 0, &gid), 0);
  EXPECT_EQ(ibv_query_gid(left->context, 1, 1, &gid), -1);
  ibv_gid_entry entry{};
  EXPECT_EQ(ibv_query_gid_table(left->context, &entry, 1, 0), 1);
  EXPECT_EQ(std::memcmp(&entry.gid, &gid, sizeof gid), 0);
  __be16 pkey = 0;
  EXPECT_EQ(ibv_query_pkey(left->context, 1, 0, &pkey), 0);
  EXPECT_EQ(ibv_get_pkey_index(left->context, 1, pkey), 0);
  ibv_td_init_attr td_attr{};
  ibv_td* td = ibv_alloc_td(left->context, &td_attr);
  ibv_parent_domain_init_attr attr{};
  attr.pd = left->pd;
  attr.td = td;
  ibv_pd* parent = ibv_alloc_parent_domain(left->context, &attr);
  ASSERT_NE(parent, nullptr);
  EXPECT_EQ(ibv_dealloc_td(td), EBUSY);
  EXPECT_EQ(ibv_dealloc_pd(left->pd), EBUSY);
  ibv_mr* mr = ibv_reg_mr(parent, left->memory.data(), 100, IBV_ACCESS_LOCAL_WRITE);
  ASSERT_EQ(left->post(rdma(IBV_WR_RDMA_WRITE, *right, 0), {left->address(), 8, mr->lkey}), 0);
  EXPECT_EQ(left->wait(right.get()).status, IBV_WC_SUCCESS) << "the same PD underneath";
  EXPECT_EQ(ibv_dereg_mr(mr), 0);
  EXPECT_EQ(ibv_dealloc_pd(parent), 0);
  EXPECT_EQ(ibv_dealloc_td(td), 0);
}

}  // namespace
}  // namespace weft::test
