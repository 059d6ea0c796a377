#include "ucx-tl/window.hpp"

#include <gtest/gtest.h>
#include <ucs/memory/memtype_cache.h>

#include <numeric>
#include <set>
#include <thread>
#include <vector>

#include "ucx-tl/window_copy.hpp"
#include "ucx-tl/window_layout.hpp"
#include "ucx-tl/window_memory_type.hpp"

namespace weft::ucx {
namespace {

using hca::Dimension;
using hca::Layout;
using hca::LayoutPtr;

/// 8-byte blocks, 24 bytes apart.
LayoutPtr column(std::uint64_t rows) {
  const Dimension dim{rows, 24};
  return Layout::strided(0, 8, {&dim, 1});
}

TEST(WindowArena, closed_until_opened) {
  WindowArena arena;
  int host = 0;
  EXPECT_FALSE(arena.is_open());
  EXPECT_FALSE(arena.contains(&host));
  EXPECT_FALSE(arena.contains(nullptr));
  EXPECT_EQ(arena.bind(&host, *column(1)), nullptr);
  arena.release(&host);  // not of the arena: nothing happens
}

TEST(WindowArena, slots_are_aligned_and_host_memory_is_not_of_it) {
  WindowArena arena;
  ASSERT_TRUE(arena.open(4));
  EXPECT_TRUE(arena.open(4));
  EXPECT_EQ(arena.slots(), 4u);
  EXPECT_EQ(reinterpret_cast<std::uintptr_t>(arena.address()) % arena.length(), 0u);
  int host = 0;
  EXPECT_FALSE(arena.contains(&host));
  EXPECT_FALSE(arena.resolve(&host));
  EXPECT_TRUE(arena.contains(arena.address()));
  EXPECT_FALSE(arena.contains(static_cast<char*>(arena.address()) + arena.length()));
}

TEST(WindowArena, resolves_any_byte_of_a_window) {
  WindowArena arena;
  ASSERT_TRUE(arena.open(4));
  const LayoutPtr layout = column(100);
  std::byte buffer[2400];
  auto* window = static_cast<std::byte*>(arena.bind(buffer, *layout));
  ASSERT_NE(window, nullptr);
  for (const std::uint64_t offset : {0u, 1u, 8u, 799u, 800u}) {
    const Resolved found = arena.resolve(window + offset);
    ASSERT_TRUE(found);
    EXPECT_EQ(found.base, buffer);
    EXPECT_EQ(found.layout, layout.get());
    EXPECT_EQ(found.offset, offset);
    EXPECT_EQ(arena.window_of(window + offset), window);
  }
  arena.release(window);
  EXPECT_FALSE(arena.resolve(window));
}

TEST(WindowArena, last_released_is_first_reused) {
  WindowArena arena;
  ASSERT_TRUE(arena.open(8));
  const LayoutPtr layout = column(1);
  std::byte buffer[8];
  void* a = arena.bind(buffer, *layout);
  void* b = arena.bind(buffer, *layout);
  EXPECT_NE(a, b);
  arena.release(a);
  arena.release(b);
  EXPECT_EQ(arena.bind(buffer, *layout), b);
  EXPECT_EQ(arena.bind(buffer, *layout), a);
}

TEST(WindowArena, runs_out_and_recovers) {
  WindowArena arena;
  ASSERT_TRUE(arena.open(4));
  const LayoutPtr layout = column(1);
  std::byte buffer[8];
  std::set<void*> windows;
  for (int i = 0; i < 4; ++i) windows.insert(arena.bind(buffer, *layout));
  EXPECT_EQ(windows.size(), 4u);
  EXPECT_EQ(windows.count(nullptr), 0u);
  EXPECT_EQ(arena.bind(buffer, *layout), nullptr);
  arena.release(*windows.begin());
  EXPECT_EQ(arena.bind(buffer, *layout), *windows.begin());
}

TEST(WindowArena, refuses_what_is_larger_than_a_window) {
  WindowArena arena;
  ASSERT_TRUE(arena.open(4));
  const Dimension fits{(WindowArena::max_window) / 8, 16};
  const Dimension too_many{WindowArena::slot_size / 8, 16};
  std::byte buffer[8];
  EXPECT_NE(arena.bind(buffer, *Layout::strided(0, 8, {&fits, 1})), nullptr);
  EXPECT_EQ(arena.bind(buffer, *Layout::strided(0, 8, {&too_many, 1})), nullptr);
}

TEST(WindowArena, threads_never_share_a_window) {
  WindowArena arena;
  ASSERT_TRUE(arena.open(16));
  const LayoutPtr layout = column(1);
  std::atomic<int> clashes{0};
  std::atomic<int> empty{0};
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&] {
      std::byte mine[8];
      for (int round = 0; round < 20000; ++round) {
        void* held[5];
        for (void*& window : held) {
          window = arena.bind(mine, *layout);
          if (window == nullptr) ++empty;
        }
        for (void* window : held) {
          if (window == nullptr) continue;
          if (arena.resolve(window).base != mine) ++clashes;
          arena.release(window);
        }
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(clashes, 0);
  // Nothing was lost on the way: all slots can be had again.
  std::byte buffer[8];
  for (int i = 0; i < 16; ++i) EXPECT_NE(arena.bind(buffer, *layout), nullptr);
  EXPECT_EQ(arena.bind(buffer, *layout), nullptr);
}

TEST(WindowArena, ucx_takes_its_addresses_for_device_memory) {
  ASSERT_TRUE(windows().open());
  windows().announce();
  ucs_memory_info_t info;
  const LayoutPtr layout = column(4);
  std::byte buffer[96];
  void* window = windows().bind(buffer, *layout);
  ASSERT_EQ(ucs_memtype_cache_lookup(window, layout->size(), &info), UCS_OK);
  EXPECT_EQ(info.type, window_memory_type);
  EXPECT_EQ(ucs_memtype_cache_lookup(buffer, sizeof buffer, &info), UCS_ERR_NO_ELEM);
  windows().release(window);
}

class Copy : public testing::Test {
 protected:
  void SetUp() override {
    ASSERT_TRUE(windows().open());
    for (std::size_t i = 0; i < sizeof memory_; ++i) memory_[i] = static_cast<std::byte>(i * 7);
    window_ = static_cast<std::byte*>(windows().bind(memory_, *layout_));
    other_window_ = static_cast<std::byte*>(windows().bind(other_, *other_layout_));
  }
  void TearDown() override {
    windows().release(other_window_);
    windows().release(window_);
  }
  std::vector<std::byte> packed(std::uint64_t offset, std::size_t length) {
    std::vector<std::byte> out(length);
    layout_->gather(memory_, offset, out);
    return out;
  }

  static constexpr std::uint64_t rows = 3000;
  const LayoutPtr layout_ = column(rows);
  const LayoutPtr other_layout_ = Layout::strided(4, 5, std::vector<Dimension>{{4800, 9}});
  std::byte memory_[rows * 24];
  std::byte other_[4 + 4800 * 9] = {};
  std::byte* window_ = nullptr;
  std::byte* other_window_ = nullptr;
};

TEST_F(Copy, from_a_window_from_any_byte_on) {
  for (const std::size_t offset : {0, 3, 8, 1001}) {
    std::vector<std::byte> out(2000);
    ASSERT_TRUE(copy_bytes(out.data(), window_ + offset, out.size()));
    EXPECT_EQ(out, packed(offset, out.size()));
  }
}

TEST_F(Copy, to_a_window) {
  std::vector<std::byte> in(500);
  for (std::size_t i = 0; i < in.size(); ++i) in[i] = static_cast<std::byte>(255 - i);
  ASSERT_TRUE(copy_bytes(window_ + 13, in.data(), in.size()));
  EXPECT_EQ(packed(13, in.size()), in);
}

TEST_F(Copy, from_window_to_window_in_pieces) {
  ASSERT_TRUE(copy_bytes(other_window_, window_, 24000));
  std::vector<std::byte> out(24000);
  other_layout_->gather(other_, 0, out);
  EXPECT_EQ(out, packed(0, out.size()));
}

TEST_F(Copy, refuses_what_a_window_does_not_cover) {
  std::vector<std::byte> out(64);
  EXPECT_FALSE(copy_bytes(out.data(), window_ + layout_->size() - 63, 64));
  EXPECT_FALSE(copy_bytes(window_ + layout_->size() - 63, out.data(), 64));
  windows().release(other_window_);
  EXPECT_FALSE(copy_bytes(out.data(), other_window_, 1));
  other_window_ = static_cast<std::byte*>(windows().bind(other_, *other_layout_));
}

TEST_F(Copy, the_layout_of_a_key_follows_the_present_binding) {
  const Layout& layout = window_layout();
  std::vector<std::byte> out(800);
  layout.gather(window_, 8, out);
  EXPECT_EQ(out, packed(8, out.size()));
  windows().release(window_);
  layout.gather(window_, 8, out);
  EXPECT_EQ(out, std::vector<std::byte>(out.size()));  // zeros, nobody's memory
  const std::byte before = memory_[0];
  layout.scatter(window_, 0, out);
  EXPECT_EQ(memory_[0], before);
  window_ = static_cast<std::byte*>(windows().bind(memory_, *layout_));
}

}  // namespace
}  // namespace weft::ucx
