// What is concluded from how long peers' lines take.
#include "hca/peer_distance.hpp"

#include <gtest/gtest.h>

#include <vector>

namespace weft::hca {
namespace {

constexpr unsigned own_cache = 20;
constexpr unsigned other_cache = 300;

void note(PeerDistance& distance, unsigned ticks, int times) {
  for (int i = 0; i < times; ++i) distance.note(ticks);
}

TEST(PeerDistance, IsFarUntilMostLooksShowOtherwise) {
  PeerDistance distance;
  EXPECT_FALSE(distance.is_close());
  note(distance, own_cache, 4);
  EXPECT_FALSE(distance.is_close());
  note(distance, own_cache, 1);
  EXPECT_TRUE(distance.is_close());
}

TEST(PeerDistance, FollowsProcessesThatMoveHoweverLongTheyStayed) {
  PeerDistance distance;
  note(distance, own_cache, 1000);
  note(distance, other_cache, 3);
  EXPECT_TRUE(distance.is_close());
  note(distance, other_cache, 1);
  EXPECT_FALSE(distance.is_close());
  note(distance, other_cache, 1000);
  note(distance, own_cache, 5);
  EXPECT_TRUE(distance.is_close());
}

TEST(PeerDistance, OneLineThatTookLongChangesNothing) {
  PeerDistance distance;
  note(distance, own_cache, 8);
  note(distance, 1'000'000, 1);
  EXPECT_TRUE(distance.is_close());
}

TEST(PeerDistance, IsFarOnceNobodyLooks) {
  PeerDistance distance;
  note(distance, own_cache, 8);
  distance.stop_looking();
  const std::vector<std::byte> own(4096);
  for (int i = 0; i < 1000; ++i) distance.look_at(own);
  EXPECT_FALSE(distance.is_close());
}

TEST(PeerDistance, LooksLeaveMemoryAsItIs) {
  PeerDistance distance;
  const std::vector<std::byte> written(4096, std::byte{7});
  for (int i = 0; i < 100; ++i) distance.look_at(written);
  distance.look_at({});
  EXPECT_EQ(written, std::vector<std::byte>(4096, std::byte{7}));
}

}  // namespace
}  // namespace weft::hca
