// The board of the collectives, by forked processes: data, order, flow control, non-blocking
// barriers.
#include "dm/board.hpp"

#include <cstring>

#include "tests/dm/processes.hpp"
#include "tests/seed.hpp"

namespace weft::test {
namespace {

using dm::Board;

/// Waits without end: a hang is ended by the child's alarm.
class Patience {
 public:
  explicit Patience(unsigned processes) : processes_(processes) {}
  template <class Condition>
  void operator()(Condition condition) const noexcept {
    for (dm::BackOff back_off(processes_); !condition();) back_off.wait();
  }

 private:
  unsigned processes_;
};

class DmBoard : public DmProcesses {
 protected:
  template <class Body>
  void run(unsigned members, std::size_t bulk, Body body) {
    const auto memory = Allocation::create(device, Board::bytes(members, bulk), Place::device,
                                           hca::emu::DmPurpose::collective);
    const dm::Handle handle = memory->handle();
    for (unsigned self = 0; self < members; ++self) {
      start([&, self] {
        const auto theirs = Allocation::attach(handle);
        Board board(theirs->memory().data(), members, self, bulk);
        return body(board, self);
      });
    }
    expect_all_right();
  }
};

std::byte content(unsigned member, std::uint64_t k, std::size_t i) {
  return static_cast<std::byte>(member * 37 + k * 11 + i);
}

TEST_F(DmBoard, SizesFitWhatTheyAreAskedFor) {
  for (unsigned members = 1; members <= 64; ++members) {
    for (const std::size_t most : {512u, 4096u, 16384u, 65536u}) {
      const std::size_t bulk = Board::bulk_within(members, most);
      if (bulk != 0) {
        EXPECT_LE(Board::bytes(members, bulk), most);
      }
      if (bulk == 0) {
        EXPECT_GT(Board::bytes(members, Board::inlined), most);
      }
    }
  }
}

TEST_F(DmBoard, RandomMixesOfOperationsCarryTheRightData) {
  constexpr std::size_t bulk = 320;
  for (const unsigned members : {2u, 3u, 8u, 9u, 11u}) {
    SCOPED_TRACE(seed_note(members));
    run(members, bulk, [members](Board& board, unsigned self) {
      Random random(members);  // the same for all members
      const Patience wait(members);
      std::uint64_t barriers = 0;
      for (int round = 0; round < 1500; ++round) {
        const auto kind = random.in(0, 4);
        const auto length = static_cast<std::size_t>(
            random.chance(0.5) ? random.in(1, Board::inlined) : random.in(1, bulk));
        const auto root = static_cast<unsigned>(random.in(0, members - 1));
        const auto fill = [&](std::byte* to) {
          for (std::size_t i = 0; i < length; ++i) to[i] = content(self, round, i);
        };
        const auto right = [&](unsigned member, const std::byte* data) {
          for (std::size_t i = 0; i < length; ++i) {
            if (data[i] != content(member, round, i)) return false;
          }
          return true;
        };
        if (kind == 0) {
          board.barrier(wait);
        } else if (kind == 1) {  // root to all
          const auto k = self == root ? board.arrive_with(length, wait, fill) : board.arrive(wait);
          if (self != root && !right(root, board.payload(root, k, length, wait))) return 2;
        } else if (kind == 2) {  // all to root
          const auto k = self == root ? board.arrive(wait) : board.arrive_with(length, wait, fill);
          for (unsigned m = 0; self == root && m < members; ++m) {
            if (m != root && !right(m, board.payload(m, k, length, wait))) return 3;
          }
        } else if (kind == 3) {  // all to all
          const auto k = board.arrive_with(length, wait, fill);
          for (unsigned m = 0; m < members; ++m) {
            if (!right(m, board.payload(m, k, length, wait))) return 4;
          }
        } else {
          barriers = board.start_barrier();
          if (random.chance(0.5)) {
            unsigned next = 0;
            wait([&] { return board.barrier_done(barriers, next); });
          }
        }
      }
      return 0;
    });
  }
}

TEST_F(DmBoard, NobodyLeavesABarrierBeforeAllCame) {
  for (const unsigned members : {2u, 8u, 10u}) {
    const auto steps = allocate(members);
    const dm::Handle handle = steps->handle();
    run(members, Board::inlined, [&](Board& board, unsigned self) {
      const auto theirs = Allocation::attach(handle);
      const Patience wait(members);
      for (std::uint64_t round = 1; round <= 300; ++round) {
        counter(*theirs, self).store(round);
        board.barrier(wait);
        for (unsigned m = 0; m < members; ++m) {
          if (counter(*theirs, m).load() < round) return 1;
        }
        board.barrier(wait);
      }
      return 0;
    });
  }
}

TEST_F(DmBoard, ANonBlockingBarrierWaitsForNobodyAndForAll) {
  const auto memory = Allocation::create(device, Board::bytes(2, Board::inlined));
  Board first(memory->memory().data(), 2, 0, Board::inlined);
  Board second(memory->memory().data(), 2, 1, Board::inlined);
  const Patience wait(1);
  // Its payload is not read yet.
  first.arrive_with(8, wait, [](std::byte* to) { std::memset(to, 1, 8); });
  std::uint64_t begun = 0;
  for (int i = 0; i < 20; ++i) begun = first.start_barrier();
  unsigned next = 0;
  EXPECT_FALSE(first.barrier_done(begun, next));
  for (int i = 0; i < 19; ++i) second.start_barrier();
  EXPECT_FALSE(first.barrier_done(begun, next));
  const auto last = second.start_barrier();
  EXPECT_TRUE(first.barrier_done(begun, next));
  next = 0;
  EXPECT_TRUE(second.barrier_done(last, next));
  EXPECT_FALSE(first.leave());
  EXPECT_TRUE(second.leave());
}

}  // namespace
}  // namespace weft::test
