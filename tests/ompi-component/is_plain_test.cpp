#include <gtest/gtest.h>

#include "ompi-component/hook/binding.hpp"
#include "ompi-component/reader/reader.hpp"
#include "tests/ompi-component/random_datatype.hpp"
#include "tests/seed.hpp"

namespace weft::ompi {
namespace {

using test::Datatype;

TEST(IsPlain, PredefinedAndDenseTypesAre) {
  MPI_Datatype made;
  MPI_Type_contiguous(7, MPI_INT, &made);
  MPI_Type_commit(&made);
  const Datatype type(made);
  EXPECT_TRUE(is_plain(MPI_DOUBLE));
  EXPECT_TRUE(is_plain(made));
}

TEST(IsPlain, ColumnIsNot) {
  MPI_Datatype made;
  MPI_Type_vector(7, 1, 2, MPI_INT, &made);
  MPI_Type_commit(&made);
  const Datatype type(made);
  EXPECT_FALSE(is_plain(made));
}

// Open MPI's flags call it dense, its lower bound is 0, and yet its bytes begin elsewhere.
TEST(IsPlain, DenseBlockResizedToOtherBoundsIsNot) {
  const int at = 5;
  MPI_Datatype block;
  MPI_Type_create_indexed_block(1, 4, &at, MPI_INT, &block);
  const Datatype inner(block);
  MPI_Datatype made;
  MPI_Type_create_resized(block, 0, 16, &made);
  MPI_Type_commit(&made);
  const Datatype type(made);
  EXPECT_FALSE(is_plain(made));
  EXPECT_EQ(read_description(made->super)->lower(), 20);
}

// Whatever is handed on as plain really starts at its address and repeats without gaps.
TEST(IsPlain, HoldsForRandomTypes) {
  int plain = 0;
  for (std::uint64_t round = 0; round < 4000; ++round) {
    test::Random random(round);
    const Datatype type = test::random_datatype(random, 4);
    if (!is_plain(type.get())) continue;
    SCOPED_TRACE(test::seed_note(round) + ": " + type.text());
    const hca::LayoutPtr layout = read_description(type.get()->super);
    ASSERT_TRUE(layout->size() == 0 || (layout->is_contiguous() && layout->lower() == 0));
    ++plain;
  }
  EXPECT_GT(plain, 0);
}

}  // namespace
}  // namespace weft::ompi
