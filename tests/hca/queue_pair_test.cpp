// RC queue pairs: send and receive, RDMA and atomics through work requests, order of completions,
// RNR, errors that end the QP; protection domains and device memory.
#include "hca/emu/queue_pair.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <memory>
#include <vector>

#include "hca/emu/device_memory.hpp"
#include "tests/hca/two_contexts.hpp"
#include "tests/seed.hpp"

namespace weft::test {
namespace {

using hca::Access;
using hca::Dimension;
using hca::Layout;
using hca::WcStatus;
using hca::emu::CompletionQueue;
using hca::emu::DeviceMemory;
using hca::emu::MemoryRegion;
using hca::emu::ProtectionDomain;
using hca::emu::QpAttributes;
using hca::emu::QpState;
using hca::emu::QueuePair;
using hca::emu::SendWr;
using hca::emu::Sge;
using hca::emu::WcOpcode;
using hca::emu::WorkCompletion;
using hca::emu::WrOpcode;

/// One side: its PD, queues, QP, and a buffer with a region.
struct Side {
  Side(hca::emu::Context& context, std::size_t bytes)
      : pd(context),
        cq(context, 4096),
        qp(context, pd, cq, cq),
        memory(bytes),
        mr(pd.register_memory(memory.data(), bytes, Access::all)) {}

  [[nodiscard]] Sge sge(std::size_t offset, std::uint64_t length) const {
    return {mr->addr() + offset, length, mr->lkey()};
  }

  ProtectionDomain pd;
  CompletionQueue cq;
  QueuePair qp;
  std::vector<std::byte> memory;
  std::unique_ptr<MemoryRegion> mr;
};

class Rc : public TwoContexts {
 protected:
  void SetUp() override {
    TwoContexts::SetUp();
    connect();
  }
  void TearDown() override {
    left.reset();
    right.reset();
  }
  void connect(const QpAttributes& attributes = {}) {
    left.reset();
    right.reset();
    left = std::make_unique<Side>(*a, 1 << 20);
    right = std::make_unique<Side>(*b, 1 << 20);
    left->qp.connect(b->address(), right->qp.number(), attributes);
    right->qp.connect(a->address(), left->qp.number(), attributes);
    for (std::size_t i = 0; i < left->memory.size(); ++i) {
      left->memory[i] = static_cast<std::byte>(i * 11);
    }
  }
  /// Polls both sides until `count` completions have come to `side`.
  std::vector<WorkCompletion> wait(Side& side, std::size_t count) {
    std::vector<WorkCompletion> result;
    for (int i = 0; i < 1'000'000 && result.size() < count; ++i) {
      for (Side* polled : {left.get(), right.get()}) {
        WorkCompletion completion;
        if (polled->cq.poll({&completion, 1}) == 0) continue;
        (polled == &side ? result : others).push_back(completion);
      }
    }
    EXPECT_EQ(result.size(), count);
    result.resize(count);
    return result;
  }

