// What particular descriptions come down to.
#include "datatype/normal_form.hpp"

#include <gtest/gtest.h>

#include <cerrno>

#include "datatype/builder.hpp"
#include "datatype/loop_builder.hpp"
#include "datatype/spec.hpp"
#include "hca/status.hpp"
#include "tests/seed.hpp"

namespace weft::datatype {
namespace {

std::string form(const char* text, std::uint64_t count = 1) {
  return build(parse(text)).layout(count)->describe();
}

hca::LayoutPtr layout(const char* text) {
  return build(parse(text)).layout();
}

TEST(NormalForm, ContiguousHoweverItIsWritten) {
  for (const char* text :
       {"contiguous(6, double)", "vector(6, 1, 1, double)", "vector(2, 3, 3, double)",
        "hvector(3, 2, 16, double)", "indexed([1, 2, 3], [0, 1, 3], double)",
        "struct([2, 4], [0, 16], [double, double])", "subarray([6], [6], [0], C, double)",
        "subarray([3, 2], [3, 2], [0, 0], F, double)", "contiguous(2, contiguous(3, double))",
        "dup(hindexed_block(3, [0, 24], double))", "contiguous(48, char)",
        "resized(contiguous(6, double), -8, 100)",
        "struct([1, 2], [0, 16], [c_double_complex, "
        "c_double_complex])"}) {
    EXPECT_EQ(form(text), "contiguous(offset 0, 48 bytes)") << text;
  }
}

TEST(NormalForm, AColumnIsOneDimensionWhateverItsRows) {
  EXPECT_EQ(form("vector(1024, 1, 1026, double)"), "strided(offset 0, block 8, 1024 x 8208)");
  const hca::LayoutPtr small = layout("vector(16, 1, 1026, double)");
  const hca::LayoutPtr large = layout("vector(1M, 1, 1026, double)");
  EXPECT_EQ(small->footprint(), large->footprint());
  EXPECT_EQ(large->block_count(), 1u << 20);
}

TEST(NormalForm, TilingDimensionsCollapse) {
  // 16 x 16 x 16 x 32 sites of 96 bytes, the third coordinate fixed.
  EXPECT_EQ(
      form("subarray([16, 16, 16, 32], [16, 16, 1, 32], [0, 0, 5, 0], C, contiguous(12, double))"),
      "strided(offset 15360, block 3072, 256 x 49152)");
  EXPECT_EQ(form("hvector(10, 1, 1600, hvector(100, 1, 16, double))"),
            "strided(offset 0, block 8, 1000 x 16)");
  EXPECT_EQ(form("hvector(10, 1, 1600, hvector(99, 1, 16, double))"),
            "strided(offset 0, block 8, 10 x 1600, 99 x 16)");
}

TEST(NormalForm, FacesOfACube) {
  EXPECT_EQ(form("subarray([130, 130, 130], [126, 126, 2], [2, 2, 2], C, double)"),
            "strided(offset 272496, block 16, 126 x 135200, 126 x 1040)");
  EXPECT_EQ(form("subarray([130, 130, 130], [126, 2, 126], [2, 2, 2], C, double)"),
            "strided(offset 272496, block 1008, 126 x 135200, 2 x 1040)");
  EXPECT_EQ(form("subarray([130, 130, 130], [2, 126, 126], [2, 2, 2], C, double)"),
            "strided(offset 272496, block 1008, 2 x 135200, 126 x 1040)");
}

TEST(NormalForm, BlocksMergeAcrossIterations) {
  EXPECT_EQ(
      form("resized(struct([1, 1], [0, 32], [double, double]), 0, 40)", 16384),
      "sequence(0: contiguous(offset 0, 8 bytes), 0: strided(offset 32, block 16, 16383 x 40), "
      "0: contiguous(offset 655352, 8 bytes))");
  // The natural extent of a vector ends with its last block.
  EXPECT_EQ(form("vector(1024, 1, 1026, double)", 2),
            "sequence(0: strided(offset 0, block 8, 1023 x 8208), 0: contiguous(offset 8396784, 16 "
            "bytes), 0: strided(offset 8405000, block 8, 1023 x 8208))");
}

TEST(NormalForm, RunsInListsBecomeLoops) {
  EXPECT_EQ(form("indexed_block(1, [0, 3, 6, 9, 12], double)"), form("vector(5, 1, 3, double)"));
  EXPECT_EQ(form("indexed_block(1, [12, 9, 6, 3, 0], double)"),
            "strided(offset 96, block 8, 5 x -24)");
  EXPECT_EQ(form("hindexed([8, 4, 8, 4, 8, 4], [0, 16, 100, 116, 200, 216], byte)"),
            "interleaved(3 x 100, blocks 8 @ 0, 4 @ 16)");
  EXPECT_EQ(form("indexed_block(1, [0, 3, 7, 12, 18], double)"),
            "sg_list(5 blocks: 8 @ 0, 8 @ 24, 8 @ 56, 8 @ 96, 8 @ 144)");
}

TEST(NormalForm, TheOrderIsKept) {
  EXPECT_EQ(form("indexed_block(1, [2, 0, 5], double)"),
            "sg_list(3 blocks: 8 @ 16, 8 @ 0, 8 @ 40)");
  EXPECT_EQ(form("indexed_block(1, [1, 0], double)"), "strided(offset 8, block 8, 2 x -8)");
}

TEST(NormalForm, ManyEqualPartsAreIndexed) {
  EXPECT_EQ(form("hindexed_block(1, [0, 5000, 17000], vector(32, 1, 6, double))"),
            "indexed(3 at 0, 5000, 17000: strided(offset 0, block 8, 32 x 48))");
}

TEST(NormalForm, ALoopOverAShortListIsInterleaved) {
  const hca::LayoutPtr l =
      layout("hvector(64, 1, 1000, struct([1, 1, 1], [0, 16, 40], [double, float, double]))");
  EXPECT_EQ(l->kind(), hca::LayoutKind::interleaved);
  EXPECT_EQ(l->describe(), "interleaved(64 x 1000, blocks 8 @ 0, 4 @ 16, 8 @ 40)");
}

TEST(NormalForm, NothingComesToNothing) {
  for (const char* text :
       {"contiguous(0, double)", "vector(0, 3, 4, double)", "vector(3, 0, 4, double)",
        "indexed([], [], double)", "struct([], [], [])", "indexed([0, 0], [1, 5], int)",
        "contiguous(5, resized(contiguous(0, int), 0, 16))"}) {
    const hca::LayoutPtr l = layout(text);
    EXPECT_EQ(l->size(), 0u) << text;
    EXPECT_EQ(l->describe(), "empty") << text;
  }
  EXPECT_EQ(layout("double")->size(), 8u);
  EXPECT_EQ(build(parse("double")).layout(0)->size(), 0u);
}

TEST(NormalForm, ExtentsOfAnySign) {
  const Type column = build(parse("resized(vector(4, 1, 4, double), 0, 8)"));
  EXPECT_EQ(column.layout(4)->describe(), "strided(offset 0, block 8, 4 x 8, 4 x 32)");
  EXPECT_EQ(build(parse("resized(double, 0, -16)")).layout(3)->describe(),
            "strided(offset 0, block 8, 3 x -16)");
  EXPECT_EQ(build(parse("resized(double, 0, 0)")).layout(3)->describe(),
            "strided(offset 0, block 8, 3 x 0)");
  EXPECT_EQ(repeat(layout("double"), 3, -16)->describe(), "strided(offset 0, block 8, 3 x -16)");
}

TEST(NormalForm, LargeTypesWithoutExpansion) {
  // Two million million blocks: only O(description) can do that.
  const hca::LayoutPtr l =
      layout("hvector(1M, 1, 100G, hvector(1M, 1, 64K, struct([1, 1], [0, 32], [double, int])))");
  EXPECT_EQ(l->block_count(), std::uint64_t{1} << 41);
  EXPECT_LT(l->footprint(), 1000u);
  const hca::LayoutPtr far = layout("hindexed_block(1, [0, 3G, 100G, 4096G], double)");
  EXPECT_EQ(far->upper(), (std::int64_t{4096} << 30) + 8);
}

TEST(NormalForm, RefusesWhatMpiForbids) {
  for (const char* text :
       {"contiguous(-1, int)", "vector(3, -1, 4, int)", "subarray([4], [5], [0], C, int)",
        "subarray([4], [2], [3], C, int)", "darray(4, [8], [block], [default], [4], C, int)",
        "darray(0, [8], [block], [1], [4], C, int)",
        "darray(0, [8], [none], [default], [2], C, int)"}) {
    try {
      build(parse(text));
      ADD_FAILURE() << text;
    } catch (const hca::Error& e) {
      EXPECT_EQ(e.code(), EINVAL) << text;
    }
  }
  for (const char* text :
       {"contiguous(4096G, contiguous(4096G, double))", "hvector(4096G, 1, 4096G, double)",
        "resized(double, 4096G, 8589934591G)"}) {
    try {
      build(parse(text));
      ADD_FAILURE() << text;
    } catch (const hca::Error& e) {
      EXPECT_EQ(e.code(), EOVERFLOW) << text;
    }
  }
}

TEST(LoopBuilder, ElementsAndLoops) {
  LoopBuilder b;
  b.element(0, 1024, 8, 8208);
  EXPECT_EQ(b.finish()->describe(), "strided(offset 0, block 8, 1024 x 8208)");

  b.begin_loop(126, 135200);
  b.element(16, 126, 16, 1040);
  b.end_loop();
  EXPECT_EQ(b.finish()->describe(), "strided(offset 16, block 16, 126 x 135200, 126 x 1040)");

  b.element(0, 1, 8, 8);
  b.begin_loop(3, 100);
  b.element(20, 1, 4, 4);
  b.begin_loop(2, 10);
  b.element(40, 1, 2, 2);
  b.end_loop();
  b.end_loop();
  const hca::LayoutPtr l = b.finish();
  EXPECT_EQ(l->size(), 8u + 3 * (4 + 2 * 2));
  EXPECT_EQ(l->block_count(), 10u);

  EXPECT_EQ(b.finish()->size(), 0u);
}

TEST(LoopBuilder, GivesWhatTheConstructorsGive) {
  LoopBuilder b;
  for (const std::int64_t at : {0, 5000, 17000}) b.element(at, 32, 8, 48);
  EXPECT_TRUE(
      b.finish()->equals(*layout("hindexed_block(1, [0, 5000, 17000], vector(32, 1, 6, double))")));
}

TEST(LoopBuilder, UnbalancedLoops) {
  LoopBuilder b;
  EXPECT_THROW(b.end_loop(), hca::Error);
  b.begin_loop(2, 8);
  EXPECT_THROW(b.finish(), hca::Error);
  b.element(0, 1, 8, 8);  // usable again
  EXPECT_EQ(b.finish()->size(), 8u);
}

TEST(TypeBounds, Alignment) {
  EXPECT_EQ(build(parse("struct([1, 1], [0, 8], [double, char])")).extent(), 16);
  EXPECT_EQ(build(parse("struct([1, 1], [0, 4], [int, char])")).extent(), 8);
  EXPECT_EQ(build(parse("resized(struct([1, 1], [0, 8], [double, char]), 0, 9)")).extent(), 9);
}

TEST(TypeBounds, MarkersStick) {
  // The example of MPI-3.1, 4.1.7.
  const Type type1 = build(parse("resized(int, -3, 9)"));
  EXPECT_EQ(type1.lb(), -3);
  EXPECT_EQ(type1.ub(), 6);
  const Type type2 = build(parse("contiguous(2, resized(int, -3, 9))"));
  EXPECT_EQ(type2.lb(), -3);
  EXPECT_EQ(type2.ub(), 15);
  EXPECT_EQ(type2.true_lb(), 0);
  EXPECT_EQ(type2.true_ub(), 13);
  const Type with_other = build(parse("struct([1, 1], [0, 100], [resized(int, -3, 9), double])"));
  EXPECT_EQ(with_other.ub(), 6);
}

}  // namespace
}  // namespace weft::datatype
