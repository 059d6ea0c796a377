// Random datatypes over all constructors against the type map.
#include <gtest/gtest.h>

#include <algorithm>

#include "datatype/builder.hpp"
#include "datatype/cost.hpp"
#include "datatype/loop_builder.hpp"
#include "datatype/type_map.hpp"
#include "tests/memory.hpp"
#include "tests/seed.hpp"

namespace weft::datatype {
namespace {

using test::Memory;
using test::Random;

/// Gathers all and some pieces, and scatters them where no two blocks overlap.
void check_bytes(const hca::Layout& layout, const std::vector<std::int64_t>& bytes,
                 Random& random) {
  ASSERT_EQ(layout.size(), bytes.size());
  if (bytes.empty()) return;
  ASSERT_EQ(layout.lower(), *std::min_element(bytes.begin(), bytes.end()));
  ASSERT_EQ(layout.upper(), *std::max_element(bytes.begin(), bytes.end()) + 1);
  Memory memory(layout);
  memory.fill(random.engine());
  std::vector<std::int64_t> sorted = bytes;
  std::sort(sorted.begin(), sorted.end());
  const bool disjoint = std::adjacent_find(sorted.begin(), sorted.end()) == sorted.end();
  const auto size = static_cast<std::int64_t>(bytes.size());
  for (int i = 0; i < 3; ++i) {
    const std::int64_t offset = i == 0 ? 0 : random.in(0, size);
    const auto length = static_cast<std::size_t>(i == 0 ? size : random.in(0, size - offset));
    const std::int64_t* expected = bytes.data() + offset;
    const auto packed = std::make_unique<std::byte[]>(length);
    layout.gather(memory.base(), static_cast<std::uint64_t>(offset), {packed.get(), length});
    for (std::size_t k = 0; k < length; ++k) ASSERT_EQ(packed[k], memory[expected[k]]) << k;
    if (!disjoint) continue;
    std::vector<std::byte> image = memory.image();
    for (std::size_t k = 0; k < length; ++k) {
      packed[k] = static_cast<std::byte>(random.engine()());
      image[static_cast<std::size_t>(expected[k] - memory.lower())] = packed[k];
    }
    layout.scatter(memory.base(), static_cast<std::uint64_t>(offset), {packed.get(), length});
    ASSERT_EQ(memory.image(), image);
  }
}

TEST(RandomTypes, MeanTheirTypeMap) {
  for (std::uint64_t round = 0; round < 4000; ++round) {
    Random random(round);
    RandomSpecLimits limits;
    limits.max_bytes = random.chance(0.1) ? 5000 : 300;
    const Spec spec = random_spec(random.engine(), limits);
    SCOPED_TRACE(test::seed_note(round) + ": " + to_string(spec));
    const TypeMap map = expand(spec);
    const Type type = build(spec);
    ASSERT_EQ(type.size(), map.size());
    ASSERT_EQ(type.lb(), map.lb());
    ASSERT_EQ(type.ub(), map.ub());
    ASSERT_EQ(type.true_lb(), map.true_lb());
    ASSERT_EQ(type.true_ub(), map.true_ub());
    const hca::LayoutPtr one = type.layout();
    SCOPED_TRACE(one->describe());
    check_bytes(*one, map.bytes(), random);
    if (HasFatalFailure()) return;
    const std::int64_t count = random.in(0, 5);
    const hca::LayoutPtr several = type.layout(static_cast<std::uint64_t>(count));
    SCOPED_TRACE(std::to_string(count) + " times " + several->describe());
    check_bytes(*several, map.repeated(count).bytes(), random);
    if (HasFatalFailure()) return;
    if (several->block_count() > canonical_blocks) continue;
    ASSERT_TRUE(several->equals(*repeat(one, static_cast<std::uint64_t>(count), type.extent())));
  }
}

TEST(RandomTypes, SurviveTheWayToALayoutAndBack) {
  for (std::uint64_t round = 0; round < 4000; ++round) {
    Random random(round + 1000000);
    const Spec spec = random_spec(random.engine());
    SCOPED_TRACE(test::seed_note(round) + ": " + to_string(spec));
    const Piece piece = build(spec).form();
    const Piece again = from_layout(*to_layout(piece));
    ASSERT_EQ(piece.empty(), again.empty());
    if (piece.empty() || piece.blocks() > canonical_blocks) continue;
    ASSERT_EQ(piece.offset, again.offset);
    ASSERT_TRUE(same_shape(piece, again)) << to_layout(piece)->describe() << "\n"
                                          << to_layout(again)->describe();
  }
}

TEST(RandomTypes, HaveNoTwoBlocksThatCouldBeOne) {
  for (std::uint64_t round = 0; round < 4000; ++round) {
    Random random(round + 2000000);
    RandomSpecLimits limits;
    limits.max_bytes = 600;
    const Spec spec = random_spec(random.engine(), limits);
    SCOPED_TRACE(test::seed_note(round) + ": " + to_string(spec));
    const std::vector<std::int64_t> bytes = expand(spec).bytes();
    std::uint64_t blocks = 0;
    for (std::size_t i = 0; i < bytes.size(); ++i) {
      blocks += i == 0 || bytes[i] != bytes[i - 1] + 1 ? 1 : 0;
    }
    const hca::LayoutPtr layout = build(spec).layout();
    ASSERT_EQ(layout->block_count(), blocks) << layout->describe();
  }
}

TEST(RandomTypes, WrittenOutAsAListComeOutEqual) {
  std::uint64_t large = 0;
  std::uint64_t large_equal = 0;
  for (std::uint64_t round = 0; round < 3000; ++round) {
    Random random(round + 3000000);
    RandomSpecLimits limits;
    limits.max_bytes = random.chance(0.2) ? 5000 : 600;
    const Spec spec = random_spec(random.engine(), limits);
    SCOPED_TRACE(test::seed_note(round) + ": " + to_string(spec));
    Spec written;
    written.kind = Spec::Kind::hindexed;
    for (const TypeMap::Entry& e : expand(spec).entries) {
      written.blocklengths.push_back(static_cast<std::int64_t>(e.size));
      written.displacements.push_back(e.displacement);
    }
    written.types.push_back(parse("byte"));
    const hca::LayoutPtr a = build(spec).layout();
    const hca::LayoutPtr b = build(written).layout();
    if (a->block_count() <= canonical_blocks) {
      ASSERT_TRUE(a->equals(*b)) << a->describe() << "\n" << b->describe();
    } else {
      ++large;
      large_equal += a->equals(*b) ? 1 : 0;
    }
  }
  // No promise here, but worse than this would be a mistake.
  EXPECT_GE(large_equal * 5, large) << large_equal << " of " << large;
  RecordProperty("large", std::to_string(large));
  RecordProperty("large_equal", std::to_string(large_equal));
}

TEST(RandomTypes, ArePrintedAndParsedAlike) {
  for (std::uint64_t round = 0; round < 2000; ++round) {
    Random random(round + 4000000);
    const std::string text = to_string(random_spec(random.engine()));
    ASSERT_EQ(to_string(parse(text)), text) << test::seed_note(round);
  }
}

}  // namespace
}  // namespace weft::datatype
