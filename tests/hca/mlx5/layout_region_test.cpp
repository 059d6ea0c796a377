// Layout MRs of a card that is played by the test: the backend's table, the order of its work
// requests, and where the bytes go.
#include <gtest/gtest.h>

#include <array>
#include <cerrno>
#include <chrono>
#include <cstdint>
#include <numeric>
#include <string>
#include <vector>

#include "hca/mlx5/backend.h"
#include "hca/mlx5/queue_pair.hpp"
#include "tests/hca/mlx5/device.hpp"
#include "tests/hca/mlx5/played_card.hpp"

namespace weft::test {
namespace {

using namespace hca;
using namespace hca::mlx5;

constexpr unsigned all_access = IBV_ACCESS_ZERO_BASED | IBV_ACCESS_LOCAL_WRITE |
                                IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ;

class Mlx5LayoutRegion : public ::testing::Test {
 protected:
  Mlx5LayoutRegion() {
    std::iota(memory.begin(), memory.end(), 0);
    qp.connect(qp.endpoint());
  }
  void SetUp() override {
    card() = {};
    ASSERT_EQ(backend->reg_carrier(pd.get(), all_access, &carrier, why, sizeof why), 0) << why;
  }
  void TearDown() override {
    if (carrier != nullptr) {
      EXPECT_EQ(backend->dereg_carrier(carrier), 0);
    }
    EXPECT_EQ(card().keys, 0);
  }

  int set_sg(const std::vector<ibv_sge>& list) {
    return backend->set_layout_sg(carrier, static_cast<std::uint32_t>(list.size()), list.data(),
                                  why, sizeof why);
  }
  int set_interleaved(const std::vector<weft_mlx5_interleaved>& list) {
    return backend->set_layout_interleaved(carrier, static_cast<std::uint32_t>(list.size()),
                                           list.data(), why, sizeof why);
  }
  [[nodiscard]] ibv_sge items(std::size_t first, std::size_t count) const {
    return {reinterpret_cast<std::uint64_t>(memory.data() + first),
            static_cast<std::uint32_t>(count * 8), mr.lkey()};
  }
  /// The items that an RDMA READ of the whole layout gives; none when it fails.
  std::vector<std::uint64_t> read() {
    std::vector<std::uint64_t> into(carrier->length / 8);
    const MemoryRegion target(pd, into.data(), into.size() * 8, Access::all);
    qp.read(1,
            {reinterpret_cast<std::uint64_t>(into.data()),
             static_cast<std::uint32_t>(into.size() * 8), target.lkey()},
            0, carrier->rkey);
    std::array<Completion, 1> completion{};
    const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(20);
    while (cq.poll(completion) == 0 && std::chrono::steady_clock::now() < end) {
    }
    if (completion[0].wr_id != 1 || completion[0].status != WcStatus::success) into.clear();
    return into;
  }
  std::string requests() {
    const std::string result(card().requests.begin(), card().requests.end());
    card().requests.clear();
    return result;
  }

