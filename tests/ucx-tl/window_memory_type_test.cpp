// Which windows go in fine pieces.
#include "ucx-tl/window_memory_type.hpp"

#include <gtest/gtest.h>

#include <array>
#include <cstdint>
#include <vector>

namespace weft::ucx {
namespace {

using hca::Dimension;
using hca::Layout;
using hca::LayoutPtr;

LayoutPtr column(std::uint64_t blocks, std::uint64_t block, std::int64_t stride) {
  const std::array dims{Dimension{blocks, stride}};
  return Layout::strided(0, block, dims);
}

bool is_coarse(const LayoutPtr& layout) {
  return memory_type_for_send(*layout, layout->size()) == coarse_window_memory_type;
}

TEST(WindowMemoryType, OrdinaryShapesGoInCoarsePieces) {
  EXPECT_TRUE(is_coarse(column(1024, 8, 8208)));
  EXPECT_TRUE(is_coarse(column(4096, 16, 1040)));
  EXPECT_TRUE(is_coarse(column(2048, 8, 24)));
  EXPECT_TRUE(is_coarse(column(1, 8192, 8192)));
  EXPECT_TRUE(is_coarse(Layout::contiguous(5000, 16)));
}

TEST(WindowMemoryType, BlocksThatMeetInTheCacheGoInFineOnes) {
  EXPECT_FALSE(is_coarse(column(1024, 8, 8192)));
  EXPECT_FALSE(is_coarse(column(1024, 32, 8192)));
  EXPECT_FALSE(is_coarse(column(1024, 8, -8192)));
  EXPECT_FALSE(is_coarse(column(2048, 8, 1024)));
}

TEST(WindowMemoryType, FewOrLongBlocksThatMeetDoNotMatter) {
  EXPECT_TRUE(is_coarse(column(255, 32, 8192)));
  EXPECT_TRUE(is_coarse(column(1024, 33, 8192)));
  EXPECT_TRUE(is_coarse(column(16, 4096, 8192)));
}

TEST(WindowMemoryType, ShortBlocksInMorePagesThanAreRememberedGoInFineOnes) {
  EXPECT_FALSE(is_coarse(column(8192, 8, 8208)));
  EXPECT_TRUE(is_coarse(column(4096, 8, 8208)));
  EXPECT_TRUE(is_coarse(column(4097, 16, 8208)));
  EXPECT_TRUE(is_coarse(column(8192, 8, 4080)));
}

TEST(WindowMemoryType, AScatterOfMeetingAndOtherBlocksIsNoColumn) {
  std::vector<hca::Block> blocks;
  for (std::int64_t i = 0; i < 1024; ++i) blocks.push_back({i * 8192 + (i == 1023 ? 8 : 0), 8});
  EXPECT_TRUE(is_coarse(Layout::sg_list(blocks)));
}

TEST(WindowMemoryType, LongMessagesAreLeftToTheRendezvous) {
  const LayoutPtr layout = column(100'000, 8, 24);
  EXPECT_EQ(memory_type_for_send(*layout, 77 * 1024), coarse_window_memory_type);
  EXPECT_EQ(memory_type_for_send(*layout, 77 * 1024 + 1), window_memory_type);
  EXPECT_EQ(memory_type_for_send(*layout, layout->size()), window_memory_type);
}

}  // namespace
}  // namespace weft::ucx
