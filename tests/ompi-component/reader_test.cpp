#include "ompi-component/reader/reader.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <vector>

#include "datatype/loop_builder.hpp"
#include "tests/ompi-component/random_datatype.hpp"
#include "tests/seed.hpp"

namespace weft::ompi {
namespace {

using test::Datatype;
using test::Random;
using Bytes = std::vector<std::byte>;

// Memory for `count` elements: `base` is where MPI's buffer argument points.
class Buffer {
 public:
  Buffer(MPI_Datatype type, int count) {
    MPI_Aint true_lower = 0, true_extent = 0, lower = 0, extent = 0;
    MPI_Type_get_true_extent(type, &true_lower, &true_extent);
    MPI_Type_get_extent(type, &lower, &extent);
    const MPI_Aint last = extent * std::max(count - 1, 0);
    const MPI_Aint low = true_lower + std::min<MPI_Aint>(last, 0) - margin;
    const MPI_Aint high = true_lower + true_extent + std::max<MPI_Aint>(last, 0) + margin;
    bytes_.resize(static_cast<std::size_t>(high - low));
    offset_ = -low;
  }
  [[nodiscard]] std::byte* base() { return bytes_.data() + offset_; }
  [[nodiscard]] Bytes& bytes() { return bytes_; }

 private:
  static constexpr MPI_Aint margin = 64;
  Bytes bytes_;
  MPI_Aint offset_ = 0;
};

void fill(Bytes& bytes, Random& random) {
  for (std::byte& byte : bytes) byte = static_cast<std::byte>(random.in(0, 255));
}

hca::LayoutPtr layout_of(MPI_Datatype type, int count) {
  MPI_Aint lower = 0, extent = 0;
  MPI_Type_get_extent(type, &lower, &extent);
  return datatype::repeat(read_description(type->super), static_cast<std::uint64_t>(count), extent);
}

Bytes packed_by_mpi(std::byte* base, int count, MPI_Datatype type) {
  int size = 0, position = 0;
  MPI_Pack_size(count, type, MPI_COMM_SELF, &size);
  // Open MPI takes a null pointer for an error even where nothing is packed.
  Bytes packed(static_cast<std::size_t>(size) + 1);
  MPI_Pack(base, count, type, packed.data(), size, &position, MPI_COMM_SELF);
  packed.resize(static_cast<std::size_t>(position));
  return packed;
}

// A member without bytes moves the bounds of a struct, but Open MPI 4.1 leaves the struct marked as
// free of gaps and then packs several of them as one piece. weft goes by the bounds.
bool is_mistaken_for_dense(MPI_Datatype type) {
  const opal_datatype_t& t = type->super;
  return (t.flags & OPAL_DATATYPE_FLAG_NO_GAPS) != 0 &&
         t.ub - t.lb != static_cast<std::ptrdiff_t>(t.size);
}

void compare_with_mpi(const Datatype& type, int count, Random& random) {
  const hca::LayoutPtr layout = layout_of(type.get(), count);
  ASSERT_NE(layout, nullptr);
  Buffer memory(type.get(), count);
  fill(memory.bytes(), random);

  const Bytes expected = packed_by_mpi(memory.base(), count, type.get());
  ASSERT_EQ(layout->size(), expected.size());
  Bytes gathered(expected.size());
  layout->gather(memory.base(), 0, gathered);
  ASSERT_EQ(gathered, expected);

  if (expected.empty()) return;
  Buffer theirs(type.get(), count);
  Buffer ours(type.get(), count);
  int position = 0;
  MPI_Unpack(expected.data(), static_cast<int>(expected.size()), &position, theirs.base(), count,
             type.get(), MPI_COMM_SELF);
  layout->scatter(ours.base(), 0, expected);
  ASSERT_EQ(ours.bytes(), theirs.bytes());
}

TEST(Reader, PacksAsOpenMpiDoesOnRandomTypes) {
  constexpr std::uint64_t rounds = 6000;
  for (std::uint64_t round = 0; round < rounds; ++round) {
    Random random(round);
    const Datatype type = test::random_datatype(random, 4);
    const int count = static_cast<int>(random.in(0, 5));
    SCOPED_TRACE(test::seed_note(round) + ": " + std::to_string(count) + " x " + type.text());
    if (is_mistaken_for_dense(type.get())) continue;
    compare_with_mpi(type, count, random);
    if (HasFatalFailure()) return;
  }
}

TEST(Reader, ReadsAbsoluteAddresses) {
  int first[6] = {1, 2, 3, 4, 5, 6};
  double second[3] = {7, 8, 9};
  const int blocks[] = {2, 3};
  MPI_Aint addresses[2];
  MPI_Get_address(&first[1], &addresses[0]);
  MPI_Get_address(second, &addresses[1]);
  const MPI_Datatype members[] = {MPI_INT, MPI_DOUBLE};
  MPI_Datatype made;
  MPI_Type_create_struct(2, blocks, addresses, members, &made);
  MPI_Type_commit(&made);
  const Datatype type(made);

  const hca::LayoutPtr layout = read_description(made->super);
  const Bytes expected = packed_by_mpi(static_cast<std::byte*>(MPI_BOTTOM), 1, made);
  Bytes gathered(layout->size());
  layout->gather(nullptr, 0, gathered);
  EXPECT_EQ(gathered, expected);
}

TEST(Reader, ColumnIsOneStridedLayoutWhateverItsLength) {
  for (const int rows : {3, 1000, 1000000}) {
    MPI_Datatype made;
    MPI_Type_vector(rows, 1, 1026, MPI_DOUBLE, &made);
    MPI_Type_commit(&made);
    const Datatype type(made);
    const hca::LayoutPtr layout = read_description(made->super);
    EXPECT_EQ(layout->kind(), hca::LayoutKind::strided);
    EXPECT_EQ(layout->size(), 8u * static_cast<unsigned>(rows));
    EXPECT_LT(layout->footprint(), 512u);
  }
}

TEST(Reader, PredefinedPairTypesHaveLayouts) {
  const hca::LayoutPtr pair = read_description(MPI_DOUBLE_INT->super);
  EXPECT_EQ(pair->size(), 12u);
  EXPECT_TRUE(pair->is_contiguous());
  const hca::LayoutPtr gap = read_description(MPI_SHORT_INT->super);
  EXPECT_EQ(gap->size(), 6u);
  EXPECT_FALSE(gap->is_contiguous());
}

TEST(Reader, UncommittedTypeIsReadFromItsOriginalDescription) {
  MPI_Datatype made;
  MPI_Type_vector(4, 1, 3, MPI_INT, &made);
  const Datatype type(made);
  const hca::LayoutPtr layout = read_description(made->super);
  EXPECT_EQ(layout->size(), 16u);
  EXPECT_EQ(layout->upper(), 9 * 4 + 4);
}

TEST(Reader, EmptyTypeIsAnEmptyLayout) {
  MPI_Datatype made;
  MPI_Type_contiguous(0, MPI_INT, &made);
  MPI_Type_commit(&made);
  const Datatype type(made);
  EXPECT_EQ(read_description(made->super)->size(), 0u);
}

}  // namespace
}  // namespace weft::ompi