  const weft_mlx5_table* backend = weft_mlx5_backend();
  Context context{emulated_device()};
  ProtectionDomain pd{context};
  CompletionQueue cq{context, 16};
  std::vector<std::uint64_t> memory = std::vector<std::uint64_t>(4096);
  MemoryRegion mr{pd, memory.data(), memory.size() * 8, Access::all};
  QueuePair qp{pd, cq, 16};
  ibv_mr* carrier = nullptr;
  char why[200] = "";
};

using Items = std::vector<std::uint64_t>;

TEST_F(Mlx5LayoutRegion, AListAndThenAnother) {
  const std::uint32_t rkey = carrier->rkey;
  ASSERT_EQ(set_sg({items(5, 2), items(1, 1)}), 0) << why;
  EXPECT_EQ(requests(), "l");
  EXPECT_EQ(carrier->length, 24u);
  EXPECT_EQ(read(), (Items{5, 6, 1}));
  ASSERT_EQ(set_sg({items(9, 1)}), 0) << why;
  EXPECT_EQ(requests(), "il") << "the old layout is invalidated first";
  EXPECT_EQ(read(), Items{9});
  EXPECT_EQ(carrier->rkey, rkey) << "the key stays";
  EXPECT_TRUE(card().all_inline);
  EXPECT_EQ(card().key_entries, 32u);
}

TEST_F(Mlx5LayoutRegion, OddAndEvenItemsSwapped) {
  const weft_mlx5_dimension dim{16, 50};
  ASSERT_EQ(set_interleaved({{items(1, 1), 1, 1, &dim}, {items(0, 1), 1, 1, &dim}}), 0) << why;
  EXPECT_EQ(requests(), "s");
  const Items got = read();
  ASSERT_EQ(got.size(), 100u);
  for (std::uint64_t i = 0; i < 100; ++i) EXPECT_EQ(got[i], i ^ 1);
  EXPECT_TRUE(card().all_inline);
}

TEST_F(Mlx5LayoutRegion, RepeatedItemsAndSingleOnes) {
  const weft_mlx5_dimension pairs{24, 4};
  ASSERT_EQ(set_interleaved({{items(0, 1), 2, 1, &pairs}}), 0) << why;
  EXPECT_EQ(read(), (Items{0, 3, 6, 9}));
  ASSERT_EQ(set_interleaved({{items(7, 1), 1, 0, nullptr}, {items(2, 2), 1, 0, nullptr}}), 0)
      << why;
  EXPECT_EQ(read(), (Items{7, 2, 3}));
}

TEST_F(Mlx5LayoutRegion, WhatIsOverTheLimitsLeavesTheOldLayout) {
  ASSERT_EQ(set_sg({items(5, 2)}), 0) << why;
  requests();
  const auto refused = [&](int code, int expected, const std::string& word) {
    EXPECT_EQ(code, expected) << why;
    EXPECT_NE(std::string(why).find(word), std::string::npos) << why << ": no " << word;
    EXPECT_EQ(requests(), "") << "nothing is posted";
  };
  refused(set_sg({}), EINVAL, "0");
  refused(set_sg(std::vector<ibv_sge>(33, items(0, 1))), EOPNOTSUPP, "33, the card's limit is 32");
  refused(set_sg({{0, 8, carrier->lkey}}), EOPNOTSUPP, "nesting level 1");
  const weft_mlx5_dimension wide{65536, 2};
  refused(set_interleaved({{items(0, 1), 1, 1, &wide}}), EOPNOTSUPP, "65536");
  const weft_mlx5_dimension plane[] = {{8, 2}, {64, 2}};
  refused(set_interleaved({{items(0, 1), 1, 2, plane}}), EOPNOTSUPP, "dimensions 2");
  const std::vector<weft_mlx5_interleaved> many(32, {items(0, 1), 1, 0, nullptr});
  refused(set_interleaved(many), EOPNOTSUPP, "32, the card's limit is 31");
  EXPECT_EQ(read(), (Items{5, 6}));
}

TEST_F(Mlx5LayoutRegion, WhenTheRequestIsNotPostedTheOldLayoutStays) {
  ASSERT_EQ(set_sg({items(5, 2)}), 0) << why;
  card().complete_fails = ENOMEM;
  EXPECT_EQ(set_sg({items(1, 1)}), ENOMEM);
  card().complete_fails = 0;
  EXPECT_EQ(carrier->length, 16u);
  EXPECT_EQ(read(), (Items{5, 6}));
  ASSERT_EQ(set_sg({items(1, 1)}), 0) << why;
  EXPECT_EQ(requests(), "lilil");
  EXPECT_EQ(read(), Items{1});
}

TEST_F(Mlx5LayoutRegion, WhenTheCardFailsItIsSaidAtOnceFromThenOn) {
  card().work_fails = true;
  EXPECT_EQ(set_sg({items(5, 2)}), EIO);
  EXPECT_NE(std::string(why).find("failed"), std::string::npos) << why;
  card().work_fails = false;
  EXPECT_EQ(set_sg({items(5, 2)}), EIO);
}

TEST_F(Mlx5LayoutRegion, ACardWithShortWorkRequestsHasFewerEntries) {
  weft_mlx5_caps caps{};
  ASSERT_EQ(backend->query_caps(context.get(), &caps, why, sizeof why), 0) << why;
  EXPECT_EQ(caps.max_num_sg, 32u);
  EXPECT_EQ(caps.max_num_interleaved, 31u);
  EXPECT_EQ(caps.max_offset_stride, 65535u);
  card().most_inline = 0;
  ASSERT_EQ(backend->query_caps(context.get(), &caps, why, sizeof why), 0) << why;
  EXPECT_EQ(caps.max_num_sg, 4u);
  EXPECT_EQ(caps.max_num_interleaved, 3u);
}

TEST_F(Mlx5LayoutRegion, CarriersAreKnown) {
  EXPECT_EQ(backend->is_carrier(carrier), 1);
  ibv_mr* other = nullptr;
  EXPECT_EQ(backend->reg_carrier(pd.get(), IBV_ACCESS_MW_BIND, &other, why, sizeof why),
            EOPNOTSUPP);
  ibv_mr* const gone = carrier;
  EXPECT_EQ(backend->dereg_carrier(carrier), 0);
  carrier = nullptr;
  EXPECT_EQ(backend->is_carrier(gone), 0);
  EXPECT_EQ(backend->dereg_carrier(gone), EINVAL);
}

}  // namespace
}  // namespace weft::test
