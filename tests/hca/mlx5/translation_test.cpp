// What layouts become on a card, checked by reading them back byte by byte, and the card's limits.
#include <gtest/gtest.h>

#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "hca/mlx5/layout_translation.hpp"
#include "hca/status.hpp"
#include "tests/seed.hpp"

namespace weft::test {
namespace {

using namespace hca;
using namespace hca::mlx5;

constexpr std::uint64_t base = 0x100000;
constexpr std::uint32_t lkey = 77;
constexpr CardLimits room{32, 31};

/// The addresses of the stream's bytes, as the card would go through them.
std::vector<std::uint64_t> walk(const CardLayout& card) {
  std::vector<std::uint64_t> bytes;
  for (const ibv_sge& sge : card.list) {
    for (std::uint32_t i = 0; i < sge.length; ++i) bytes.push_back(sge.addr + i);
  }
  for (std::uint64_t round = 0; round < card.repeat; ++round) {
    for (const mlx5dv_mr_interleaved& e : card.interleaved) {
      for (std::uint64_t i = 0; i < e.bytes_count; ++i) {
        bytes.push_back(e.addr + round * (e.bytes_count + e.bytes_skip) + i);
      }
    }
  }
  return bytes;
}

/// The same of a layout, by its own gather: each byte of memory tells its place.
void expect_same(const Layout& layout, const CardLayout& card) {
  const std::vector<std::uint64_t> bytes = walk(card);
  ASSERT_EQ(bytes.size(), layout.size());
  EXPECT_EQ(card.bytes, layout.size());
  const auto width = static_cast<std::size_t>(layout.upper() - layout.lower());
  for (unsigned shift = 0; shift < 24; shift += 8) {
    std::vector<std::byte> memory(width);
    for (std::size_t i = 0; i < width; ++i) memory[i] = static_cast<std::byte>(i >> shift);
    std::vector<std::byte> stream(layout.size());
    layout.gather(
        reinterpret_cast<const std::byte*>(reinterpret_cast<std::uintptr_t>(memory.data()) -
                                           static_cast<std::uintptr_t>(layout.lower())),
        0, stream);
    for (std::size_t i = 0; i < stream.size(); ++i) {
      const std::uint64_t place = bytes[i] - (base + static_cast<std::uint64_t>(layout.lower()));
      ASSERT_LT(place, width);
      ASSERT_EQ(stream[i], static_cast<std::byte>(place >> shift)) << "byte " << i;
    }
  }
}

/// `call` fails with this errno value, and says each of these.
template <class Call>
void expect_refused(int code, std::initializer_list<std::string> words, Call call) {
  try {
    call();
    ADD_FAILURE() << "not refused: " << *words.begin();
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), code) << error.what();
    for (const std::string& word : words) {
      EXPECT_NE(std::string(error.what()).find(word), std::string::npos)
          << error.what() << ": no " << word;
    }
  }
}

CardLayout card(const LayoutPtr& layout, const CardLimits& limits = room) {
  return card_layout_of(*layout, base, lkey, limits);
}

LayoutPtr strided(std::uint64_t block, std::vector<Dimension> dims) {
  return Layout::strided(0, block, dims);
}

TEST(Mlx5Translation, AColumnIsOneInterleavedEntry) {
  const auto column = strided(8, {{1024, 8208}});
  const CardLayout result = card(column, {});
  ASSERT_EQ(result.interleaved.size(), 1u);
  EXPECT_EQ(result.repeat, 1024u);
  EXPECT_EQ(result.interleaved[0].addr, base);
  EXPECT_EQ(result.interleaved[0].bytes_count, 8u);
  EXPECT_EQ(result.interleaved[0].bytes_skip, 8200u);
  EXPECT_EQ(result.interleaved[0].lkey, lkey);
  expect_same(*column, result);
}

TEST(Mlx5Translation, FewBlocksOfAnyLayoutAreAList) {
  const auto child = strided(8, {{2, -24}});
  const std::int64_t offsets[] = {100, -300};
  const Placed parts[] = {{5, Layout::contiguous(100000)},
                          {200000, Layout::indexed(child, offsets)}};
  for (const auto& layout :
       {child, Layout::contiguous(70000, 3), Layout::indexed(child, offsets),
        Layout::sequence(parts), Layout::repeat(Layout::sequence(parts), 2, 1000000)}) {
    const CardLayout result = card(layout);
    EXPECT_EQ(result.repeat, 0u) << layout->describe();
    EXPECT_EQ(result.list.size(), layout->block_count());
    expect_same(*layout, result);
  }
}

TEST(Mlx5Translation, InnerDimensionsAreSpeltOut) {
  const auto layout = strided(4, {{100, 1000}, {5, 8}, {3, 64}});
  const CardLayout result = card(layout);
  EXPECT_EQ(result.interleaved.size(), 15u);
  EXPECT_EQ(result.repeat, 100u);
  expect_same(*layout, result);
}

