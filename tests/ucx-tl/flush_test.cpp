#include <gtest/gtest.h>

#include "ucx-tl/flush_tracker.hpp"
#include "ucx-tl/pending_queue.hpp"

namespace weft::ucx {
namespace {

TEST(FlushTracker, counts) {
  FlushTracker tracker;
  const auto a = tracker.start();
  const auto b = tracker.start();
  EXPECT_EQ(tracker.outstanding(), 2u);
  EXPECT_FALSE(tracker.finish(b));
  EXPECT_FALSE(tracker.finish(a));
  EXPECT_EQ(tracker.outstanding(), 0u);
  EXPECT_EQ(tracker.ready(), nullptr);
}

TEST(FlushTracker, a_flush_waits_for_what_came_before_it_only) {
  FlushTracker tracker;
  uct_completion_t flush{};
  const auto before = tracker.start();
  tracker.add(&flush);
  const auto after = tracker.start();
  EXPECT_FALSE(tracker.finish(after));
  EXPECT_EQ(tracker.ready(), nullptr);
  EXPECT_TRUE(tracker.finish(before));
  EXPECT_EQ(tracker.ready(), &flush);
  EXPECT_EQ(tracker.ready(), nullptr);
}

TEST(FlushTracker, flushes_end_in_order) {
  FlushTracker tracker;
  uct_completion_t first{};
  uct_completion_t second{};
  uct_completion_t third{};
  const auto a = tracker.start();
  tracker.add(&first);
  const auto b = tracker.start();
  tracker.add(&second);
  tracker.add(&third);  // nothing new since the second
  EXPECT_TRUE(tracker.finish(b));
  EXPECT_EQ(tracker.ready(), nullptr);
  EXPECT_TRUE(tracker.finish(a));
  EXPECT_EQ(tracker.ready(), &first);
  EXPECT_EQ(tracker.ready(), &second);
  EXPECT_EQ(tracker.ready(), &third);
  EXPECT_EQ(tracker.ready(), nullptr);
}

TEST(FlushTracker, an_operation_of_a_much_later_span) {
  FlushTracker tracker;
  uct_completion_t flush{};
  for (int i = 0; i < 1000; ++i) {
    const auto op = tracker.start();
    tracker.add(&flush);
    const auto next = tracker.start();
    EXPECT_TRUE(tracker.finish(op));
    EXPECT_EQ(tracker.ready(), &flush);
    EXPECT_FALSE(tracker.finish(next));
  }
  EXPECT_EQ(tracker.outstanding(), 0u);
}

TEST(PendingQueue, keeps_order) {
  PendingQueue queue;
  uct_pending_req_t requests[3];
  EXPECT_TRUE(queue.empty());
  for (auto& request : requests) queue.push_back(&request);
  EXPECT_EQ(queue.pop_front(), &requests[0]);
  queue.push_front(&requests[0]);
  for (auto& request : requests) EXPECT_EQ(queue.pop_front(), &request);
  EXPECT_TRUE(queue.empty());
  queue.push_front(&requests[1]);
  queue.push_back(&requests[2]);
  EXPECT_EQ(queue.pop_front(), &requests[1]);
  EXPECT_EQ(queue.pop_front(), &requests[2]);
}

}  // namespace
}  // namespace weft::ucx
