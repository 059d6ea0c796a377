// What is made of hwloc's topologies, given ones and this machine's.
#include "hca/emu/topology.hpp"

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdint>
#include <string>
#include <vector>

#include "tests/hca/two_contexts.hpp"

namespace weft::test {
namespace {

using hca::WcStatus;
using hca::emu::Context;
using hca::emu::Topology;

class Cores {
 public:
  Cores(unsigned first, unsigned last) : set_(hwloc_bitmap_alloc()) {
    hwloc_bitmap_set_range(set_, first, static_cast<int>(last));
  }
  ~Cores() { hwloc_bitmap_free(set_); }
  Cores(const Cores&) = delete;
  Cores& operator=(const Cores&) = delete;
  operator hwloc_bitmap_t() const { return set_; }

 private:
  hwloc_bitmap_t set_;
};

std::uint32_t piece_for_cache(const std::string& size) {
  const std::string description = "numa:1 l2:2(size=" + size + ") core:1 pu:1";
  return Topology(description.c_str()).largest_piece(Cores(0, 0));
}

TEST(Topology, PiecesAreASixteenthOfTheCache) {
  EXPECT_EQ(piece_for_cache("524288"), 32u * 1024);
  EXPECT_EQ(piece_for_cache("1048576"), 64u * 1024);
}

TEST(Topology, PiecesHaveLimits) {
  EXPECT_EQ(piece_for_cache("131072"), 16u * 1024);
  EXPECT_EQ(piece_for_cache("4194304"), 64u * 1024);
}

TEST(Topology, WithoutACachePiecesAreLarge) {
  EXPECT_EQ(Topology("numa:1 core:2 pu:1").largest_piece(Cores(0, 0)), 64u * 1024);
  const Topology of_nothing("no such description");
  EXPECT_EQ(of_nothing.largest_piece(Cores(0, 0)), 64u * 1024);
  EXPECT_EQ(of_nothing.node_near(Cores(0, 0)), -1);
  EXPECT_FALSE(of_nothing.own_cores(Cores(0, 0)));
}

TEST(Topology, CoresThatAreNotThereHaveNoCache) {
  EXPECT_EQ(Topology("numa:1 l2:2(size=131072) pu:1").largest_piece(Cores(7, 9)), 64u * 1024);
}

TEST(Topology, TheNodeOfCoresOfOneNode) {
  const Topology two("numa:2 l2:2 core:2 pu:1");
  EXPECT_EQ(two.node_near(Cores(0, 3)), 0);
  EXPECT_EQ(two.node_near(Cores(5, 5)), 1);
  EXPECT_EQ(two.node_near(Cores(3, 4)), -1);
  EXPECT_EQ(Topology("numa:1 l2:2 core:2 pu:1").node_near(Cores(0, 0)), -1);
}

TEST(Topology, MadeUpNodesBindNothing) {
  const Topology two("numa:2 core:2 pu:1");
  std::vector<std::byte> memory(1 << 16);
  EXPECT_FALSE(two.place(memory.data(), memory.size(), -1));
  two.place(memory.data(), memory.size(), 1);  // whatever it says, the memory stays usable
  memory.assign(memory.size(), std::byte{1});
}

TEST(Topology, ThisMachine) {
  const std::uint32_t piece = hca::emu::largest_piece();
  EXPECT_GE(piece, 16u * 1024);
  EXPECT_LE(piece, 64u * 1024);
  EXPECT_TRUE(Topology().own_cores(Cores(0, 0)));
  const pid_t child = ::fork();
  if (child == 0) ::_exit(hca::emu::largest_piece() == piece ? 0 : 1);
  int status = -1;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
}

TEST(Topology, TheRingsArePlacedBeforeTheyAreUsed) {
  static std::uintptr_t begin;
  static std::size_t bytes;
  auto wanted = options();
  wanted.place_rings = [](void* memory, std::size_t length) {
    begin = reinterpret_cast<std::uintptr_t>(memory);
    bytes = length;
    hca::emu::place_near(memory, length);
  };
  const auto context = Context::open(wanted);
  EXPECT_EQ(begin % 4096, 0u);
  EXPECT_EQ(bytes % 4096, 0u);
  EXPECT_GE(bytes, hca::emu::port_count * sizeof(hca::emu::Port));
  EXPECT_LE(allocated(*context), 8192u);  // placing them has given them no memory
}

/// Whether pieces as large as a large slot went over the wire: only they touch those slots.
class PieceSize : public TwoContexts {
 protected:
  void SetUp() override {}
  std::size_t memory_after_a_read(std::uint32_t largest_piece) {
    auto wanted = options();
    wanted.largest_piece = largest_piece;
    a = Context::open(wanted);
    b = Context::open(wanted);
    to_b = a->connect(b->address());
    to_a = b->connect(a->address());
    constexpr std::size_t length = 4 << 20;
    std::vector<std::byte> theirs(length, std::byte{3});
    std::vector<std::byte> mine(length);
    const std::uint32_t key = share(*b, theirs);
    Outcome read;
    EXPECT_EQ(run(read,
                  [&] {
                    return to_b->read(&read, local(mine.data()),
                                      {reinterpret_cast<std::uint64_t>(theirs.data()), key},
                                      length);
                  }),
              WcStatus::success);
    EXPECT_EQ(mine, theirs);
    return allocated(*b);
  }
};

TEST_F(PieceSize, IsWhatTheContextWasGiven) {
  constexpr std::size_t four_large_slots = 256 * 1024;
  EXPECT_GE(memory_after_a_read(64 * 1024), four_large_slots);
  EXPECT_LT(memory_after_a_read(16 * 1024), four_large_slots);
  // Beyond what a slot holds, or too little to be worth a signal: the nearest that is possible.
  EXPECT_GE(memory_after_a_read(1u << 30), four_large_slots);
  EXPECT_LT(memory_after_a_read(0), four_large_slots);
}

}  // namespace
}  // namespace weft::test