TEST(Mlx5Translation, RandomLayouts) {
  for (std::uint64_t round = 0; round < 300; ++round) {
    SCOPED_TRACE(seed_note(round));
    Random random(round);
    const auto block = static_cast<std::uint64_t>(random.in(1, 40));
    const auto count = static_cast<std::uint64_t>(random.in(2, 50));
    const std::int64_t stride = random.in(static_cast<std::int64_t>(block), 5000);
    std::vector<Block> entries(static_cast<std::size_t>(random.in(2, 6)));
    std::int64_t at = random.in(-1000, 1000);
    for (Block& e : entries) {
      e = {at, static_cast<std::uint64_t>(random.in(1, 40))};
      at += random.in(0, 100);
    }
    const auto interleaved = Layout::repeat(Layout::sg_list(entries), count, random.in(40, 9000));
    expect_same(*interleaved, card(interleaved));
    const auto plane = strided(
        block,
        {{count, 7000}, {static_cast<std::uint64_t>(random.in(1, 31)), random.in(-200, 200)}});
    expect_same(*plane, card(plane));
    const auto column = Layout::strided(random.in(-500, 500), block, {{Dimension{count, stride}}});
    expect_same(*column, card(column));
  }
}

TEST(Mlx5Translation, LayoutsOverTheLimitsAreRefused) {
  const auto refused = [](std::initializer_list<std::string> words, const LayoutPtr& layout) {
    expect_refused(EOPNOTSUPP, words, [&] { card(layout); });
  };
  refused({"65536", "65535"}, strided(65536, {{100, 65536}}));
  refused({"stride 65536", "65535"}, strided(8, {{100, 65536}}));
  refused({"-16"}, strided(8, {{100, -16}}));
  refused({"8 bytes", "7 apart"}, strided(8, {{100, 7}}));
  refused({"8 bytes", "0 apart"}, strided(8, {{100, 0}}));
  refused({"entries 32", "31"}, strided(8, {{100, 9000}, {32, 100}}));
  refused({"2147483648", "2147483647"}, strided(8, {{1ull << 28, 16}}));
  refused({"2147483648", "2147483647"}, Layout::contiguous(1ull << 31));
  std::vector<Block> blocks;
  for (std::int64_t i = 0; i < 33; ++i) blocks.push_back({100 * i * i, 8});
  refused({"blocks 33", "32"}, Layout::sg_list(blocks));
  refused({"blocks 66", "32"}, Layout::repeat(Layout::sg_list(blocks), 2, 1000000));
  blocks.resize(32);
  refused({"entries 32", "31"}, Layout::repeat(Layout::sg_list(blocks), 2, 60000));
  EXPECT_NO_THROW(card(strided(65535, {{100, 65535}})));
  EXPECT_NO_THROW(card(Layout::sg_list(blocks)));
}

TEST(Mlx5Translation, WrongInputIsRefused) {
  expect_refused(EINVAL, {"0"}, [] { card(Layout::contiguous(0)); });
  const auto at_the_end = [](const LayoutPtr& layout, std::uint64_t at) {
    expect_refused(EINVAL, {std::to_string(at), "address space"},
                   [&] { card_layout_of(*layout, at, lkey, room); });
  };
  at_the_end(Layout::contiguous(100), UINT64_MAX - 98);
  at_the_end(strided(8, {{100, 16}}), UINT64_MAX - 1000);
  EXPECT_NO_THROW(card_layout_of(*Layout::contiguous(100), UINT64_MAX - 99, lkey, room));
}

// ---- what the RFC's calls give -----------------------------------------------------------------

TEST(Mlx5List, IsTakenAsItIs) {
  const ibv_sge list[] = {{base, 100, 1}, {base + 7, 5000000, 2}};
  const CardLayout result = list_of(list, {});
  ASSERT_EQ(result.list.size(), 2u);
  EXPECT_EQ(result.list[1].addr, base + 7);
  EXPECT_EQ(result.list[1].length, 5000000u);
  EXPECT_EQ(result.list[1].lkey, 2u);
  EXPECT_EQ(result.bytes, 5000100u);
}

TEST(Mlx5List, LimitsAndWrongInput) {
  const std::vector<ibv_sge> five(5, {base, 8, lkey});
  expect_refused(EOPNOTSUPP, {"5", "4"}, [&] { list_of(five, {}); });
  const std::vector<ibv_sge> long_list(65536, {base, 8, lkey});
  expect_refused(EOPNOTSUPP, {"65536", "65535"}, [&] { list_of(long_list, {1u << 20, 3}); });
  const std::vector<ibv_sge> two_gib(2, {base, 1u << 30, lkey});
  expect_refused(EOPNOTSUPP, {"2147483648", "2147483647"}, [&] { list_of(two_gib, {}); });
  expect_refused(EINVAL, {"0"}, [] { list_of({}, {}); });
  const ibv_sge nothing[] = {{base, 0, lkey}};
  expect_refused(EINVAL, {"0"}, [&] { list_of(nothing, {}); });
  const ibv_sge over_the_end[] = {{UINT64_MAX - 6, 8, lkey}};
  expect_refused(EINVAL, {"8 bytes", "address space"}, [&] { list_of(over_the_end, {}); });
}

