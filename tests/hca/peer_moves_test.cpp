// What goes into slots for a peer, and out of a peer's, is what a plain gather or scatter moves.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <vector>

#include "hca/gather_for_peer.hpp"
#include "hca/layout.hpp"
#include "hca/peer_distance.hpp"
#include "hca/scatter_from_peer.hpp"
#include "tests/memory.hpp"
#include "tests/seed.hpp"

namespace weft::hca {
namespace {

using test::Memory;
using test::Random;

/// Rows of 24 bytes; blocks of 23 are as good as one stream.
void gather_for_peer_is_a_gather() {
  const std::array<Dimension, 1> rows{{{9000, 24}}};
  for (const std::uint64_t block : {std::uint64_t{3}, std::uint64_t{8}, std::uint64_t{23}}) {
    const LayoutPtr column = Layout::strided(0, block, rows);
    Memory memory(*column);
    Random random(block);
    memory.fill(random.engine());
    for (const std::size_t length : {0u, 1u, 4095u, 4096u, 4097u, 8192u, 8193u, 20000u}) {
      const auto offset = static_cast<std::uint64_t>(random.in(0, 5000));
      std::vector<std::byte> expected(length), got(length + 1, std::byte{0x5a});
      column->gather(memory.base(), offset, expected);
      gather_for_peer(*column, memory.base(), offset, {got.data(), length});
      EXPECT_EQ(got.back(), std::byte{0x5a}) << length;
      got.pop_back();
      EXPECT_EQ(got, expected) << test::seed_note(block) << ", " << length << " from " << offset;
    }
  }
}

TEST(GatherForPeer, IsAGatherFromAnyOffsetOfAnyLengthApart) {
  gather_for_peer_is_a_gather();
}

TEST(GatherForPeer, IsAGatherFromAnyOffsetOfAnyLengthClose) {
  constexpr unsigned own_cache = 20;
  for (int i = 0; i < 8; ++i) peer_distance().note(own_cache);
  ASSERT_TRUE(peer_distance().is_close());
  gather_for_peer_is_a_gather();
  constexpr unsigned other_cache = 300;
  for (int i = 0; i < 8; ++i) peer_distance().note(other_cache);
}

TEST(ScatterFromPeer, IsAScatterToAnyOffsetOfAnyLength) {
  const std::array<Dimension, 1> rows{{{9000, 24}}};
  for (const std::uint64_t block : {std::uint64_t{3}, std::uint64_t{8}}) {
    const LayoutPtr column = Layout::strided(0, block, rows);
    Memory memory(*column), expected(*column);
    Random random(block);
    for (const std::size_t length : {0u, 1u, 4095u, 4096u, 4097u, 8192u, 8193u, 20000u}) {
      const auto offset = static_cast<std::uint64_t>(random.in(0, 5000));
      std::vector<std::byte> stream(length);
      for (std::byte& byte : stream) byte = static_cast<std::byte>(random.in(0, 255));
      memory.fill(random.engine());
      std::copy_n(memory.base(), column->upper(), expected.base());
      column->scatter(expected.base(), offset, stream);
      scatter_from_peer(*column, memory.base(), offset, stream);
      EXPECT_TRUE(std::equal(memory.base(), memory.base() + column->upper(), expected.base()))
          << test::seed_note(block) << ", " << length << " to " << offset;
    }
  }
}

}  // namespace
}  // namespace weft::hca
