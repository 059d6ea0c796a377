// What stays allocated for a datatype of N equal blocks after it was used: at most 4 bytes N + 4
// KiB at irregular offsets, the same for every N at regular ones; whatever call made the datatype,
// and with several counts.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <random>
#include <string>
#include <vector>

#include "datatype/cache.hpp"
#include "ompi-component/reader/reader.hpp"
#include "tests/counted_memory.hpp"
#include "tests/ompi-component/random_datatype.hpp"

namespace weft::ompi {
namespace {

using test::Datatype;

constexpr int doubles = 2;  // of a block

/// Where the blocks are, in blocks' lengths; `least` between two of them.
std::vector<int> irregular(int n, int least) {
  std::mt19937_64 random(static_cast<std::uint64_t>(n + least));
  std::vector<int> at;
  int next = 0;
  for (int i = 0; i < n; ++i) {
    next += least + static_cast<int>(random() % 6);
    at.push_back(next++);
  }
  return at;
}

std::vector<int> shuffled(std::vector<int> at) {
  std::shuffle(at.begin(), at.end(), std::mt19937_64(1));
  return at;
}

/// Stretches of `run` blocks, each with a stride of its own and some way from the one before.
std::vector<int> stretches(int n, int run) {
  std::mt19937_64 random(static_cast<std::uint64_t>(run));
  std::vector<int> at;
  int next = 0;
  int stride = 2;
  for (int i = 0; i < n; ++i) {
    at.push_back(next);
    if (i % run == 0) {
      next += static_cast<int>(random() % 50);
      stride = 2 + static_cast<int>(random() % 8);
    }
    next += stride;
  }
  return at;
}

Datatype committed(MPI_Datatype type) {
  MPI_Type_commit(&type);
  return Datatype(type);
}

enum class Call { indexed_block, hindexed_block, indexed, hindexed, structure };

/// A block of two doubles at each place.
Datatype blocks_at(Call call, const std::vector<int>& at) {
  const int n = static_cast<int>(at.size());
  const std::vector<int> lengths(at.size(), doubles);
  std::vector<int> places;
  std::vector<MPI_Aint> bytes;
  for (const int place : at) {
    places.push_back(place * doubles);
    bytes.push_back(MPI_Aint{place} * doubles * 8);
  }
  MPI_Datatype type = MPI_DATATYPE_NULL;
  switch (call) {
    case Call::indexed_block:
      MPI_Type_create_indexed_block(n, doubles, places.data(), MPI_DOUBLE, &type);
      break;
    case Call::hindexed_block:
      MPI_Type_create_hindexed_block(n, doubles, bytes.data(), MPI_DOUBLE, &type);
      break;
    case Call::indexed:
      MPI_Type_indexed(n, lengths.data(), places.data(), MPI_DOUBLE, &type);
      break;
    case Call::hindexed:
      MPI_Type_create_hindexed(n, lengths.data(), bytes.data(), MPI_DOUBLE, &type);
      break;
    case Call::structure: {
      const std::vector<MPI_Datatype> members(at.size(), MPI_DOUBLE);
      MPI_Type_create_struct(n, lengths.data(), bytes.data(), members.data(), &type);
      break;
    }
  }
  return committed(type);
}

/// As MPI calls use it; what the cache keeps for it is what stays allocated.
std::size_t kept_for(const Datatype& type, std::initializer_list<std::uint64_t> counts) {
  MPI_Aint lower = 0, extent = 0;
  MPI_Type_get_extent(type.get(), &lower, &extent);
  datatype::LayoutCache cache;
  const std::size_t before = test::allocated();
  for (const std::uint64_t count : counts) {
    const hca::LayoutPtr layout =
        cache.get(reinterpret_cast<std::uintptr_t>(type.get()), count, extent,
                  [&] { return read_description(type.get()->super); });
    int size = 0;
    MPI_Type_size(type.get(), &size);
    EXPECT_EQ(layout->size(), static_cast<std::uint64_t>(size) * count);
  }
  return test::allocated() - before;
}

constexpr std::size_t most_for(int n) {
  return 4 * static_cast<std::size_t>(n) + 4096;
}

constexpr std::array numbers{16, 255, 257, 1024, 16384, 131072};
constexpr std::array calls{Call::indexed_block, Call::hindexed_block, Call::indexed, Call::hindexed,
                           Call::structure};

std::string note(int n, Call call) {
  return std::to_string(n) + " blocks, call " + std::to_string(static_cast<int>(call));
}

TEST(LayoutMemory, OfIrregularBlocks) {
  for (const int n : numbers) {
    for (const Call call : calls) {
      SCOPED_TRACE(note(n, call));
      EXPECT_LE(kept_for(blocks_at(call, irregular(n, 1)), {1}), most_for(n));
      EXPECT_LE(kept_for(blocks_at(call, shuffled(irregular(n, 1))), {1}), most_for(n));
    }
  }
}

TEST(LayoutMemory, OfIrregularBlocksSomeOfWhichTouch) {
  for (const int n : numbers) {
    for (const Call call : calls) {
      SCOPED_TRACE(note(n, call));
      EXPECT_LE(kept_for(blocks_at(call, irregular(n, 0)), {1}), most_for(n));
    }
  }
}

TEST(LayoutMemory, OfShortRegularStretches) {
  for (const int n : numbers) {
    for (const int run : {3, 5, 17, 40, 100, 200}) {
      SCOPED_TRACE(std::to_string(n) + " blocks in runs of " + std::to_string(run));
      EXPECT_LE(kept_for(blocks_at(Call::hindexed_block, stretches(n, run)), {1}), most_for(n));
    }
  }
}

// Up to some hundred blocks each count has a description of its own; beyond, all share one.
TEST(LayoutMemory, OfSeveralCounts) {
  for (const int n : numbers) {
    for (const int least : {0, 1}) {
      SCOPED_TRACE(std::to_string(n) + " blocks");
      const Datatype type = blocks_at(Call::hindexed_block, irregular(n, least));
      EXPECT_LE(kept_for(type, {2}), most_for(n >= 1024 ? n : 2 * n));
      if (n >= 1024) {
        EXPECT_LE(kept_for(type, {1, 2, 3, 5, 100}), most_for(n));
      }
    }
  }
}

TEST(LayoutMemory, OfNestedTypes) {
  for (const int n : {16, 255, 1024, 16384, 131072}) {
    SCOPED_TRACE(std::to_string(n) + " blocks");
    const auto expect_little = [n](MPI_Datatype made) {
      const Datatype type = committed(made);
      EXPECT_LE(kept_for(type, {1}), most_for(n));
      if (n >= 1024) {
        EXPECT_LE(kept_for(type, {1, 2, 7}), most_for(n));
      }
    };
    const Datatype inner = blocks_at(Call::indexed_block, irregular(n, 1));
    MPI_Datatype made = MPI_DATATYPE_NULL;
    MPI_Type_contiguous(3, inner.get(), &made);
    expect_little(made);
    MPI_Type_create_resized(inner.get(), -16, MPI_Aint{n} * 400, &made);
    expect_little(made);
    MPI_Type_create_hvector(4, 1, MPI_Aint{n} * 1000, inner.get(), &made);
    expect_little(made);
    MPI_Type_dup(inner.get(), &made);
    expect_little(made);
  }
}

TEST(LayoutMemory, OfAStridedTypeIsTheSameForEveryLength) {
  constexpr double rounding = 64;  // of the C library's allocations
  std::size_t shortest = 0;
  for (const int n : {1024, 16384, 1048576}) {
    MPI_Datatype made = MPI_DATATYPE_NULL;
    MPI_Type_vector(n, 1, 3, MPI_DOUBLE, &made);
    const std::size_t kept = kept_for(committed(made), {1, 2, 7});
    if (shortest == 0) shortest = kept;
    EXPECT_NEAR(static_cast<double>(kept), static_cast<double>(shortest), rounding) << n;
    EXPECT_LE(kept, 4096u);
    // Written as a list of places.
    std::vector<int> at(static_cast<std::size_t>(n));
    for (int i = 0; i < n; ++i) at[static_cast<std::size_t>(i)] = 3 * i;
    const std::size_t of_list = kept_for(blocks_at(Call::indexed_block, at), {1, 2, 7});
    EXPECT_NEAR(static_cast<double>(of_list), static_cast<double>(shortest), rounding) << n;
  }
}

TEST(LayoutMemory, IsLittleMoreWhileItIsCompiled) {
  constexpr int n = 1048576;
  const Datatype type = blocks_at(Call::hindexed_block, irregular(n, 1));
  test::start_peak();
  const std::size_t before = test::allocated();
  EXPECT_LE(kept_for(type, {1, 2, 3}), most_for(n));
  EXPECT_LE(test::peak() - before, std::size_t{n} * 160);
}

}  // namespace
}  // namespace weft::ompi