TEST(Mlx5Interleaved, OddAndEvenItemsSwapped) {
  const DatumDimension dim[] = {{16, 50}};
  const InterleavedEntry entries[] = {{{base + 8, 8, lkey}, 1, dim}, {{base, 8, lkey}, 1, dim}};
  const std::vector<std::uint64_t> bytes = walk(interleaved_of(entries, {}));
  ASSERT_EQ(bytes.size(), 800u);
  for (std::size_t i = 0; i < bytes.size(); ++i) ASSERT_EQ(bytes[i], base + (i ^ 8));
}

TEST(Mlx5Interleaved, RepeatedEntriesAreTakenInPairs) {
  const DatumDimension pairs[] = {{16, 20}};
  const DatumDimension single[] = {{8, 10}};
  const InterleavedEntry entries[] = {{{base, 8, 1}, 2, pairs}, {{base + 4096, 4, 2}, 1, single}};
  const CardLayout result = interleaved_of(entries, {});
  EXPECT_EQ(result.repeat, 10u);
  ASSERT_EQ(result.interleaved.size(), 3u);
  const std::vector<std::uint64_t> bytes = walk(result);
  ASSERT_EQ(bytes.size(), 10u * 20);
  for (std::uint64_t round = 0; round < 10; ++round) {
    for (std::uint64_t i = 0; i < 20; ++i) {
      const std::uint64_t place =
          i < 16 ? base + (2 * round + i / 8) * 16 + i % 8 : base + 4096 + round * 8 + (i - 16);
      ASSERT_EQ(bytes[round * 20 + i], place);
    }
  }
}

TEST(Mlx5Interleaved, LimitsAndWrongInput) {
  using Dims = std::vector<DatumDimension>;
  const auto refused = [](int code, std::initializer_list<std::string> words, ibv_sge first,
                          const Dims& dims, std::uint32_t repeated = 1) {
    const InterleavedEntry entries[] = {{first, repeated, dims}};
    expect_refused(code, words, [&] { interleaved_of(entries, {}); });
  };
  refused(EOPNOTSUPP, {"65536", "65535"}, {base, 65536, lkey}, {{65536, 2}});
  refused(EOPNOTSUPP, {"stride 65536", "65535"}, {base, 8, lkey}, {{65536, 2}});
  refused(EOPNOTSUPP, {"stride 80000", "65535"}, {base, 8, lkey}, {{40000, 4}}, 2);
  refused(EOPNOTSUPP, {"18446744073709551608"}, {base, 8, lkey}, {{UINT64_MAX - 7, 2}});
  refused(EOPNOTSUPP, {"8 bytes", "4 apart"}, {base, 8, lkey}, {{4, 2}});
  refused(EOPNOTSUPP, {"dimensions 2", "1"}, {base, 8, lkey}, {{8, 2}, {16, 2}});
  refused(EOPNOTSUPP, {"4294967296", "4294967295"}, {0, 1, lkey}, {{1, 1ull << 32}});
  refused(EOPNOTSUPP, {"2147483648", "2147483647"}, {0, 8, lkey}, {{8, 1u << 28}});
  refused(EOPNOTSUPP, {"num_repeated 4", "3"}, {base, 8, lkey}, {{8, 8}}, 4);
  refused(EOPNOTSUPP, {"7 items", "2 in a round"}, {base, 8, lkey}, {{8, 7}}, 2);
  refused(EINVAL, {"0"}, {base, 0, lkey}, {{8, 2}});
  refused(EINVAL, {"datum_count"}, {base, 8, lkey}, {{8, 0}});
  refused(EINVAL, {"num_repeated"}, {base, 8, lkey}, {{8, 2}}, 0);
  refused(EINVAL, {"address space"}, {UINT64_MAX - 100, 8, lkey}, {{16, 10}});
  const Dims four_items{{8, 4}};
  const Dims five_items{{8, 5}};
  const InterleavedEntry uneven[] = {{{base, 8, lkey}, 1, four_items},
                                     {{base, 8, lkey}, 1, five_items}};
  expect_refused(EOPNOTSUPP, {"5 items", "here 4"}, [&] { interleaved_of(uneven, {}); });
  const std::vector<InterleavedEntry> four(4, {{base, 8, lkey}, 1, {}});
  expect_refused(EOPNOTSUPP, {"entries 4", "3"}, [&] { interleaved_of(four, {}); });
  expect_refused(EINVAL, {"0"}, [] { interleaved_of({}, {}); });
  EXPECT_NO_THROW(interleaved_of({four.data(), 3}, {}));
}

}  // namespace
}  // namespace weft::test
