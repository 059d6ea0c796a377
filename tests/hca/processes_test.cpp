// The wire between real processes: both sides at once, a side that computes, a side that is killed.
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <cstring>
#include <new>
#include <vector>

#include "tests/hca/two_contexts.hpp"

namespace weft::test {
namespace {

using hca::WcStatus;
using hca::emu::Address;
using hca::emu::AtomicOp;
using hca::emu::Context;
using hca::emu::RemoteMemory;

/// What parent and child tell each other; an anonymous shared page.
struct Board {
  std::atomic<int> stage{0};
  Address child{};
  std::uint64_t addr = 0;
  std::uint32_t key = 0;
  std::atomic<std::uint64_t> progress_calls{0};
};

class Processes : public ::testing::Test {
 protected:
  void SetUp() override {
    void* page =
        ::mmap(nullptr, sizeof(Board), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    ASSERT_NE(page, MAP_FAILED);
    board = new (page) Board;
    device = options().device;
  }
  void TearDown() override {
    if (child > 0) {
      ::kill(child, SIGKILL);
      ::waitpid(child, nullptr, 0);
    }
    ::munmap(board, sizeof(Board));
    ::unlink(hca::emu::DeviceFile::path_of(device).c_str());
  }
  template <class Body>
  void start_child(Body body) {
    child = ::fork();
    ASSERT_GE(child, 0);
    if (child == 0) {
      ::alarm(60);
      body();
      ::_exit(0);
    }
  }
  [[nodiscard]] std::unique_ptr<Context> open() const {
    auto wanted = options();
    wanted.device = device;
    return Context::open(wanted);
  }
  void reach(int stage) const { board->stage.store(stage); }
  void wait_for(int stage) const {
    while (board->stage.load() < stage) ::usleep(100);
  }
  /// Opens a context and shares `memory` on the board.
  std::unique_ptr<Context> offer(void* memory, std::size_t bytes) const {
    auto context = open();
    board->child = context->address();
    board->addr = reinterpret_cast<std::uint64_t>(memory);
    board->key = context->register_region(
        {board->addr, bytes, static_cast<std::byte*>(memory), nullptr, hca::Access::all, 0});
    reach(1);
    return context;
  }
  int wait_for_child() {
    int status = -1;
    ::waitpid(child, &status, 0);
    child = 0;
    return status;
  }
  template <class Until>
  static bool progress(Context& context, Until until, int seconds = 20) {
    const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(seconds);
    while (!until()) {
      context.progress();
      ::sched_yield();
      if (std::chrono::steady_clock::now() > end) return false;
    }
    return true;
  }

  Board* board = nullptr;
  pid_t child = 0;
  std::string device;
};

TEST_F(Processes, ReadsAndWritesWhileBothAttend) {
  constexpr std::size_t bytes = 2'000'000;
  start_child([&] {
    std::vector<std::byte> memory(bytes, std::byte{9});
    auto context = offer(memory.data(), bytes);
    progress(*context, [&] { return board->stage.load() == 2; });
  });
  wait_for(1);
  auto context = open();
  auto link = context->connect(board->child);
  std::vector<std::byte> mine(bytes);
  for (int round = 0; round < 5; ++round) {
    Outcome write;
    std::vector<std::byte> out(bytes, static_cast<std::byte>(round));
    const RemoteMemory remote{board->addr, board->key};
    ASSERT_TRUE(link->write(&write, local(out.data()), remote, bytes));
    ASSERT_TRUE(progress(*context, [&] { return write.finished; }));
    ASSERT_EQ(write.how, WcStatus::success);
    Outcome read;
    ASSERT_TRUE(link->read(&read, local(mine.data()), remote, bytes));
    ASSERT_TRUE(progress(*context, [&] { return read.finished; }));
    ASSERT_EQ(read.how, WcStatus::success);
    ASSERT_EQ(mine, out);
  }
  reach(2);
  EXPECT_EQ(wait_for_child(), 0);
}

TEST_F(Processes, OneSidedOperationsCompleteWhileTheTargetCallsNothing) {
  constexpr std::size_t bytes = 1'000'000;
  start_child([&] {
    std::vector<std::byte> memory(bytes, std::byte{9});
    auto context = offer(memory.data(), bytes);
    // The first connection needs one look; from then on this process calls nothing.
    progress(*context, [&] { return board->stage.load() == 2; });
    while (board->stage.load() != 3) {
    }
  });
  wait_for(1);
  auto context = open();
  auto link = context->connect(board->child);
  const RemoteMemory remote{board->addr, board->key};
  Outcome first;
  ASSERT_TRUE(link->read(&first, local(&board->progress_calls), remote, 8));
  ASSERT_TRUE(progress(*context, [&] { return first.finished; }));
  reach(2);
  ::usleep(10'000);
  std::vector<std::byte> mine(bytes, std::byte{4});
  Outcome write;
  ASSERT_TRUE(link->write(&write, local(mine.data()), remote, bytes));
  ASSERT_TRUE(progress(*context, [&] { return write.finished; }));
  EXPECT_EQ(write.how, WcStatus::success);
  Outcome read;
  std::vector<std::byte> back(bytes);
  ASSERT_TRUE(link->read(&read, local(back.data()), remote, bytes));
  ASSERT_TRUE(progress(*context, [&] { return read.finished; }));
  EXPECT_EQ(back, mine);
  Outcome add;
  ASSERT_TRUE(link->atomic(&add, AtomicOp::fetch_add, 8, remote, 1, 0));
  ASSERT_TRUE(progress(*context, [&] { return add.finished; }));
  EXPECT_EQ(add.result, 0x0404040404040404u);
  reach(3);
  EXPECT_EQ(wait_for_child(), 0);
}

TEST_F(Processes, AKilledPeerCostsAnErrorNotAHang) {
  constexpr std::size_t bytes = 16 << 20;
  for (int round = 0; round < 3; ++round) {
    reach(0);
    start_child([&] {
      std::vector<std::byte> memory(bytes, std::byte{9});
      auto context = offer(memory.data(), bytes);
      progress(*context, [] { return false; });
    });
    wait_for(1);
    auto context = open();
    auto link = context->connect(board->child);
    std::vector<std::byte> mine(bytes);
    Outcome read;
    Outcome write;
    const RemoteMemory remote{board->addr, board->key};
    ASSERT_TRUE(link->read(&read, local(mine.data()), remote, bytes));
    ASSERT_TRUE(progress(*context, [&] { return has_begun(*context, read); }));
    ::kill(child, SIGKILL);
    wait_for_child();
    EXPECT_TRUE(link->write(&write, local(mine.data()), remote, bytes));
    ASSERT_TRUE(progress(*context, [&] { return read.finished && write.finished; }));
    EXPECT_TRUE(read.how == WcStatus::retry_exc_err || read.how == WcStatus::success);
    EXPECT_EQ(write.how, WcStatus::retry_exc_err);
    EXPECT_FALSE(link->alive());
    EXPECT_THROW(context->connect(board->child), hca::Error);
  }
}

TEST_F(Processes, EventDescriptorWakesASleeper) {
  static int received;
  received = 0;
  start_child([&] {
    std::vector<std::byte> memory(64);
    auto context = open();
    context->set_am_handler([](void*, std::uint8_t, std::byte*, std::size_t) { ++received; },
                            nullptr);
    const int fd = context->event_fd();
    board->child = context->address();
    reach(1);
    while (received < 20) {
      while (context->progress() != 0) {
      }
      if (received == 20 || !context->arm()) continue;
      fd_set set;
      FD_ZERO(&set);
      FD_SET(fd, &set);
      ::select(fd + 1, &set, nullptr, nullptr, nullptr);
    }
    ::_exit(received == 20 ? 0 : 1);
  });
  wait_for(1);
  auto context = open();
  auto link = context->connect(board->child);
  for (int i = 0; i < 20; ++i) {
    ::usleep(3000);
    ASSERT_TRUE(link->am_short(1, 0, nullptr, 0));
  }
  EXPECT_EQ(wait_for_child(), 0);
}

TEST_F(Processes, AtomicsOfSeveralProcessesGiveUniqueTickets) {
  std::uint64_t counter = 0;
  auto context = open();
  board->child = context->address();
  board->addr = reinterpret_cast<std::uint64_t>(&counter);
  board->key = context->register_region(
      {board->addr, 8, reinterpret_cast<std::byte*>(&counter), nullptr, hca::Access::all, 0});
  constexpr std::uint64_t each = 2000;
  constexpr int workers = 3;
  void* page = ::mmap(nullptr, workers * each * 8, PROT_READ | PROT_WRITE,
                      MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  auto* tickets = static_cast<std::uint64_t*>(page);
  std::vector<pid_t> children;
  for (int worker = 0; worker < workers; ++worker) {
    const pid_t pid = ::fork();
    if (pid == 0) {
      ::alarm(60);
      auto own = open();
      auto link = own->connect(board->child);
      for (std::uint64_t i = 0; i < each; ++i) {
        Outcome add;
        if (!link->atomic(&add, AtomicOp::fetch_add, 8, {board->addr, board->key}, 1, 0))
          ::_exit(2);
        if (!progress(*own, [&] { return add.finished; })) ::_exit(3);
        tickets[static_cast<std::uint64_t>(worker) * each + i] = add.result;
      }
      ::_exit(0);
    }
    children.push_back(pid);
  }
  std::size_t ended = 0;
  ASSERT_TRUE(progress(
      *context,
      [&] {
        int status = 0;
        if (::waitpid(-1, &status, WNOHANG) > 0) {
          EXPECT_EQ(status, 0);
          ++ended;
        }
        return ended == children.size();
      },
      60));
  EXPECT_EQ(counter, workers * each);
  std::vector<bool> seen(workers * each);
  for (std::uint64_t i = 0; i < workers * each; ++i) {
    ASSERT_LT(tickets[i], workers * each);
    ASSERT_FALSE(seen[tickets[i]]);
    seen[tickets[i]] = true;
  }
  ::munmap(page, workers * each * 8);
}

}  // namespace
}  // namespace weft::test
