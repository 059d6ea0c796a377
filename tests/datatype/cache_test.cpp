#include "datatype/cache.hpp"

#include <gtest/gtest.h>

#include <atomic>
#include <thread>
#include <vector>

#include "datatype/cost.hpp"
#include "datatype/spec.hpp"

namespace weft::datatype {
namespace {

hca::LayoutPtr column() {
  return build(parse("vector(64, 1, 100, double)")).layout();
}

TEST(Cache, CompilesOncePerHandle) {
  LayoutCache cache;
  int compiled = 0;
  const auto compile = [&] {
    ++compiled;
    return column();
  };
  const hca::LayoutPtr first = cache.get(0x1000, 1, 8, compile);
  EXPECT_EQ(cache.get(0x1000, 1, 8, compile), first);
  EXPECT_EQ(cache.get(0x1000, 3, 8, compile)->size(), 3 * first->size());
  EXPECT_EQ(cache.get(0x1000, 3, 8, compile), cache.get(0x1000, 3, 8, compile));
  EXPECT_EQ(cache.get(0x1000, 0, 8, compile)->size(), 0u);
  EXPECT_EQ(compiled, 1);
  EXPECT_NE(cache.get(0x2000, 1, 8, compile), first);
  EXPECT_EQ(compiled, 2);
  EXPECT_EQ(cache.size(), 2u);
}

TEST(Cache, ErasingLeavesLayoutsToTheirUsersAndNoOthers) {
  LayoutCache cache;
  hca::LayoutPtr pending = cache.get(0x1000, 1, 8, column);
  const std::weak_ptr<const hca::Layout> watch = pending;
  cache.erase(0x1000);
  EXPECT_FALSE(watch.expired());
  pending.reset();
  EXPECT_TRUE(watch.expired());
  // The address is used for another datatype.
  const auto other = [] { return hca::Layout::contiguous(24); };
  EXPECT_EQ(cache.get(0x1000, 1, 24, other)->size(), 24u);
  cache.erase(0x1000);
  cache.erase(0x1000);
  EXPECT_EQ(cache.size(), 0u);
}

TEST(Cache, ManyCountsOfOneType) {
  LayoutCache cache;
  for (std::uint64_t count = 0; count < 1000; ++count) {
    for (int again = 0; again < 2; ++again) {
      ASSERT_EQ(cache.get(0x1000, count, 8, column)->size(), count * 512);
    }
  }
}

TEST(Cache, AFailedCompilationLeavesNothing) {
  LayoutCache cache;
  const auto fail = []() -> hca::LayoutPtr { throw std::runtime_error("no"); };
  EXPECT_THROW(cache.get(0x1000, 1, 8, fail), std::runtime_error);
  EXPECT_EQ(cache.size(), 0u);
  EXPECT_EQ(cache.get(0x1000, 1, 8, column)->size(), 512u);
}

TEST(Cache, TwoCachesDoNotMix) {
  LayoutCache a;
  LayoutCache b;
  EXPECT_EQ(a.get(0x1000, 1, 8, column)->size(), 512u);
  EXPECT_EQ(b.get(0x1000, 1, 8, [] { return hca::Layout::contiguous(3); })->size(), 3u);
  EXPECT_EQ(a.get(0x1000, 1, 8, column)->size(), 512u);
}

TEST(Cache, ThreadsWithHandlesThatComeAndGo) {
  LayoutCache cache;
  std::atomic<bool> wrong{false};
  std::vector<std::thread> threads;
  for (std::uintptr_t t = 0; t < 4; ++t) {
    threads.emplace_back([&, t] {
      for (std::uint64_t i = 0; i < 3000; ++i) {
        // One handle for all threads, one that this thread frees and reuses with another size.
        const std::uint64_t shared = cache.get(0x40, 1 + i % 3, 8, column)->size();
        const std::uintptr_t own = 0x10000 * (t + 1);
        const std::uint64_t length = 1 + i / 8;
        const std::uint64_t mine =
            cache.get(own, 1, 8, [&] { return hca::Layout::contiguous(length); })->size();
        if (shared != (1 + i % 3) * 512 || mine != length) wrong = true;
        if (i % 8 == 7) cache.erase(own);
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_FALSE(wrong);
}

TEST(Cost, OfASimpleColumn) {
  const Cost cost = cost_of(*column());
  EXPECT_EQ(cost.bytes, 512u);
  EXPECT_EQ(cost.blocks, 64u);
  EXPECT_EQ(cost.dimensions, 1u);
  EXPECT_EQ(cost.depth, 1u);
  EXPECT_EQ(cost.stride_bits, 10u);
  EXPECT_DOUBLE_EQ(cost.mean_block(), 8.0);
  EXPECT_EQ(exceeds(cost, Limits{}), "");
}

TEST(Cost, ConnectXHasSixteenBitStrides) {
  const Limits limits = limits_of_profile("connectx").value();
  const auto reason = [&](const char* text) {
    return exceeds(cost_of(*build(parse(text)).layout()), limits);
  };
  EXPECT_EQ(reason("hvector(64, 1, 65535, double)"), "");
  EXPECT_EQ(reason("hvector(64, 1, 65536, double)"), "stride bits 17, limit 16");
  EXPECT_EQ(reason("hvector(64, 1, -64, double)"), "a stride is negative");
  EXPECT_EQ(reason("hvector(64, 2, 8, double)"), "blocks overlap their stride");
  EXPECT_EQ(reason("hvector(300, 1, 40000, hvector(300, 1, 16, double))"), "dimensions 2, limit 1");
  EXPECT_FALSE(limits_of_profile("unheard of").has_value());
}

TEST(Cost, ListEntries) {
  std::string text = "hindexed_block(1, [0";
  for (std::int64_t i = 1; i < 70000; ++i)
    text += "," + std::to_string(i * 100 + (i * 2654435761 >> 9) % 8 * 8);
  const Cost cost = cost_of(*build(parse(text + "], double)")).layout());
  EXPECT_EQ(exceeds(cost, Limits{}), "");
  EXPECT_EQ(exceeds(cost, limits_of_profile("connectx").value()),
            "list entries 70000, limit 65535");
}

}  // namespace
}  // namespace weft::datatype
