// Counters shared by processes: sums, tickets, locks, barriers, and processes that are killed.
#include <atomic>
#include <cstring>
#include <set>

#include "hca/status.hpp"
#include "tests/dm/processes.hpp"

namespace weft::test {
namespace {

using namespace std::chrono_literals;

class DmCounter : public DmProcesses {};

TEST_F(DmCounter, OperationsReturnTheValueBefore) {
  const auto memory = allocate(1);
  Counter c = counter(*memory, 0);
  EXPECT_EQ(c.load(), 0u);
  c.add(5);
  EXPECT_EQ(c.fetch_add(~0ull), 5u);
  EXPECT_EQ(c.swap(7), 4u);
  EXPECT_EQ(c.compare_swap(1, 2), 7u);
  EXPECT_EQ(c.compare_swap(7, 2), 7u);
  EXPECT_EQ(c.load(), 2u);
}

TEST_F(DmCounter, SumsAreExactWithTwoToEightProcesses) {
  constexpr std::uint64_t rounds = 20000;
  for (const unsigned n : {2u, 3u, 4u, 8u}) {
    const auto memory = allocate(1);
    const dm::Handle handle = memory->handle();
    for (unsigned p = 0; p < n; ++p) {
      start([&, p] {
        const auto theirs = Allocation::attach(handle);
        for (std::uint64_t i = 0; i < rounds; ++i) counter(*theirs, 0).add(p + (1ull << 40));
        return 0;
      });
    }
    expect_all_right();
    EXPECT_EQ(counter(*memory, 0).load(), rounds * (n * (n - 1) / 2 + n * (1ull << 40)));
  }
}

TEST_F(DmCounter, TicketsAreUnique) {
  constexpr unsigned n = 4;
  constexpr unsigned each = 2000;
  const auto memory = allocate(1 + n * each * 8 / dm_unit + 1);
  const dm::Handle handle = memory->handle();
  for (unsigned p = 0; p < n; ++p) {
    start([&, p] {
      const auto theirs = Allocation::attach(handle);
      auto* out = reinterpret_cast<std::uint64_t*>(theirs->memory().data() + dm_unit) + p * each;
      for (unsigned i = 0; i < each; ++i) out[i] = counter(*theirs, 0).fetch_add(1);
      return 0;
    });
  }
  expect_all_right();
  const auto* tickets = reinterpret_cast<std::uint64_t*>(memory->memory().data() + dm_unit);
  const std::set<std::uint64_t> unique(tickets, tickets + n * each);
  EXPECT_EQ(unique.size(), n * each);
  EXPECT_EQ(*unique.rbegin(), n * each - 1);
}

TEST_F(DmCounter, TicketLockGuardsPlainMemory) {
  constexpr unsigned n = 8;
  constexpr unsigned rounds = 300;
  const auto memory = allocate(3);  // next ticket, now serving, guarded
  const dm::Handle handle = memory->handle();
  for (unsigned p = 0; p < n; ++p) {
    start([&] {
      const auto theirs = Allocation::attach(handle);
      Counter next = counter(*theirs, 0);
      Counter serving = counter(*theirs, 1);
      auto* guarded = reinterpret_cast<volatile std::uint64_t*>(theirs->memory().data() + 128);
      for (unsigned i = 0; i < rounds; ++i) {
        const std::uint64_t ticket = next.fetch_add(1);
        if (!serving.wait([=](std::uint64_t now) { return now == ticket; }, patience, nullptr, n))
          return 1;
        guarded[0] = guarded[0] + 1;
        guarded[1] = guarded[1] + 2;
        serving.add(1);
      }
      return 0;
    });
  }
  expect_all_right();
  const auto* guarded = reinterpret_cast<std::uint64_t*>(memory->memory().data() + 128);
  EXPECT_EQ(guarded[0], n * rounds);
  EXPECT_EQ(guarded[1], 2 * n * rounds);
}

TEST_F(DmCounter, CountingSemaphoreAdmitsNoMoreThanItSays) {
  constexpr unsigned n = 6;
  constexpr std::uint64_t places = 2;
  const auto memory = allocate(3);  // free places, inside, most seen inside
  const dm::Handle handle = memory->handle();
  counter(*memory, 0).store(places);
  for (unsigned p = 0; p < n; ++p) {
    start([&] {
      const auto theirs = Allocation::attach(handle);
      Counter free = counter(*theirs, 0);
      Counter inside = counter(*theirs, 1);
      for (unsigned i = 0; i < 200; ++i) {
        std::uint64_t seen = 0;
        while (true) {
          if (!free.wait([](std::uint64_t now) { return now > 0; }, patience, &seen, n)) return 1;
          if (free.compare_swap(seen, seen - 1) == seen) break;
        }
        const std::uint64_t now = inside.fetch_add(1) + 1;
        if (now > places) return 2;
        inside.add(~0ull);
        free.add(1);
      }
      return 0;
    });
  }
  expect_all_right();
  EXPECT_EQ(counter(*memory, 0).load(), places);
}

TEST_F(DmCounter, SenseReversingBarrierKeepsStep) {
  constexpr unsigned n = 5;
  constexpr unsigned rounds = 400;
  const auto memory = allocate(2 + n);  // arrived, sense, each one's round
  const dm::Handle handle = memory->handle();
  for (unsigned p = 0; p < n; ++p) {
    start([&, p] {
      const auto theirs = Allocation::attach(handle);
      Counter arrived = counter(*theirs, 0);
      Counter sense = counter(*theirs, 1);
      std::uint64_t mine = 0;
      for (unsigned i = 1; i <= rounds; ++i) {
        counter(*theirs, 2 + p).store(i);
        mine ^= 1;
        if (arrived.fetch_add(1) == n - 1) {
          arrived.store(0);
          sense.store(mine);
        } else if (!sense.wait([=](std::uint64_t now) { return now == mine; }, patience, nullptr,
                               n)) {
          return 1;
        }
        for (unsigned q = 0; q < n; ++q) {
          const std::uint64_t theirs_at = counter(*theirs, 2 + q).load();
          if (theirs_at < i || theirs_at > i + 1) return 2;
        }
      }
      return 0;
    });
  }
  expect_all_right();
}

TEST_F(DmCounter, WaitingForALockOfAKilledHolderTimesOut) {
  const auto memory = allocate(2);
  const dm::Handle handle = memory->handle();
  const pid_t holder = start([&] {
    const auto theirs = Allocation::attach(handle);
    counter(*theirs, 0).store(1);
    ::pause();
    return 0;
  });
  ASSERT_TRUE(counter(*memory, 0).wait([](std::uint64_t now) { return now == 1; }, patience));
  ::kill(holder, SIGKILL);
  EXPECT_EQ(finish(holder), -1);
  EXPECT_FALSE(counter(*memory, 0).wait([](std::uint64_t now) { return now == 0; }, 50ms));
  EXPECT_EQ(counter(*memory, 0).load(), 1u);
}

TEST_F(DmCounter, AKilledWaiterHoldsNobodyUp) {
  const auto memory = allocate(2);
  const dm::Handle handle = memory->handle();
  const auto waiter = [&] {
    const auto theirs = Allocation::attach(handle);
    counter(*theirs, 1).add(1);
    return counter(*theirs, 0).wait([](std::uint64_t now) { return now == 9; }, patience) ? 0 : 1;
  };
  const pid_t victim = start(waiter);
  const pid_t survivor = start(waiter);
  ASSERT_TRUE(counter(*memory, 1).wait([](std::uint64_t now) { return now == 2; }, patience));
  ::usleep(20'000);  // they sleep, most likely; the outcome is the same if not
  ::kill(victim, SIGKILL);
  EXPECT_EQ(finish(victim), -1);
  counter(*memory, 0).store(9);
  EXPECT_EQ(finish(survivor), 0);
}

TEST_F(DmCounter, MemoryOfKilledProcessesComesBackWhileOthersWork) {
  const auto file = dm::open_device(device);
  const auto mine = allocate(1);
  for (int round = 0; round < 3; ++round) {
    std::vector<pid_t> victims;
    counter(*mine, 0).store(0);
    const dm::Handle handle = mine->handle();
    for (int i = 0; i < 3; ++i) {
      victims.push_back(start([&] {
        const auto board = Allocation::attach(handle);
        const auto theirs = allocate(1000);
        counter(*board, 0).add(1);
        for (;;) counter(*theirs, 0).add(1);
        return 0;
      }));
    }
    ASSERT_TRUE(counter(*mine, 0).wait([](std::uint64_t now) { return now == 3; }, patience));
    EXPECT_EQ(file->free_bytes(), file->memory().size() - 3001 * dm_unit);
    for (const pid_t victim : victims) {
      ::kill(victim, SIGKILL);
      EXPECT_EQ(finish(victim), -1);
    }
    EXPECT_EQ(hca::emu::DeviceFile::inspect(device)->dm_used, dm_unit);
    // There is room only once the dead ones' memory is taken back.
    EXPECT_NO_THROW(allocate(3500));
  }
}

TEST_F(DmCounter, AttachedMemoryOutlivesItsKilledOwner) {
  const auto board = allocate(3);
  const dm::Handle board_handle = board->handle();
  const pid_t owner = start([&] {
    const auto mine = Allocation::attach(board_handle);
    auto* theirs = allocate(2000).release();
    std::memcpy(mine->memory().data() + dm_unit, &theirs->handle(), sizeof(dm::Handle));
    counter(*mine, 0).store(1);
    ::pause();
    return 0;
  });
  ASSERT_TRUE(counter(*board, 0).wait([](std::uint64_t now) { return now == 1; }, patience));
  dm::Handle handle;
  std::memcpy(&handle, board->memory().data() + dm_unit, sizeof handle);
  auto attached = Allocation::attach(handle);
  counter(*attached, 0).store(42);
  ::kill(owner, SIGKILL);
  EXPECT_EQ(finish(owner), -1);
  // Not even an allocator in need takes it from under the one who uses it.
  EXPECT_EQ(finish(start([&] {
              try {
                allocate(3000);
              } catch (const hca::Error& error) {
                return error.code() == ENOMEM ? 7 : 8;
              }
              return 0;
            })),
            7);
  EXPECT_EQ(counter(*attached, 0).load(), 42u);
  attached.reset();
  EXPECT_EQ(finish(start([&] {
              allocate(3000);
              return 0;
            })),
            0);
  EXPECT_THROW(Allocation::attach(handle), hca::Error);
}

TEST_F(DmCounter, ConcurrentAllocatorsNeverShareAUnit) {
  constexpr unsigned n = 4;
  const auto clashes = allocate(1);
  const dm::Handle handle = clashes->handle();
  for (unsigned p = 0; p < n; ++p) {
    start([&, p] {
      const auto board = Allocation::attach(handle);
      std::vector<std::unique_ptr<Allocation>> held;
      for (unsigned i = 0; i < 600; ++i) {
        try {
          held.push_back(allocate(1 + (i * 7 + p) % 60));
        } catch (const hca::Error&) {
          held.erase(held.begin(), held.begin() + static_cast<long>(held.size() / 2));
          continue;
        }
        for (std::size_t unit = 0; unit < held.back()->memory().size() / dm_unit; ++unit) {
          if (counter(*held.back(), unit).fetch_add(p + 1) != 0) counter(*board, 0).add(1);
        }
        if (i % 3 == 0) held.erase(held.begin());
      }
      for (const auto& one : held) {
        if (counter(*one, 0).load() != p + 1) counter(*board, 0).add(1);
      }
      return 0;
    });
  }
  expect_all_right();
  EXPECT_EQ(counter(*clashes, 0).load(), 0u);
  EXPECT_EQ(dm::open_device(device)->free_bytes(),
            dm::open_device(device)->memory().size() - dm_unit);
}

}  // namespace
}  // namespace weft::test