  std::unique_ptr<Side> left;
  std::unique_ptr<Side> right;
  std::vector<WorkCompletion> others;  ///< completions of the side that was not waited for
};

TEST_F(Rc, SendsLandInTheReceivesInOrder) {
  Random random(10);
  std::size_t at = 0;
  std::vector<std::uint64_t> lengths;
  for (std::uint64_t i = 0; i < 50; ++i) {
    lengths.push_back(static_cast<std::uint64_t>(random.chance(0.2) ? 0 : random.in(1, 20000)));
    right->qp.post_recv({i, {right->sge(at, 20000)}});
    at += 20000;
  }
  for (std::uint64_t i = 0; i < 50; ++i) {
    SendWr wr;
    wr.wr_id = 100 + i;
    wr.sg_list = {left->sge(i, lengths[i])};
    if (i % 2 == 0) wr.immediate = {static_cast<std::uint32_t>(i), true};
    left->qp.post_send(wr);
  }
  const auto received = wait(*right, 50);
  for (std::uint64_t i = 0; i < 50; ++i) {
    EXPECT_EQ(received[i].wr_id, i);
    EXPECT_EQ(received[i].status, WcStatus::success);
    EXPECT_EQ(received[i].opcode, WcOpcode::recv);
    EXPECT_EQ(received[i].byte_len, lengths[i]);
    EXPECT_EQ(received[i].immediate.present, i % 2 == 0);
    EXPECT_EQ(received[i].immediate.data, i % 2 == 0 ? i : 0);
    EXPECT_TRUE(std::equal(left->memory.begin() + static_cast<std::ptrdiff_t>(i),
                           left->memory.begin() + static_cast<std::ptrdiff_t>(i + lengths[i]),
                           right->memory.begin() + static_cast<std::ptrdiff_t>(i * 20000)))
        << seed_note(10);
  }
  others.resize(std::min<std::size_t>(others.size(), 50));
  while (others.size() < 50) others.push_back(wait(*left, 1)[0]);
  for (std::uint64_t i = 0; i < 50; ++i) EXPECT_EQ(others[i].wr_id, 100 + i);
}

TEST_F(Rc, SeveralPiecesOfMemoryOnBothSides) {
  right->qp.post_recv({1, {right->sge(500, 10), right->sge(100, 300), right->sge(0, 90)}});
  SendWr wr;
  wr.sg_list = {left->sge(1000, 150), left->sge(0, 0), left->sge(10, 150)};
  left->qp.post_send(wr);
  EXPECT_EQ(wait(*right, 1)[0].byte_len, 300u);
  std::vector<std::byte> sent(left->memory.begin() + 1000, left->memory.begin() + 1150);
  sent.insert(sent.end(), left->memory.begin() + 10, left->memory.begin() + 160);
  std::vector<std::byte> got(right->memory.begin() + 500, right->memory.begin() + 510);
  got.insert(got.end(), right->memory.begin() + 100, right->memory.begin() + 390);
  EXPECT_EQ(got, sent);
}

TEST_F(Rc, LayoutRegionsGatherAndScatter) {
  const std::vector<Dimension> column{{1000, 100}};
  const auto layout = Layout::strided(0, 8, column);
  const auto from = left->pd.register_layout(left->memory.data(), layout, Access::all);
  const auto to = right->pd.register_layout(right->memory.data() + 3, layout, Access::all);
  SendWr wr;
  wr.opcode = WrOpcode::rdma_write;
  wr.sg_list = {{80, 7000, from->lkey()}};
  wr.remote = {160, to->rkey()};
  left->qp.post_send(wr);
  EXPECT_EQ(wait(*left, 1)[0].status, WcStatus::success);
  for (std::size_t i = 0; i < 7000; ++i) {
    const std::size_t source = (80 + i) / 8 * 100 + (80 + i) % 8;
    const std::size_t target = 3 + (160 + i) / 8 * 100 + (160 + i) % 8;
    ASSERT_EQ(right->memory[target], left->memory[source]) << i;
  }
}

TEST_F(Rc, ReadsAndAtomicsBringTheirResults) {
  const std::uint64_t start = 40;
  std::memcpy(right->memory.data(), &start, 8);
  SendWr add;
  add.opcode = WrOpcode::atomic_fetch_and_add;
  add.sg_list = {left->sge(0, 8)};
  add.remote = {right->mr->addr(), right->mr->rkey()};
  add.operand = 2;
  SendWr swap = add;
  swap.opcode = WrOpcode::atomic_cmp_and_swp;
  swap.sg_list = {left->sge(8, 8)};
  swap.compare = 42;
  swap.operand = 7;
  SendWr read = add;
  read.opcode = WrOpcode::rdma_read;
  read.sg_list = {left->sge(16, 8)};
  read.fence = true;
  left->qp.post_send(add);
  left->qp.post_send(swap);
  left->qp.post_send(read);
  const auto done = wait(*left, 3);
  EXPECT_EQ(done[0].opcode, WcOpcode::fetch_add);
  EXPECT_EQ(done[1].opcode, WcOpcode::comp_swap);
  EXPECT_EQ(done[2].opcode, WcOpcode::rdma_read);
  std::uint64_t results[3];
  std::memcpy(results, left->memory.data(), sizeof results);
  EXPECT_EQ(results[0], 40u);
  EXPECT_EQ(results[1], 42u);
  EXPECT_EQ(results[2], 7u);
}

TEST_F(Rc, ASendWaitsForALateReceive) {
  SendWr wr;
  wr.sg_list = {left->sge(0, 5000)};
  left->qp.post_send(wr);
  for (int i = 0; i < 2000; ++i) {
    WorkCompletion none;
    ASSERT_EQ(left->cq.poll({&none, 1}), 0u) << hca::to_string(none.status) << " after " << i;
    ASSERT_EQ(right->cq.poll({&none, 1}), 0u);
  }
  right->qp.post_recv({9, {right->sge(0, 5000)}});
  EXPECT_EQ(wait(*right, 1)[0].wr_id, 9u);
  EXPECT_TRUE(std::equal(left->memory.begin(), left->memory.begin() + 5000, right->memory.begin()));
}

TEST_F(Rc, RnrRetriesRunOut) {
  QpAttributes attributes;
  attributes.rnr_retry = 2;
  connect(attributes);
  SendWr wr;
  wr.sg_list = {left->sge(0, 8)};
  left->qp.post_send(wr);
  left->qp.post_send(wr);
  const auto done = wait(*left, 2);
  EXPECT_EQ(done[0].status, WcStatus::rnr_retry_exc_err);
  EXPECT_EQ(done[1].status, WcStatus::wr_flush_err);
  EXPECT_EQ(left->qp.state(), QpState::error);
}

TEST_F(Rc, AMessageLongerThanItsReceiveFailsOnBothSides) {
  right->qp.post_recv({1, {right->sge(0, 100)}});
  right->qp.post_recv({2, {right->sge(0, 100)}});
  SendWr wr;
  wr.sg_list = {left->sge(0, 101)};
  left->qp.post_send(wr);
  const auto received = wait(*right, 2);
  EXPECT_EQ(received[0].status, WcStatus::loc_len_err);
  EXPECT_EQ(received[1].status, WcStatus::wr_flush_err);
  if (others.empty()) others = wait(*left, 1);
  EXPECT_EQ(others[0].status, WcStatus::rem_inv_req_err);
  EXPECT_EQ(right->memory[0], std::byte{0});
}

TEST_F(Rc, ForeignKeysAreProtectionErrors) {
  ProtectionDomain other(*a);
  const auto foreign = other.register_memory(left->memory.data(), 100, Access::all);
  SendWr wr;
  wr.opcode = WrOpcode::rdma_write;
  wr.sg_list = {{foreign->addr(), 10, foreign->lkey()}};
  wr.remote = {right->mr->addr(), right->mr->rkey()};
  left->qp.post_send(wr);
  EXPECT_EQ(wait(*left, 1)[0].status, WcStatus::loc_prot_err);
  EXPECT_EQ(left->qp.state(), QpState::error);
}

TEST_F(Rc, ARemoteErrorFlushesWhatWasPostedAfterIt) {
  SendWr bad;
  bad.opcode = WrOpcode::rdma_read;
  bad.sg_list = {left->sge(0, 10)};
  bad.remote = {right->mr->addr() + right->mr->length() - 9, right->mr->rkey()};
  SendWr send;
  send.wr_id = 5;
  send.sg_list = {left->sge(0, 10)};
  left->qp.post_send(bad);
  left->qp.post_send(send);
  const auto done = wait(*left, 2);
  EXPECT_EQ(done[0].status, WcStatus::rem_access_err);
  EXPECT_NE(done[1].status, WcStatus::success);
  EXPECT_EQ(done[1].wr_id, 5u);
}

TEST_F(Rc, BadRequestsAreRefusedAtPosting) {
  SendWr wr;
  wr.sg_list.assign(17, left->sge(0, 1));
  EXPECT_THROW(left->qp.post_send(wr), hca::Error);
  EXPECT_THROW(left->qp.post_recv({1, wr.sg_list}), hca::Error);
  wr.sg_list = {left->sge(0, 4)};
  wr.opcode = WrOpcode::atomic_fetch_and_add;
  EXPECT_THROW(left->qp.post_send(wr), hca::Error);
  for (int i = 0; i < 128; ++i) left->qp.post_recv({1, {left->sge(0, 1)}});
  EXPECT_THROW(left->qp.post_recv({1, {left->sge(0, 1)}}), hca::Error);
  EXPECT_THROW(left->qp.connect(b->address(), right->qp.number()), hca::Error);
  EXPECT_THROW(
      left->pd.register_memory(reinterpret_cast<void*>(16), ~std::uint64_t{0}, Access::all),
      hca::Error);
}

TEST_F(Rc, DeviceMemoryTakesWritesAndAtomics) {
  DeviceMemory memory(*b, 256);
  const auto mr = right->pd.register_device_memory(memory, Access::all);
  SendWr write;
  write.opcode = WrOpcode::rdma_write;
  write.sg_list = {left->sge(0, 256)};
  write.remote = {0, mr->rkey()};
  left->qp.post_send(write);
  EXPECT_EQ(wait(*left, 1)[0].status, WcStatus::success);
  std::vector<std::byte> back(256);
  memory.copy_from(0, back);
  EXPECT_TRUE(std::equal(back.begin(), back.end(), left->memory.begin()));
  const std::uint64_t one = 1;
  memory.copy_to(64, std::as_bytes(std::span(&one, 1)));
  SendWr add = write;
  add.opcode = WrOpcode::atomic_fetch_and_add;
  add.sg_list = {left->sge(0, 8)};
  add.remote = {64, mr->rkey()};
  add.operand = 4;
  left->qp.post_send(add);
  EXPECT_EQ(wait(*left, 1)[0].status, WcStatus::success);
  std::uint64_t now = 0;
  memory.copy_from(64, std::as_writable_bytes(std::span(&now, 1)));
  EXPECT_EQ(now, 5u);
  EXPECT_THROW(memory.copy_from(250, back), hca::Error);
  EXPECT_THROW(memory.copy_to(~std::size_t{0}, back), hca::Error);
  SendWr past = write;
  past.remote = {1, mr->rkey()};
  left->qp.post_send(past);
  EXPECT_EQ(wait(*left, 1)[0].status, WcStatus::rem_access_err);
}

TEST_F(Rc, AFullCompletionQueueIsReported) {
  CompletionQueue small(*a, 2);
  QueuePair qp(*a, left->pd, small, small);
  QueuePair peer(*b, right->pd, right->cq, right->cq);
  qp.connect(b->address(), peer.number());
  peer.connect(a->address(), qp.number());
  SendWr wr;
  wr.opcode = WrOpcode::rdma_write;
  wr.sg_list = {left->sge(0, 8)};
  wr.remote = {right->mr->addr(), right->mr->rkey()};
  for (int i = 0; i < 4; ++i) qp.post_send(wr);
  pump([&] { return false; }, 1000);
  WorkCompletion completion;
  EXPECT_THROW(small.poll({&completion, 1}), hca::Error);
}

}  // namespace
}  // namespace weft::test
