// All of the card's backend that is plain verbs, on the emulated device: the program is linked with
// what weftrun --verbs preloads.
#include <gtest/gtest.h>
#include <unistd.h>

#include <array>
#include <chrono>
#include <cstdint>
#include <cstring>
#include <memory>
#include <numeric>
#include <vector>

#include "hca/mlx5/backend.h"
#include "hca/mlx5/queue_pair.hpp"
#include "tests/hca/mlx5/device.hpp"

namespace weft::test {
namespace {

using namespace hca;
using namespace hca::mlx5;

struct Node {
  Context context{emulated_device()};
  ProtectionDomain pd{context};
  CompletionQueue cq{context, 64};
  std::vector<std::uint64_t> memory = std::vector<std::uint64_t>(4096);
  MemoryRegion mr{pd, memory.data(), memory.size() * 8, Access::all};
  QueuePair qp{pd, cq, 16};

  [[nodiscard]] ibv_sge sge(std::size_t index, std::uint32_t length) const {
    return {address(index), length, mr.lkey()};
  }
  [[nodiscard]] std::uint64_t address(std::size_t index) const {
    return reinterpret_cast<std::uint64_t>(memory.data() + index);
  }
  /// Between the test's use of memory and the device's: in one process a sanitizer does not see
  /// that a completion came after what it tells of. The call takes the lock of the emulated device.
  void hand_over() const {
    ibv_qp_attr attr;
    ibv_qp_init_attr init;
    ibv_query_qp(qp.get(), &attr, 0, &init);
  }
  /// The next completion; its wr_id is UINT64_MAX when none comes.
  [[nodiscard]] Completion wait() const {
    std::array<Completion, 1> completion{};
    const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(20);
    while (std::chrono::steady_clock::now() < end) {
      if (cq.poll(completion) == 1) return completion[0];
    }
    ADD_FAILURE() << "no completion came";
    return {UINT64_MAX, WcStatus::retry_exc_err, 0};
  }
};

class Mlx5Objects : public ::testing::Test {
 protected:
  void SetUp() override {
    left.qp.connect(right.qp.endpoint());
    right.qp.connect(left.qp.endpoint());
    std::iota(left.memory.begin(), left.memory.end(), 1000);
    hand_over();
  }
  void hand_over() const {
    left.hand_over();
    right.hand_over();
  }
  void expect_success(const Completion& completion, std::uint64_t wr_id) const {
    hand_over();
    EXPECT_EQ(completion.wr_id, wr_id);
    EXPECT_EQ(completion.status, WcStatus::success) << to_string(completion.status);
  }
  Node left;
  Node right;
};

TEST_F(Mlx5Objects, SendAndReceive) {
  right.qp.receive(5, right.sge(0, 4096));
  left.qp.send(6, left.sge(10, 800));
  expect_success(left.wait(), 6);
  const Completion received = right.wait();
  expect_success(received, 5);
  EXPECT_EQ(received.byte_len, 800u);
  EXPECT_EQ(right.memory[99], 1109u);
  EXPECT_EQ(right.memory[100], 0u);
}

TEST_F(Mlx5Objects, WriteAndRead) {
  left.qp.write(1, left.sge(0, 16384), right.address(100), right.mr.rkey());
  expect_success(left.wait(), 1);
  left.qp.read(2, left.sge(2500, 8), right.address(100 + 2047), right.mr.rkey());
  expect_success(left.wait(), 2);
  EXPECT_EQ(left.memory[2500], 1000u + 2047);
}

TEST_F(Mlx5Objects, AtomicsGiveTheValueBefore) {
  right.memory[7] = 40;
  hand_over();
  left.qp.fetch_add(1, left.sge(0, 8), right.address(7), right.mr.rkey(), 2);
  expect_success(left.wait(), 1);
  left.qp.compare_swap(2, left.sge(1, 8), right.address(7), right.mr.rkey(), 42, 99);
  expect_success(left.wait(), 2);
  left.qp.compare_swap(3, left.sge(2, 8), right.address(7), right.mr.rkey(), 42, 1);
  expect_success(left.wait(), 3);
  EXPECT_EQ(left.memory[0], 40u);
  EXPECT_EQ(left.memory[1], 42u);
  EXPECT_EQ(left.memory[2], 99u);
}

TEST_F(Mlx5Objects, AccessOutsideOfTheRegionIsAnErrorOfTheWork) {
  left.qp.write(1, left.sge(0, 16), right.address(4095), right.mr.rkey());
  EXPECT_EQ(left.wait().status, WcStatus::rem_access_err);
  left.qp.write(2, left.sge(0, 8), right.address(0), right.mr.rkey());
  EXPECT_EQ(left.wait().status, WcStatus::wr_flush_err);
}

TEST_F(Mlx5Objects, DeviceMemory) {
  DeviceMemory memory(right.pd, 256, Access::all);
  EXPECT_TRUE(memory.on_device());
  const std::uint64_t start = 10;
  memory.copy_to(64, std::as_bytes(std::span(&start, 1)));
  hand_over();
  left.qp.fetch_add(1, left.sge(0, 8), 64, memory.rkey(), 5);
  expect_success(left.wait(), 1);
  EXPECT_EQ(left.memory[0], 10u);
  std::uint64_t now = 0;
  memory.copy_from(64, std::as_writable_bytes(std::span(&now, 1)));
  EXPECT_EQ(now, 15u);
  try {
    memory.copy_from(249, std::as_writable_bytes(std::span(&now, 1)));
    ADD_FAILURE() << "read past the end";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), EINVAL);
    EXPECT_STREQ(error.what(), "8 bytes at 249 of a device memory of 256");
  }
}

