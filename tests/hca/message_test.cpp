// Active messages of a link: content, order, back-pressure, and many links at once.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <vector>

#include "tests/hca/two_contexts.hpp"
#include "tests/seed.hpp"

namespace weft::test {
namespace {

using hca::emu::Context;
using hca::emu::Link;
using hca::emu::WireLimits;

struct Inbox {
  struct Message {
    std::uint8_t id;
    std::vector<std::byte> bytes;
  };
  std::vector<Message> messages;

  void listen(Context& context) {
    context.set_am_handler(
        [](void* self, std::uint8_t id, std::byte* data, std::size_t length) {
          static_cast<Inbox*>(self)->messages.push_back({id, {data, data + length}});
        },
        this);
  }
};

std::vector<std::byte> pattern(std::size_t length, unsigned salt) {
  std::vector<std::byte> bytes(length);
  for (std::size_t i = 0; i < length; ++i) bytes[i] = static_cast<std::byte>(i * 7 + salt);
  return bytes;
}

class Messages : public TwoContexts {
 protected:
  void SetUp() override {
    TwoContexts::SetUp();
    inbox.listen(*b);
  }
  bool send_short(std::uint64_t header, const std::vector<std::byte>& payload) {
    return to_b->am_short(3, header, payload.data(), static_cast<std::uint32_t>(payload.size()));
  }
  bool send_copy(std::uint8_t id, const std::vector<std::byte>& bytes, std::size_t room) {
    std::byte* at = to_b->am_reserve(room);
    if (at == nullptr) return false;
    std::copy(bytes.begin(), bytes.end(), at);
    to_b->am_commit(id, bytes.size());
    return true;
  }
  Inbox inbox;
};

TEST_F(Messages, ShortOfEveryLength) {
  for (std::size_t length = 0; length + 8 <= WireLimits::max_short; ++length) {
    const auto payload = pattern(length, static_cast<unsigned>(length));
    while (!send_short(length, payload)) b->progress();
    ASSERT_TRUE(pump([&] { return inbox.messages.size() == length + 1; })) << length;
    const auto& message = inbox.messages.back();
    ASSERT_EQ(message.id, 3);
    ASSERT_EQ(message.bytes.size(), length + 8);
    std::uint64_t header;
    std::memcpy(&header, message.bytes.data(), 8);
    ASSERT_EQ(header, length);
    ASSERT_TRUE(std::equal(payload.begin(), payload.end(), message.bytes.begin() + 8)) << length;
  }
}

TEST_F(Messages, CopiedAroundEveryLimit) {
  std::size_t sent = 0;
  for (const std::size_t length : {std::size_t{0}, std::size_t{1}, std::size_t{56}, std::size_t{57},
                                   WireLimits::max_inline_bcopy, WireLimits::max_inline_bcopy + 1,
                                   std::size_t{8192}, WireLimits::max_bcopy}) {
    const auto bytes = pattern(length, 5);
    while (!send_copy(9, bytes, WireLimits::max_bcopy)) b->progress();
    ++sent;
    ASSERT_TRUE(pump([&] { return inbox.messages.size() == sent; }));
    EXPECT_EQ(inbox.messages.back().bytes, bytes);
    EXPECT_EQ(inbox.messages.back().id, 9);
  }
}

TEST_F(Messages, AbandonedRoomIsFreeAgain) {
  for (int i = 0; i < 1000; ++i) {
    ASSERT_NE(to_b->am_reserve(WireLimits::max_bcopy), nullptr) << i;
    to_b->am_abandon();
  }
  EXPECT_TRUE(send_copy(1, pattern(4096, 1), 4096));
}

TEST_F(Messages, OrderHoldsThroughBackPressureAndEverySize) {
  constexpr std::uint64_t count = 20000;
  Random random(1);
  std::uint64_t sent = 0;
  std::uint64_t refused = 0;
  std::uint64_t seen = 0;
  while (seen < count) {
    for (int burst = static_cast<int>(random.in(1, 400)); burst > 0 && sent < count; --burst) {
      // Payload that could pass for lap numbers when left behind in a ring.
      std::vector<std::byte> bytes(
          static_cast<std::size_t>(random.chance(0.1) ? random.in(600, 16000) : random.in(0, 500)));
      std::fill(bytes.begin(), bytes.end(), static_cast<std::byte>(random.in(0, 255)));
      bool posted;
      if (bytes.size() + 8 <= WireLimits::max_short && random.chance(0.5)) {
        posted = send_short(sent, bytes);
      } else {
        bytes.insert(bytes.begin(), 8, std::byte{0});
        std::memcpy(bytes.data(), &sent, 8);
        posted = send_copy(3, bytes, bytes.size());
      }
      if (!posted) {
        ++refused;
        break;
      }
      ++sent;
    }
    for (int polls = static_cast<int>(random.in(1, 30)); polls > 0; --polls) b->progress();
    for (const auto& message : inbox.messages) {
      std::uint64_t number;
      std::memcpy(&number, message.bytes.data(), 8);
      ASSERT_EQ(number, seen) << seed_note(1);
      ++seen;
    }
    inbox.messages.clear();
  }
  EXPECT_GT(refused, 0u) << "the test never filled the ring";
}

TEST_F(Messages, ComeAfterTheWritesPostedBefore) {
  std::vector<std::byte> target(1 << 20);
  const std::uint32_t key = share(*b, target);
  std::vector<std::byte> source(target.size());
  Random random(2);
  for (int round = 1; round <= 200; ++round) {
    std::fill(source.begin(), source.end(), static_cast<std::byte>(round));
    const auto length = static_cast<std::uint64_t>(random.in(1, 1 << 20));
    Outcome outcome;
    const hca::emu::RemoteMemory remote{reinterpret_cast<std::uint64_t>(target.data()), key};
    while (!to_b->write(&outcome, local(source.data()), remote, length)) {
      a->progress();
      b->progress();
    }
    bool posted = false;
    inbox.messages.clear();
    ASSERT_TRUE(pump([&] {
      if (!posted) posted = send_short(0, {});
      return !inbox.messages.empty();
    }));
    // At the moment of the message's arrival the last byte is there.
    ASSERT_EQ(target[length - 1], static_cast<std::byte>(round)) << seed_note(2);
    ASSERT_TRUE(pump([&] { return outcome.finished; }));
  }
}

TEST_F(Messages, ToItself) {
  auto self = a->connect(a->address());
  Inbox own;
  own.listen(*a);
  const auto bytes = pattern(5000, 3);
  std::byte* at = nullptr;
  ASSERT_TRUE(pump([&] { return (at = self->am_reserve(bytes.size())) != nullptr; }));
  std::memcpy(at, bytes.data(), bytes.size());
  self->am_commit(4, bytes.size());
  ASSERT_TRUE(self->am_short(5, 17, nullptr, 0));
  ASSERT_TRUE(pump([&] { return own.messages.size() == 2; }));
  EXPECT_EQ(own.messages[0].bytes, bytes);
  EXPECT_EQ(own.messages[1].id, 5);
}

TEST(ManyLinks, SilentOnesAreHeardWhenTheySpeak) {
  auto hub = Context::open(options("hub"));
  Inbox inbox;
  inbox.listen(*hub);
  std::vector<std::unique_ptr<Context>> spokes;
  std::vector<std::shared_ptr<Link>> links;
  for (int i = 0; i < 70; ++i) {
    spokes.push_back(Context::open(options("spoke")));
    links.push_back(spokes.back()->connect(hub->address()));
  }
  Random random(3);
  std::size_t sent = 0;
  for (int round = 0; round < 300; ++round) {
    // Long enough for all of them to become cold now and then.
    for (int i = static_cast<int>(random.chance(0.05) ? 10000 : random.in(0, 50)); i > 0; --i) {
      hub->progress();
    }
    const auto which = static_cast<std::size_t>(random.in(0, 69));
    ASSERT_TRUE(links[which]->am_short(1, which, nullptr, 0));
    ++sent;
    for (int i = 0; i < 2000 && inbox.messages.size() < sent; ++i) hub->progress();
    ASSERT_EQ(inbox.messages.size(), sent) << seed_note(3);
    std::uint64_t header;
    std::memcpy(&header, inbox.messages.back().bytes.data(), 8);
    ASSERT_EQ(header, which);
  }
}

TEST(ManyLinks, PortsOfClosedContextsAreUsedAgain) {
  auto hub = Context::open(options("hub"));
  Inbox inbox;
  inbox.listen(*hub);
  for (std::uint32_t i = 0; i < hca::emu::port_count + 40; ++i) {
    auto spoke = Context::open(options("spoke"));
    auto link = spoke->connect(hub->address());
    ASSERT_TRUE(link->am_short(1, i, nullptr, 0));
    // The port is given back by a look at closed links, some time after the end.
    for (int k = 0; k < 100000 && inbox.messages.size() <= i; ++k) hub->progress();
    ASSERT_EQ(inbox.messages.size(), i + 1);
    link.reset();
    spoke.reset();
    if (i % 100 == 99) {
      ::usleep(250'000);
      for (int k = 0; k < 2000; ++k) hub->progress();
    }
  }
}

TEST_F(Messages, DevicesOfOtherNamesAreOutOfReach) {
  hca::emu::ContextOptions elsewhere = options("elsewhere");
  elsewhere.device += "b";
  const auto c = hca::emu::Context::open(elsewhere);
  EXPECT_TRUE(a->reachable(b->address()));
  EXPECT_FALSE(a->reachable(c->address()));
  EXPECT_THROW(a->connect(c->address()), hca::Error);
}

}  // namespace
}  // namespace weft::test
