// Transfers that the helper threads carry on alone: once one is posted, neither side calls
// anything.
#include <gtest/gtest.h>
#include <unistd.h>

#include <array>
#include <chrono>
#include <mutex>
#include <vector>

#include "tests/hca/two_contexts.hpp"

namespace weft::test {
namespace {

using hca::WcStatus;
using hca::emu::Context;
using hca::emu::RemoteMemory;

/// More than all the slots hold, so that both helpers have to take turns.
constexpr std::size_t bytes = 8 << 20;

class EagerHelper : public TwoContexts {
 protected:
  void SetUp() override {
    auto eager = options("eager");
    eager.eager_helper = true;
    a = Context::open(eager);
    b = Context::open(eager);
    to_b = a->connect(b->address());
    to_a = b->connect(a->address());
    for (std::size_t i = 0; i < bytes; ++i) theirs[i] = static_cast<std::byte>(i * 131 >> 3);
    key = share(*b, theirs);
  }
  /// Waits, without a call of progress, until both sides have nothing under way; false when they
  /// never come that far.
  bool carried_on(Context& context, const Outcome& operation) const {
    const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(60);
    while (std::chrono::steady_clock::now() < end) {
      if (context.engine().has_completed()) {
        // Both sides' memory passes from the helpers to this thread.
        { const std::scoped_lock other(b->engine().lock()); }
        { const std::scoped_lock other(a->engine().lock()); }
        const std::scoped_lock guard(context.engine().lock());
        return operation.moved == operation.length;
      }
      ::usleep(200);
    }
    return false;
  }
  [[nodiscard]] RemoteMemory remote() const {
    return {reinterpret_cast<std::uint64_t>(theirs.data()), key};
  }

  std::vector<std::byte> mine = std::vector<std::byte>(bytes);
  std::vector<std::byte> theirs = std::vector<std::byte>(bytes);
  std::uint32_t key = 0;
};

TEST_F(EagerHelper, AReadGoesOnWhileNeitherSideAttends) {
  Outcome read;
  ASSERT_TRUE(to_b->read(&read, local(mine.data()), remote(), bytes));
  ASSERT_TRUE(carried_on(*a, read));
  EXPECT_EQ(mine, theirs);
  EXPECT_FALSE(read.finished);  // it is completed where progress is called
  ASSERT_TRUE(pump([&] { return read.finished; }));
  EXPECT_EQ(read.how, WcStatus::success);
}

TEST_F(EagerHelper, AWriteGoesOnWhileNeitherSideAttends) {
  for (std::size_t i = 0; i < bytes; ++i) mine[i] = static_cast<std::byte>(i * 17 >> 2);
  Outcome write;
  ASSERT_TRUE(to_b->write(&write, local(mine.data()), remote(), bytes));
  ASSERT_TRUE(carried_on(*a, write));
  EXPECT_EQ(mine, theirs);
  ASSERT_TRUE(pump([&] { return write.finished; }));
  EXPECT_EQ(write.how, WcStatus::success);
}

TEST_F(EagerHelper, AReadIntoAColumnGoesOnToo) {
  constexpr std::uint64_t rows = 65536;
  constexpr std::int64_t stride = 40;
  const std::array<hca::Dimension, 1> dimensions{{{rows, stride}}};
  const hca::LayoutPtr column = hca::Layout::strided(0, 8, dimensions);
  Outcome read;
  ASSERT_TRUE(to_b->read(&read, {mine.data(), column.get(), 0}, remote(), rows * 8));
  ASSERT_TRUE(carried_on(*a, read));
  for (std::size_t row = 0; row < rows; ++row) {
    for (std::size_t i = 0; i < 8; ++i) ASSERT_EQ(mine[row * stride + i], theirs[row * 8 + i]);
  }
  ASSERT_TRUE(pump([&] { return read.finished; }));
}

TEST_F(EagerHelper, BothDirectionsAtOnce) {
  std::vector<std::byte> back(bytes);
  std::vector<std::byte> other(bytes, std::byte{5});
  const std::uint32_t other_key = share(*a, other);
  Outcome there;
  Outcome here;
  ASSERT_TRUE(to_b->read(&there, local(mine.data()), remote(), bytes));
  ASSERT_TRUE(to_a->read(&here, local(back.data()),
                         {reinterpret_cast<std::uint64_t>(other.data()), other_key}, bytes));
  ASSERT_TRUE(carried_on(*a, there));
  ASSERT_TRUE(carried_on(*b, here));
  EXPECT_EQ(mine, theirs);
  EXPECT_EQ(back, other);
  ASSERT_TRUE(pump([&] { return there.finished && here.finished; }));
}

TEST_F(EagerHelper, ManyReadsOneAfterTheOther) {
  constexpr std::size_t piece = 70'000;
  for (int round = 0; round < 30; ++round) {
    std::fill(mine.begin(), mine.end(), std::byte{0});
    Outcome read;
    ASSERT_TRUE(to_b->read(&read, local(mine.data()), remote(), piece));
    ASSERT_TRUE(carried_on(*a, read));
    ASSERT_TRUE(std::equal(mine.begin(), mine.begin() + piece, theirs.begin()));
    ASSERT_TRUE(pump([&] { return read.finished; }));
  }
}

}  // namespace
}  // namespace weft::test
