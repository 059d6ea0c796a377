// Waiting where there are more processes than cores.
#include "hca/emu/turns.hpp"

#include <gtest/gtest.h>
#include <sched.h>

#include "tests/hca/two_contexts.hpp"

namespace weft::test {
namespace {

using hca::emu::move_off;
using hca::emu::Turns;

/// A time at which nobody tries whether waiting has become worth it; and one at which all do.
constexpr std::uint64_t between_trials = Turns::trial_every - 1;
constexpr std::uint64_t in_trial = 5 * Turns::trial_every;

cpu_set_t allowed_cores() {
  cpu_set_t cores;
  CPU_ZERO(&cores);
  EXPECT_EQ(::sched_getaffinity(0, sizeof cores, &cores), 0);
  return cores;
}

class TurnsTest : public TwoContexts {
 protected:
  /// Waits until nothing but trials would make it wait again.
  void wait_in_vain_until_not_worth_it() {
    for (unsigned i = 0; i < Turns::most_worth / Turns::price; ++i) {
      EXPECT_TRUE(turns.is_worth_it(between_trials)) << "after " << i;
      EXPECT_EQ(turns.wait(*a, [] { return 0U; }), 0U);
    }
  }
  /// Whether a message over `link` comes to `a`.
  bool message_to_a(hca::emu::Link& link) {
    came = false;
    a->set_am_handler(
        [](void* flag, std::uint8_t, std::byte*, std::size_t) { *static_cast<bool*>(flag) = true; },
        &came);
    const std::uint64_t word = 1;
    return link.am_short(1, 0, &word, sizeof word) && pump([&] { return came; });
  }
  Turns turns;
  bool came = false;
};

TEST_F(TurnsTest, ReturnsWhatALookFinds) {
  unsigned looks = 0;
  EXPECT_EQ(turns.wait(*a, [&] { return ++looks == 3 ? 7U : 0U; }), 7U);
  EXPECT_EQ(looks, 3U);
}

TEST_F(TurnsTest, LooksOnceMoreAfterItsTurn) {
  unsigned looks = 0;
  EXPECT_EQ(turns.wait(*a, [&] { return ++looks, 0U; }), 0U);
  EXPECT_GT(looks, 8U);
}

TEST_F(TurnsTest, GivesUpWaitingInVainUntilTheNextTrial) {
  wait_in_vain_until_not_worth_it();
  EXPECT_FALSE(turns.is_worth_it(between_trials));
  EXPECT_TRUE(turns.is_worth_it(in_trial));
  EXPECT_TRUE(turns.is_worth_it(in_trial + Turns::trial - 1));
  EXPECT_FALSE(turns.is_worth_it(in_trial + Turns::trial));
}

TEST_F(TurnsTest, WaitsAreWorthItAgainOnceOneWasNotInVain) {
  wait_in_vain_until_not_worth_it();
  // Only a trial waits for so many looks, and the next one begins by itself.
  unsigned found = 0;
  while (found == 0) {
    unsigned looks = 0;
    found = turns.wait(*a, [&] { return ++looks == 20 ? 1U : 0U; });
  }
  EXPECT_TRUE(turns.is_worth_it(between_trials));
}

TEST_F(TurnsTest, WhomSomethingCameFromLastIsWaitedFor) {
  EXPECT_FALSE(a->wait_on(3)) << "nobody has sent anything";
  ASSERT_TRUE(message_to_a(*to_a));
  EXPECT_FALSE(a->wait_on(3)) << "it has never waited";
  EXPECT_FALSE(b->wait_on(5)) << "nobody has sent it anything";
  const auto peer = a->wait_on(3);
  ASSERT_TRUE(peer);
  EXPECT_EQ(peer->core, 5U);
  EXPECT_EQ(peer->pid, b->address().pid);
  b->wait_nowhere();
  EXPECT_FALSE(a->wait_on(3)) << "it waits no more";
}

TEST_F(TurnsTest, NobodyIsItsOwnPeer) {
  const auto to_self = a->connect(a->address());
  ASSERT_TRUE(message_to_a(*to_self));
  EXPECT_FALSE(a->wait_on(3));
  EXPECT_FALSE(a->wait_on(3));
}

TEST_F(TurnsTest, MovingLeavesTheAllowedCoresAsTheyAre) {
  const cpu_set_t before = allowed_cores();
  for (int i = 0; i < 10; ++i) {
    const int core = ::sched_getcpu();
    EXPECT_EQ(move_off(static_cast<unsigned>(core)), CPU_COUNT(&before) > 1);
    const cpu_set_t after = allowed_cores();
    EXPECT_TRUE(CPU_EQUAL(&before, &after));
  }
}

TEST_F(TurnsTest, OneBoundToACoreStaysThere) {
  const cpu_set_t before = allowed_cores();
  const int core = ::sched_getcpu();
  cpu_set_t one;
  CPU_ZERO(&one);
  CPU_SET(core, &one);
  ASSERT_EQ(::sched_setaffinity(0, sizeof one, &one), 0);
  EXPECT_FALSE(move_off(static_cast<unsigned>(core)));
  EXPECT_EQ(::sched_getcpu(), core);
  const cpu_set_t after = allowed_cores();
  EXPECT_TRUE(CPU_EQUAL(&one, &after));
  ASSERT_EQ(::sched_setaffinity(0, sizeof before, &before), 0);
}

}  // namespace
}  // namespace weft::test
