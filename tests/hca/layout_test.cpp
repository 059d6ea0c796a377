// Layouts against an oracle that knows the memory offset of every single byte of the stream.
#include "hca/layout.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <numeric>

#include "hca/status.hpp"
#include "tests/memory.hpp"
#include "tests/seed.hpp"

namespace weft::hca {
namespace {

using test::Memory;
using test::Random;
using Offsets = std::vector<std::int64_t>;

/// A layout together with what it must mean.
struct Case {
  LayoutPtr layout;
  Offsets bytes;
};

void append(Offsets& bytes, std::int64_t offset, std::uint64_t length) {
  for (std::uint64_t i = 0; i < length; ++i) bytes.push_back(offset + static_cast<std::int64_t>(i));
}

void append_moved(Offsets& bytes, const Offsets& more, std::int64_t by) {
  for (const std::int64_t b : more) bytes.push_back(b + by);
}

std::uint64_t random_length(Random& random) {
  static constexpr std::array<std::uint64_t, 16> usual{1,  2,  4,  8,  12,  16,  24,  32,
                                                       40, 48, 64, 96, 128, 200, 256, 300};
  if (random.chance(0.6)) return usual[static_cast<std::size_t>(random.in(0, usual.size() - 1))];
  if (random.chance(0.1)) return static_cast<std::uint64_t>(random.in(1, 2500));
  return static_cast<std::uint64_t>(random.in(0, 70));
}

/// Offsets on a coarse grid are disjoint more often than not, so that scatter can be checked too.
std::int64_t random_stride(Random& random, std::int64_t extent) {
  if (random.chance(0.1)) return random.in(-200, 200);
  const std::int64_t stride = extent + random.in(0, 20);
  return random.chance(0.2) ? -stride : stride;
}

std::int64_t extent_of(const Offsets& bytes) {
  if (bytes.empty()) return 0;
  const auto [low, high] = std::minmax_element(bytes.begin(), bytes.end());
  return *high - *low + 1;
}

Case random_case(Random& random, int depth) {
  Case c;
  const std::int64_t pick = random.in(0, depth > 0 ? 6 : 3);
  if (pick == 0) {
    const std::uint64_t length = random_length(random);
    const std::int64_t offset = random.in(-100, 100);
    c.layout = Layout::contiguous(length, offset);
    append(c.bytes, offset, length);
  } else if (pick == 1) {
    const std::uint64_t block = random_length(random);
    const std::int64_t offset = random.in(-100, 100);
    append(c.bytes, offset, block);
    std::vector<Dimension> dims;
    for (std::int64_t n = random.in(1, 4); n > 0 && c.bytes.size() < 20000; --n) {
      const auto count = static_cast<std::uint64_t>(random.in(random.chance(0.05) ? 0 : 1, 9));
      const Dimension dim{count, random_stride(random, extent_of(c.bytes))};
      Offsets all;
      for (std::uint64_t i = 0; i < dim.count; ++i) {
        append_moved(all, c.bytes, static_cast<std::int64_t>(i) * dim.stride);
      }
      c.bytes = all;
      dims.insert(dims.begin(), dim);
    }
    c.layout = Layout::strided(offset, block, dims);
  } else if (pick <= 3) {
    const bool equal = random.chance(0.5);
    const bool far = random.chance(0.1);
    const std::uint64_t one = random_length(random);
    std::vector<Block> blocks;
    std::int64_t at = random.in(-1000, 1000);
    for (std::int64_t n = random.in(0, random.chance(0.2) ? 300 : 8); n > 0; --n) {
      const std::uint64_t length = equal ? one : random_length(random);
      blocks.push_back({at, length});
      at += static_cast<std::int64_t>(length) + random.in(0, 30);
      if (far) at += random.in(0, 100) * 100;
    }
    if (random.chance(0.5)) std::shuffle(blocks.begin(), blocks.end(), random.engine());
    for (const Block& b : blocks) append(c.bytes, b.offset, b.length);
    c.layout = Layout::sg_list(blocks);
  } else if (pick == 4) {
    const Case child = random_case(random, depth - 1);
    const auto count = static_cast<std::uint64_t>(random.in(0, child.bytes.size() < 500 ? 40 : 4));
    const std::int64_t stride = random_stride(random, extent_of(child.bytes));
    c.layout = Layout::repeat(child.layout, count, stride);
    for (std::uint64_t i = 0; i < count; ++i) {
      append_moved(c.bytes, child.bytes, static_cast<std::int64_t>(i) * stride);
    }
  } else if (pick == 5) {
    const Case child = random_case(random, depth - 1);
    const std::int64_t extent = extent_of(child.bytes);
    Offsets offsets;
    for (std::int64_t n = random.in(0, 6); n > 0; --n) {
      offsets.push_back(random.chance(0.1)
                            ? random.in(-50, 50)
                            : (static_cast<std::int64_t>(offsets.size()) - 2) * extent +
                                  random.in(0, 5));
    }
    std::shuffle(offsets.begin(), offsets.end(), random.engine());
    c.layout = Layout::indexed(child.layout, offsets);
    for (const std::int64_t o : offsets) append_moved(c.bytes, child.bytes, o);
  } else {
    std::vector<Placed> parts;
    std::int64_t at = random.in(-100, 100);
    for (std::int64_t n = random.in(0, 5); n > 0; --n) {
      const Case child = random_case(random, depth - 1);
      const std::int64_t low =
          child.bytes.empty() ? 0 : *std::min_element(child.bytes.begin(), child.bytes.end());
      parts.push_back({at - low, child.layout});
      append_moved(c.bytes, child.bytes, at - low);
      at += extent_of(child.bytes) + random.in(0, 9);
    }
    c.layout = Layout::sequence(parts);
  }
  return c;
}

void check_gather(const Case& c, Memory& memory, std::uint64_t offset, std::uint64_t length) {
  // No byte more than asked for: the vector's end is the allocation's end.
  auto out = std::make_unique<std::byte[]>(length);
  c.layout->gather(memory.base(), offset, {out.get(), length});
  for (std::uint64_t i = 0; i < length; ++i) {
    ASSERT_EQ(out[i], memory[c.bytes[offset + i]])
        << "byte " << i << " of " << offset << "+" << length;
  }
}

void check_scatter(const Case& c, Memory& memory, std::uint64_t offset, std::uint64_t length,
                   Random& random) {
  auto in = std::make_unique<std::byte[]>(length);
  for (std::uint64_t i = 0; i < length; ++i) in[i] = static_cast<std::byte>(random.engine()());
  std::vector<std::byte> expected = memory.image();
  std::vector<std::uint8_t> writes(expected.size());
  for (std::uint64_t i = 0; i < length; ++i) {
    const auto at = static_cast<std::size_t>(c.bytes[offset + i] - memory.lower());
    expected[at] = in[i];
    if (writes[at] < 2) ++writes[at];
  }
  c.layout->scatter(memory.base(), offset, {in.get(), length});
  const std::vector<std::byte> got = memory.image();
  for (std::size_t i = 0; i < got.size(); ++i) {
    if (writes[i] > 1) continue;  // where blocks overlap, any of their bytes may win
    ASSERT_EQ(got[i], expected[i]) << "memory byte " << i << " of " << offset << "+" << length;
  }
}

void check(const Case& c, Random& random) {
  ASSERT_NE(c.layout, nullptr);
  ASSERT_EQ(c.layout->size(), c.bytes.size());
  if (c.bytes.empty()) {
    EXPECT_EQ(c.layout->block_count(), 0u);
    c.layout->gather(nullptr, 0, {});
    c.layout->scatter(nullptr, 0, {});
    return;
  }
  const auto [low, high] = std::minmax_element(c.bytes.begin(), c.bytes.end());
  ASSERT_EQ(c.layout->lower(), *low);
  ASSERT_EQ(c.layout->upper(), *high + 1);
  EXPECT_TRUE(c.layout->equals(*c.layout));
  EXPECT_FALSE(c.layout->describe().empty());
  EXPECT_GT(c.layout->footprint(), 0u);

  Memory memory(*c.layout);
  memory.fill(random.engine());
  const auto size = static_cast<std::int64_t>(c.bytes.size());
  check_gather(c, memory, 0, c.bytes.size());
  check_scatter(c, memory, 0, c.bytes.size(), random);
  for (int i = 0; i < 8; ++i) {
    const std::int64_t offset = random.in(0, size);
    const std::int64_t length = random.in(0, size - offset);
    check_gather(c, memory, static_cast<std::uint64_t>(offset), static_cast<std::uint64_t>(length));
    check_scatter(c, memory, static_cast<std::uint64_t>(offset), static_cast<std::uint64_t>(length),
                  random);
    if (testing::Test::HasFatalFailure()) return;
  }
}

TEST(Layout, RandomLayoutsMoveExactlyTheirBytes) {
  constexpr std::uint64_t rounds = 800;
  for (std::uint64_t round = 0; round < rounds; ++round) {
    Random random(round);
    const Case c = random_case(random, static_cast<int>(random.in(0, 3)));
    SCOPED_TRACE(test::seed_note(round) + ": " + c.layout->describe());
    check(c, random);
    if (HasFatalFailure()) return;
  }
}

/// A slice of any layout, or items of several in turn.
Case random_part(Random& random) {
  Case c;
  if (random.chance(0.3)) {
    const Case child = random_case(random, 2);
    const auto size = static_cast<std::int64_t>(child.bytes.size());
    const std::int64_t offset = random.in(0, size);
    const std::int64_t length = random.in(0, size - offset);
    c.layout = Layout::slice(child.layout, static_cast<std::uint64_t>(offset),
                             static_cast<std::uint64_t>(length));
    c.bytes.assign(child.bytes.begin() + offset, child.bytes.begin() + offset + length);
    return c;
  }
  std::vector<RoundRobinEntry> entries;
  std::vector<Offsets> items;  // bytes of each entry
  for (std::int64_t n = random.in(0, 5); n > 0; --n) {
    RoundRobinEntry entry;
    Case child;
    if (random.chance(0.5)) child = random_case(random, 1);
    std::int64_t room = 3000;
    if (!child.bytes.empty()) {
      entry.child = child.layout;
      room = static_cast<std::int64_t>(child.bytes.size());
    }
    entry.block = static_cast<std::uint64_t>(
        random.in(entry.child ? 1 : 0, std::min<std::int64_t>(40, room)));
    entry.offset = random.in(0, room - static_cast<std::int64_t>(entry.block));
    entry.repeat = static_cast<std::uint64_t>(random.in(1, 4));
    room -= entry.offset + static_cast<std::int64_t>(entry.block);
    Offsets starts{entry.offset};
    for (std::int64_t dims = random.in(0, 3); dims > 0; --dims) {
      const std::int64_t count = random.in(entry.child ? 1 : 0, 9);
      const std::int64_t stride = random.in(0, count > 1 ? room / (count - 1) / 2 : 50);
      if (count > 1) room -= (count - 1) * stride;
      entry.dims.insert(entry.dims.begin(), {static_cast<std::uint64_t>(count), stride});
      Offsets more;
      for (std::int64_t i = 0; i < count; ++i) append_moved(more, starts, i * stride);
      starts = std::move(more);
    }
    Offsets bytes;
    for (const std::int64_t start : starts) {
      for (std::uint64_t i = 0; i < entry.block; ++i) {
        const std::int64_t at = start + static_cast<std::int64_t>(i);
        bytes.push_back(entry.child ? child.bytes[static_cast<std::size_t>(at)] : at);
      }
    }
    items.push_back(std::move(bytes));
    entries.push_back(std::move(entry));
  }
  std::vector<std::size_t> next(items.size());
  for (bool more = true; more;) {
    more = false;
    for (std::size_t e = 0; e < items.size(); ++e) {
      for (std::uint64_t i = 0; i < entries[e].repeat * entries[e].block; ++i) {
        if (next[e] == items[e].size()) break;
        c.bytes.push_back(items[e][next[e]++]);
      }
      more = more || next[e] < items[e].size();
    }
  }
  c.layout = Layout::round_robin(std::move(entries));
  return c;
}

TEST(Layout, SlicesAndRoundRobinsMoveExactlyTheirBytes) {
  for (std::uint64_t round = 0; round < 600; ++round) {
    Random random(round + 200000);
    const Case c = random_part(random);
    SCOPED_TRACE(test::seed_note(round) + ": " + c.layout->describe());
    ASSERT_EQ(c.layout->size(), c.bytes.size());
    EXPECT_TRUE(c.layout->equals(*c.layout));
    if (c.bytes.empty()) continue;
    const auto [low, high] = std::minmax_element(c.bytes.begin(), c.bytes.end());
    ASSERT_LE(c.layout->lower(), *low);
    ASSERT_GT(c.layout->upper(), *high);
    Memory memory(*c.layout);
    memory.fill(random.engine());
    check_gather(c, memory, 0, c.bytes.size());
    const auto size = static_cast<std::int64_t>(c.bytes.size());
    for (int i = 0; i < 8; ++i) {
      const std::int64_t offset = random.in(0, size);
      const auto length = static_cast<std::uint64_t>(random.in(0, size - offset));
      check_gather(c, memory, static_cast<std::uint64_t>(offset), length);
      check_scatter(c, memory, static_cast<std::uint64_t>(offset), length, random);
    }
    if (HasFatalFailure()) return;
  }
}

TEST(Layout, AdjacentBytesAreFoundAndScatteredOnesAreNot) {
  for (std::uint64_t round = 0; round < 600; ++round) {
    Random random(round + 300000);
    const Case c = random.chance(0.5) ? random_part(random) : random_case(random, 3);
    SCOPED_TRACE(test::seed_note(round) + ": " + c.layout->describe());
    std::vector<std::byte> base(1);
    for (int i = 0; i < 20 && !c.bytes.empty(); ++i) {
      const auto at =
          static_cast<std::size_t>(random.in(0, static_cast<std::int64_t>(c.bytes.size()) - 1));
      const auto most = static_cast<std::int64_t>(std::min<std::size_t>(8, c.bytes.size() - at));
      const auto length = static_cast<std::size_t>(random.in(1, most));
      // Only an address: nothing is there.
      const auto found =
          reinterpret_cast<std::uintptr_t>(c.layout->adjacent(base.data(), at, length));
      if (found == 0) {
        EXPECT_NE(length, 1u);
        continue;
      }
      const auto from =
          static_cast<std::int64_t>(found - reinterpret_cast<std::uintptr_t>(base.data()));
      for (std::size_t k = 0; k < length; ++k) {
        ASSERT_EQ(c.bytes[at + k], from + static_cast<std::int64_t>(k));
      }
    }
  }
}

TEST(Layout, SlicesAndRoundRobinsKeepToTheirStreams) {
  const LayoutPtr child = Layout::contiguous(100, 5);
  EXPECT_THROW(Layout::slice(child, 101, 0), Error);
  EXPECT_THROW(Layout::slice(child, 50, 51), Error);
  EXPECT_THROW(Layout::slice(child, 1, UINT64_MAX), Error);
  EXPECT_THROW(Layout::slice(nullptr, 0, 1), Error);
  EXPECT_THROW(Layout::round_robin({{child, 96, 5, {}, 1}}), Error);
  EXPECT_THROW(Layout::round_robin({{child, 0, 5, {{2, 96}}, 1}}), Error);
  EXPECT_THROW(Layout::round_robin({{child, 50, 5, {{2, -60}}, 1}}), Error);
  EXPECT_THROW(Layout::round_robin({{child, 0, 5, {}, 0}}), Error);
  EXPECT_THROW(Layout::round_robin({{nullptr, 0, 8, {{std::uint64_t{1} << 61, 1}}, 1}}), Error);
  EXPECT_EQ(Layout::round_robin({{child, 95, 5, {}, 1}})->size(), 5u);
}

TEST(Layout, ConsecutivePiecesOfAnySizeMakeTheWholeStream) {
  for (std::uint64_t round = 0; round < 200; ++round) {
    Random random(round + 100000);
    const Case c = random_case(random, 2);
    SCOPED_TRACE(test::seed_note(round) + ": " + c.layout->describe());
    if (c.bytes.empty()) continue;
    Memory memory(*c.layout);
    memory.fill(random.engine());
    std::vector<std::byte> out(c.bytes.size());
    for (std::size_t at = 0; at < out.size();) {
      const auto n = std::min(out.size() - at, static_cast<std::size_t>(random.in(1, 300)));
      c.layout->gather(memory.base(), at, std::span(out).subspan(at, n));
      at += n;
    }
    for (std::size_t i = 0; i < out.size(); ++i) ASSERT_EQ(out[i], memory[c.bytes[i]]);
  }
}

TEST(Layout, EveryBlockSizeAtEveryStart) {
  Random random(200000);
  for (std::uint64_t block = 1; block <= 300; ++block) {
    SCOPED_TRACE(test::seed_note(block));
    Case c;
    constexpr std::uint64_t count = 7;
    const auto stride = static_cast<std::int64_t>(block) + random.in(0, 17);
    const std::array<Dimension, 1> dims{{{count, stride}}};
    c.layout = Layout::strided(3, block, dims);
    for (std::uint64_t i = 0; i < count; ++i)
      append(c.bytes, 3 + static_cast<std::int64_t>(i) * stride, block);
    Memory memory(*c.layout);
    memory.fill(random.engine());
    for (std::uint64_t start = 0; start < 2 * block; start += block < 70 ? 1 : 13) {
      check_gather(c, memory, start, c.bytes.size() - start);
      check_gather(c, memory, 0, start);
      check_scatter(c, memory, start, c.bytes.size() - start, random);
      if (HasFatalFailure()) return;
    }
  }
}

TEST(Layout, AbsoluteOffsetsWithANullBase) {
  std::vector<std::uint64_t> data(64);
  std::iota(data.begin(), data.end(), 0);
  const auto address = static_cast<std::int64_t>(reinterpret_cast<std::uintptr_t>(data.data()));
  const std::array<Dimension, 1> dims{{{16, 32}}};
  const std::array<Block, 3> list{{{address + 80, 8}, {address, 8}, {address + 160, 8}}};
  const std::array<Block, 3> mixed{{{address + 80, 8}, {address, 16}, {address + 160, 8}}};
  const std::array<std::int64_t, 2> places{address, address + 256};
  const LayoutPtr relative = Layout::contiguous(16);
  for (const LayoutPtr& layout :
       {Layout::contiguous(64, address), Layout::strided(address, 8, dims), Layout::sg_list(list),
        Layout::sg_list(mixed), Layout::repeat(Layout::sg_list(list), 3, 8),
        Layout::indexed(relative, places)}) {
    std::vector<std::byte> out(layout->size());
    layout->gather(nullptr, 0, out);
    layout->scatter(nullptr, 0, out);
    std::uint64_t first = 0;
    std::memcpy(&first, out.data(), sizeof first);
    const bool from_ten =
        layout->kind() == LayoutKind::sg_list || layout->kind() == LayoutKind::interleaved;
    EXPECT_EQ(first, from_ten ? 10u : 0u) << layout->describe();
  }
  for (std::size_t i = 0; i < data.size(); ++i) EXPECT_EQ(data[i], i);
}

TEST(Layout, OffsetsBeyondFourGiB) {
  const std::int64_t far = std::int64_t{5} << 30;
  const std::array<Block, 3> list{{{0, 8}, {far, 8}, {2 * far, 8}}};
  const LayoutPtr layout = Layout::sg_list(list);
  EXPECT_EQ(layout->upper(), 2 * far + 8);
  EXPECT_EQ(layout->size(), 24u);
  const std::array<Dimension, 1> dims{{{3, far}}};
  const LayoutPtr strided = Layout::strided(-far, 8, dims);
  EXPECT_EQ(strided->lower(), -far);
  EXPECT_EQ(strided->upper(), far + 8);
}

TEST(Layout, Kinds) {
  const std::array<Dimension, 1> dims{{{4, 16}}};
  const std::array<Block, 2> two{{{0, 8}, {12, 4}}};
  EXPECT_EQ(Layout::contiguous(8)->kind(), LayoutKind::contiguous);
  EXPECT_EQ(Layout::strided(0, 8, dims)->kind(), LayoutKind::strided);
  EXPECT_EQ(Layout::sg_list(two)->kind(), LayoutKind::sg_list);
  EXPECT_EQ(Layout::repeat(Layout::sg_list(two), 5, 32)->kind(), LayoutKind::interleaved);
  EXPECT_EQ(Layout::repeat(Layout::strided(0, 8, dims), 5, 99)->kind(), LayoutKind::nested);
  for (const LayoutKind kind : {LayoutKind::contiguous, LayoutKind::strided,
                                LayoutKind::interleaved, LayoutKind::sg_list, LayoutKind::nested}) {
    EXPECT_STRNE(to_string(kind), "unknown");
  }
}

TEST(Layout, EqualOnlyWhenTheSameDescription) {
  const std::array<Dimension, 1> dims{{{4, 16}}};
  const std::array<Dimension, 1> other_dims{{{4, 24}}};
  const std::array<Block, 2> two{{{0, 8}, {12, 4}}};
  const std::array<Block, 2> swapped{{{12, 4}, {0, 8}}};
  const std::vector<LayoutPtr> layouts{
      Layout::contiguous(0),
      Layout::contiguous(8),
      Layout::contiguous(8, 8),
      Layout::strided(0, 8, dims),
      Layout::strided(0, 8, other_dims),
      Layout::strided(8, 8, dims),
      Layout::sg_list(two),
      Layout::sg_list(swapped),
      Layout::repeat(Layout::sg_list(two), 5, 32),
      Layout::repeat(Layout::sg_list(two), 6, 32),
      Layout::repeat(Layout::strided(0, 8, dims), 5, 99),
      Layout::indexed(Layout::strided(0, 8, dims), std::vector<std::int64_t>{0, 100, 300}),
      Layout::sequence(
          std::vector<Placed>{{0, Layout::contiguous(8)}, {50, Layout::strided(0, 8, dims)}}),
  };
  for (std::size_t i = 0; i < layouts.size(); ++i) {
    for (std::size_t j = 0; j < layouts.size(); ++j) {
      EXPECT_EQ(layouts[i]->equals(*layouts[j]), i == j)
          << layouts[i]->describe() << " and " << layouts[j]->describe();
    }
  }
  EXPECT_TRUE(Layout::sg_list(two)->equals(*Layout::sg_list(two)));
}

TEST(Layout, RefusesMoreThan63Bits) {
  const std::array<Dimension, 1> too_many{{{std::uint64_t{1} << 62, 16}}};
  const std::array<Dimension, 1> negative{{{std::uint64_t{1} << 62, -16}}};
  EXPECT_THROW(Layout::contiguous(UINT64_MAX), Error);
  EXPECT_THROW(Layout::contiguous(2, INT64_MAX - 1), Error);
  EXPECT_THROW(Layout::strided(0, 8, too_many), Error);
  EXPECT_THROW(Layout::strided(0, 1, negative), Error);
  EXPECT_THROW(Layout::repeat(Layout::contiguous(1), UINT64_MAX, 0), Error);
  EXPECT_THROW(Layout::repeat(Layout::contiguous(8), 3, INT64_MAX), Error);
  EXPECT_THROW(Layout::sequence(std::vector<Placed>{{INT64_MAX, Layout::contiguous(8)},
                                                    {0, Layout::contiguous(8)}}),
               Error);
  EXPECT_THROW(Layout::repeat(nullptr, 2, 8), Error);
  try {
    Layout::contiguous(UINT64_MAX);
  } catch (const Error& e) {
    EXPECT_EQ(e.code(), EOVERFLOW);
  }
}

TEST(Layout, AColumnTakesTheSameMemoryWhateverItsLength) {
  const std::array<Dimension, 1> few{{{2, 8208}}};
  const std::array<Dimension, 1> many{{{1 << 20, 8208}}};
  EXPECT_EQ(Layout::strided(0, 8, few)->footprint(), Layout::strided(0, 8, many)->footprint());
}

TEST(Layout, ListsOfEqualBlocksTakeFourBytesEach) {
  std::vector<Block> blocks;
  for (std::int64_t i = 0; i < 10000; ++i) blocks.push_back({i * i, 8});
  EXPECT_LT(Layout::sg_list(blocks)->footprint(), 4 * blocks.size() + 256);
}

TEST(Layout, BlocksOfWhichSomeAreTwoInOneMoveAsEqualOnes) {
  std::vector<Block> blocks;
  for (std::int64_t i = 0; i < 1000; ++i) blocks.push_back({32 * i, i % 10 == 3 ? 16u : 8u});
  const LayoutPtr layout = Layout::sg_list(blocks);
  EXPECT_LT(layout->footprint(), 4 * 1100 + 256);
  EXPECT_EQ(layout->block_count(), 1100);
  Memory memory(*layout);
  Random random(7);
  memory.fill(random.engine());
  for (const std::size_t offset : {0u, 3u, 31u, 4000u, 8799u}) {
    std::vector<std::byte> expected, got(layout->size() - offset);
    for (const Block& block : blocks) {
      const std::byte* at = memory.base() + block.offset;
      expected.insert(expected.end(), at, at + block.length);
    }
    expected.erase(expected.begin(), expected.begin() + static_cast<std::ptrdiff_t>(offset));
    layout->gather(memory.base(), offset, got);
    EXPECT_EQ(got, expected) << offset;
  }
}

}  // namespace
}  // namespace weft::hca