TEST_F(Mlx5Objects, WithoutDeviceMemoryLeftItIsHostMemory) {
  DeviceMemory memory(right.pd, 8 << 20, Access::all);
  EXPECT_FALSE(memory.on_device());
  const std::uint64_t start = 10;
  memory.copy_to((8 << 20) - 8, std::as_bytes(std::span(&start, 1)));
  hand_over();
  left.qp.fetch_add(1, left.sge(0, 8), (8 << 20) - 8, memory.rkey(), 5);
  expect_success(left.wait(), 1);
  EXPECT_EQ(left.memory[0], 10u);
  std::uint64_t now = 0;
  memory.copy_from((8 << 20) - 8, std::as_writable_bytes(std::span(&now, 1)));
  EXPECT_EQ(now, 15u);
}

TEST_F(Mlx5Objects, WrongInputIsNamed) {
  EXPECT_THROW(Context("nonesuch"), Error);
  try {
    MemoryRegion(left.pd, reinterpret_cast<void*>(4096), 100, Access::all);
    ADD_FAILURE() << "registered what is not mapped";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), EFAULT);
  }
}

TEST_F(Mlx5Objects, TheEmulatedDeviceIsNoCard) {
  const weft_mlx5_table* backend = weft_mlx5_backend();
  EXPECT_EQ(backend->abi, WEFT_MLX5_BACKEND_ABI);
  EXPECT_EQ(backend->supports(left.context.get()), 0);
  char why[200] = "";
  weft_mlx5_caps caps{};
  EXPECT_EQ(backend->query_caps(left.context.get(), &caps, why, sizeof why), EOPNOTSUPP);
  EXPECT_NE(std::string(why).find(emulated_device()), std::string::npos) << why;
  ibv_mr* mr = nullptr;
  EXPECT_EQ(backend->reg_carrier(left.pd.get(), 0, &mr, why, sizeof why), EOPNOTSUPP);
  EXPECT_EQ(mr, nullptr);
  ibv_mr plain{};
  EXPECT_EQ(backend->is_carrier(&plain), 0);
  EXPECT_EQ(backend->set_layout_sg(&plain, 0, nullptr, why, sizeof why), EINVAL);
  EXPECT_NE(std::string(why).find("carrier"), std::string::npos) << why;
}

}  // namespace
}  // namespace weft::test
