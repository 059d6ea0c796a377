// The memory of the wire: 64 contexts, all connected with all and all having used their rings and
// slots, stay within 256 MiB, and each within what segment_memory() says. One process stands for
// 64: a segment is a context's, and its pages count once whoever touched them.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <memory>
#include <numeric>
#include <vector>

#include "tests/hca/two_contexts.hpp"

namespace weft::test {
namespace {

using hca::WcStatus;
using hca::emu::Context;
using hca::emu::Link;
using hca::emu::Port;
using hca::emu::RemoteMemory;
using hca::emu::WireLimits;

#ifdef __SANITIZE_THREAD__
// Its shadow is several times what all the mappings touch.
constexpr std::size_t contexts = 16;
#else
constexpr std::size_t contexts = 64;
#endif
/// Messages of 17 lines, and writes of 9, that go once round their rings.
constexpr int messages_each = 15;
constexpr std::size_t mib = 1 << 20;
/// Long enough that contiguous memory goes in the largest pieces; in
/// small ones.
constexpr std::size_t large = 512 * 1024;
constexpr std::size_t small = 32 * 1024;

/// A context and its memory. Helper threads may move the bytes: what one writes is no other's.
struct Side {
  std::unique_ptr<Context> context;
  std::vector<std::byte> shared = std::vector<std::byte>(large);
  std::vector<std::byte> read = std::vector<std::byte>(large);
  std::uint32_t key = 0;
};

struct Connection {
  std::shared_ptr<Link> link;
  Side* from;
  Side* to;
  [[nodiscard]] RemoteMemory remote() const {
    return {reinterpret_cast<std::uint64_t>(to->shared.data()), to->key};
  }
};

class WireMemory : public ::testing::Test {
 protected:
  void SetUp() override {
    for (Side& side : all) {
      side.context = Context::open(options("memory"));
      side.context->set_am_handler([](void* arg, std::uint8_t, std::byte*,
                                      std::size_t) { ++*static_cast<std::uint64_t*>(arg); },
                                   &received);
      side.key =
          side.context->register_region({reinterpret_cast<std::uint64_t>(side.shared.data()), large,
                                         side.shared.data(), nullptr, hca::Access::all, 0});
    }
  }
  void connect_all() {
    for (Side& from : all) {
      for (Side& to : all) {
        if (&from != &to)
          links.push_back({from.context->connect(to.context->address()), &from, &to});
      }
    }
  }
  void progress() const {
    for (const Side& side : all) side.context->progress();
  }
  /// Tries `post` again after progress until it says that it has posted.
  template <class Post>
  void posted(Post post) const {
    while (!post()) progress();
  }
  void settle() const {
    for (int rounds = 0; rounds < 1'000'000; ++rounds) {
      const bool quiet = received == sent && std::all_of(links.begin(), links.end(), [](auto& at) {
                           return at.link->outstanding() == 0;
                         });
      if (quiet) break;
      progress();
    }
    // What has been executed is also completed.
    progress();
    EXPECT_EQ(received, sent);
  }
  [[nodiscard]] std::size_t total() const {
    return std::accumulate(
        all.begin(), all.end(), std::size_t{0},
        [](std::size_t sum, const Side& side) { return sum + allocated(*side.context); });
  }

  std::vector<Side> all = std::vector<Side>(contexts);
  std::vector<Connection> links;
  std::uint64_t received = 0;
  std::uint64_t sent = 0;
};

TEST_F(WireMemory, AnUnconnectedContextHasNoRingsAndNoSlots) {
  for (const Side& side : all) EXPECT_LE(allocated(*side.context), 8192u);
}

TEST_F(WireMemory, StaysWithinItsBoundWhenAllHaveTalkedToAll) {
  connect_all();
  const std::array<std::byte, 1024 - 8> message{};
  for (const Connection& to : links) {
    for (int i = 0; i < messages_each; ++i) {
      posted([&] { return to.link->am_short(1, 0, message.data(), message.size()); });
      posted([&] {
        return to.link->write_short(nullptr, message.data(), WireLimits::max_write_short,
                                    to.remote());
      });
    }
    sent += messages_each;
  }
  settle();
  // As many slots as one may have, and nobody reads them until all have been filled.
  for (const Connection& to : links) {
    while (std::byte* room = to.link->am_reserve(WireLimits::max_bcopy)) {
      std::fill_n(room, WireLimits::max_bcopy, std::byte{1});
      to.link->am_commit(1, WireLimits::max_bcopy);
      ++sent;
    }
  }
  settle();
  std::vector<std::byte> source(small);
  std::vector<Outcome> writes(links.size());
  std::vector<Outcome> reads(links.size());
  for (std::size_t i = 0; i < links.size(); ++i) {
    const Connection& to = links[i];
    posted([&] { return to.link->write(&writes[i], local(source.data()), to.remote(), small); });
    const std::size_t length = i % 21 == 0 ? large : small;
    posted(
        [&] { return to.link->read(&reads[i], local(to.from->read.data()), to.remote(), length); });
  }
  settle();
  for (const Outcome& write : writes) ASSERT_EQ(write.how, WcStatus::success);
  for (const Outcome& read : reads) ASSERT_EQ(read.how, WcStatus::success);

  for (const Side& side : all) {
    EXPECT_LE(allocated(*side.context), hca::emu::segment_memory(contexts - 1));
  }
  EXPECT_LE(total(), 256 * mib);
  // The rings have been used to the last line, or this would say little.
  EXPECT_GE(total(), links.size() * sizeof(Port));
  RecordProperty("bytes", std::to_string(total()));
}

}  // namespace
}  // namespace weft::test
