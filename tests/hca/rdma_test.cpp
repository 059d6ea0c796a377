// RDMA READ and WRITE between every kind of memory, against a byte-by-byte oracle; the errors of
// bad keys; atomics.
#include <gtest/gtest.h>

#include <cstring>
#include <numeric>
#include <vector>

#include "tests/hca/two_contexts.hpp"
#include "tests/seed.hpp"

namespace weft::test {
namespace {

using hca::Access;
using hca::Block;
using hca::Dimension;
using hca::Layout;
using hca::LayoutPtr;
using hca::WcStatus;
using hca::emu::AtomicOp;
using hca::emu::LocalMemory;
using hca::emu::RemoteMemory;

/// A buffer with a random layout over it, and the position of each byte of the packed stream.
struct Shaped {
  std::vector<std::byte> memory;
  LayoutPtr layout;
  std::vector<std::size_t> position;

  Shaped(Random& random, std::uint64_t size) {
    const int kind = static_cast<int>(random.in(0, 2));
    if (kind == 0) {
      memory.resize(size);
      position.resize(size);
      std::iota(position.begin(), position.end(), 0);
    } else if (kind == 1) {
      const auto block = static_cast<std::uint64_t>(random.in(1, 300));
      const std::uint64_t count = size / block + 1;
      const auto stride = static_cast<std::int64_t>(block) + random.in(0, 50);
      const std::vector<Dimension> dims{{count, stride}};
      layout = Layout::strided(0, block, dims);
      for (std::uint64_t i = 0; i < count; ++i) {
        for (std::uint64_t k = 0; k < block; ++k) {
          position.push_back(static_cast<std::size_t>(stride) * i + k);
        }
      }
    } else {
      std::vector<Block> blocks;
      std::int64_t at = 0;
      for (std::uint64_t have = 0; have < size;) {
        at += random.in(0, 40);
        const auto length = static_cast<std::uint64_t>(random.in(1, 200));
        blocks.push_back({at, length});
        for (std::uint64_t k = 0; k < length; ++k) {
          position.push_back(static_cast<std::size_t>(at) + k);
        }
        at += static_cast<std::int64_t>(length);
        have += length;
      }
      layout = Layout::sg_list(blocks);
    }
    if (layout) memory.resize(static_cast<std::size_t>(layout->upper()));
    for (std::byte& byte : memory) byte = static_cast<std::byte>(random.in(0, 255));
  }
};

class Rdma : public TwoContexts {
 protected:
  static RemoteMemory at(const std::vector<std::byte>& memory, std::uint32_t key) {
    return {reinterpret_cast<std::uint64_t>(memory.data()), key};
  }
};

TEST_F(Rdma, ReadAndWriteOfRandomShapesAtRandomOffsets) {
  for (std::uint64_t round = 0; round < 400; ++round) {
    SCOPED_TRACE(seed_note(round));
    Random random(round);
    const std::uint64_t size =
        static_cast<std::uint64_t>(random.chance(0.3) ? random.in(1, 600) : random.in(1, 300000));
    Shaped mine(random, size);
    Shaped theirs(random, size);
    const auto length = static_cast<std::uint64_t>(random.in(0, static_cast<std::int64_t>(size)));
    const auto my_offset =
        static_cast<std::uint64_t>(random.in(0, static_cast<std::int64_t>(size - length)));
    const auto offset =
        static_cast<std::uint64_t>(random.in(0, static_cast<std::int64_t>(size - length)));
    // Layouts are zero-based, plain memory goes by its address.
    const std::uint64_t base =
        theirs.layout ? 0 : reinterpret_cast<std::uint64_t>(theirs.memory.data());
    const std::uint32_t key = b->register_region(
        {base, theirs.position.size(), theirs.memory.data(), theirs.layout, Access::all, 0});
    const LocalMemory here{mine.memory.data(), mine.layout.get(), my_offset};
    const RemoteMemory there{base + offset, key};
    const auto before_mine = mine.memory;
    const auto before_theirs = theirs.memory;
    Outcome outcome;
    const bool reading = random.chance(0.5);
    ASSERT_EQ(run(outcome,
                  [&] {
                    return reading ? to_b->read(&outcome, here, there, length)
                                   : to_b->write(&outcome, here, there, length);
                  }),
              WcStatus::success);
    auto want_mine = before_mine;
    auto want_theirs = before_theirs;
    for (std::uint64_t i = 0; i < length; ++i) {
      if (reading) {
        want_mine[mine.position[my_offset + i]] = before_theirs[theirs.position[offset + i]];
      } else {
        want_theirs[theirs.position[offset + i]] = before_mine[mine.position[my_offset + i]];
      }
    }
    ASSERT_EQ(mine.memory, want_mine) << (reading ? "read " : "write ") << length;
    ASSERT_EQ(theirs.memory, want_theirs) << (reading ? "read " : "write ") << length;
    b->deregister(key);
  }
}

TEST_F(Rdma, ManyOperationsInFlight) {
  std::vector<std::byte> theirs(1 << 20);
  std::vector<std::byte> mine(1 << 20);
  for (std::size_t i = 0; i < mine.size(); ++i) mine[i] = static_cast<std::byte>(i * 31);
  const std::uint32_t key = share(*b, theirs);
  constexpr std::size_t piece = 4096;
  std::vector<Outcome> writes(mine.size() / piece);
  std::size_t posted = 0;
  ASSERT_TRUE(pump([&] {
    while (posted < writes.size() &&
           to_b->write(&writes[posted], local(mine.data() + posted * piece),
                       {reinterpret_cast<std::uint64_t>(theirs.data()) + posted * piece, key},
                       piece)) {
      ++posted;
    }
    return posted == writes.size() && to_b->outstanding() == 0;
  }));
  ASSERT_TRUE(pump([&] { return writes.back().finished; }));
  EXPECT_EQ(theirs, mine);
  for (const Outcome& write : writes) EXPECT_EQ(write.how, WcStatus::success);
}

TEST_F(Rdma, WhatTheKeyForbidsFailsAndChangesNothing) {
  std::vector<std::byte> theirs(100000, std::byte{1});
  std::vector<std::byte> mine(100000, std::byte{2});
  const auto untouched = theirs;
  const std::uint32_t key = share(*b, theirs);
  const std::uint32_t read_only = share(*b, theirs, Access::remote_read);
  const std::uint32_t write_only = share(*b, theirs, Access::remote_write);
  const auto write = [&](RemoteMemory remote, std::uint64_t length) {
    Outcome outcome;
    return run(outcome, [&] { return to_b->write(&outcome, local(mine.data()), remote, length); });
  };
  const auto read = [&](RemoteMemory remote, std::uint64_t length) {
    Outcome outcome;
    return run(outcome, [&] { return to_b->read(&outcome, local(mine.data()), remote, length); });
  };
  const auto addr = reinterpret_cast<std::uint64_t>(theirs.data());
  for (const std::uint64_t length : {std::uint64_t{1}, std::uint64_t{600}, std::uint64_t{100000}}) {
    EXPECT_EQ(write({addr, read_only}, length), WcStatus::rem_access_err);
    EXPECT_EQ(read({addr, write_only}, length), WcStatus::rem_access_err);
    EXPECT_EQ(write({addr + 100001 - length, key}, length), WcStatus::rem_access_err);
    EXPECT_EQ(read({addr + 100001 - length, key}, length), WcStatus::rem_access_err);
    EXPECT_EQ(write({addr - 1, key}, length), WcStatus::rem_access_err);
    EXPECT_EQ(read({addr, key + 25600}, length), WcStatus::rem_access_err);
    EXPECT_EQ(read({addr, key ^ 1}, length), WcStatus::rem_access_err);
    EXPECT_EQ(write({~std::uint64_t{0} - 10, key}, length), WcStatus::rem_access_err);
  }
  EXPECT_EQ(theirs, untouched);
  EXPECT_EQ(write({addr, key}, 100000), WcStatus::success);
  EXPECT_EQ(theirs, mine);
  b->deregister(key);
  EXPECT_EQ(write({addr, key}, 1), WcStatus::rem_access_err);
  EXPECT_THROW(b->deregister(key), hca::Error);
  EXPECT_THROW(b->deregister(0), hca::Error);
}

TEST_F(Rdma, DeregistrationEndsAReadUnderWay) {
  std::vector<std::byte> theirs(8 << 20);
  std::vector<std::byte> mine(8 << 20);
  const std::uint32_t key = share(*b, theirs);
  Outcome outcome;
  ASSERT_TRUE(to_b->read(&outcome, local(mine.data()), at(theirs, key), mine.size()));
  ASSERT_TRUE(pump([&] { return has_begun(*a, outcome); }));
  b->deregister(key);
  ASSERT_TRUE(pump([&] { return outcome.finished; }));
  EXPECT_EQ(outcome.how, WcStatus::rem_access_err);
}

TEST_F(Rdma, ShortWritesAreCountedUntilThePeerHasDoneThem) {
  std::vector<std::byte> theirs(4096);
  const std::uint32_t key = share(*b, theirs);
  for (std::uint32_t length = 0; length <= hca::emu::WireLimits::max_write_short; ++length) {
    std::vector<std::byte> data(length, static_cast<std::byte>(length));
    while (!to_b->write_short(nullptr, data.data(), length, at(theirs, key))) {
      a->progress();
      b->progress();
    }
    ASSERT_TRUE(pump([&] { return to_b->outstanding() == 0; }));
    ASSERT_TRUE(std::equal(data.begin(), data.end(), theirs.begin()));
  }
}

TEST_F(Rdma, FencedOperationsWait) {
  std::vector<std::byte> theirs(1 << 20, std::byte{7});
  std::vector<std::byte> mine(1 << 20);
  const std::uint32_t key = share(*b, theirs);
  Outcome reading;
  ASSERT_TRUE(to_b->read(&reading, local(mine.data()), at(theirs, key), mine.size()));
  to_b->fence();
  const std::uint64_t zero = 0;
  EXPECT_FALSE(to_b->write_short(nullptr, &zero, 8, at(theirs, key)));
  ASSERT_TRUE(pump([&] { return reading.finished; }));
  EXPECT_TRUE(to_b->write_short(nullptr, &zero, 8, at(theirs, key)));
  EXPECT_EQ(mine[0], std::byte{7});
}

template <class Word>
void check_atomics(hca::emu::Link& link, Word* word, std::uint32_t key, auto run) {
  const auto apply = [&](AtomicOp code, Word operand, Word compare) {
    Outcome outcome;
    const RemoteMemory remote{reinterpret_cast<std::uint64_t>(word), key};
    EXPECT_EQ(
        run(outcome,
            [&] { return link.atomic(&outcome, code, sizeof(Word), remote, operand, compare); }),
        WcStatus::success);
    return static_cast<Word>(outcome.result);
  };
  *word = 5;
  EXPECT_EQ(apply(AtomicOp::fetch_add, 3, 0), 5u);
  EXPECT_EQ(apply(AtomicOp::swap, 12, 0), 8u);
  EXPECT_EQ(apply(AtomicOp::compare_swap, 99, 11), 12u);
  EXPECT_EQ(*word, 12u);
  EXPECT_EQ(apply(AtomicOp::compare_swap, 99, 12), 12u);
  EXPECT_EQ(apply(AtomicOp::fetch_and, 0x6, 0), 99u);
  EXPECT_EQ(apply(AtomicOp::fetch_or, 0x9, 0), 2u);
  EXPECT_EQ(apply(AtomicOp::fetch_xor, 0xf, 0), 11u);
  EXPECT_EQ(*word, 4u);
}

TEST_F(Rdma, AtomicsOfBothSizes) {
  std::vector<std::byte> memory(64);
  const std::uint32_t key = share(*b, memory);
  const auto runner = [this](Outcome& outcome, auto post) { return run(outcome, post); };
  check_atomics(*to_b, reinterpret_cast<std::uint64_t*>(memory.data()), key, runner);
  check_atomics(*to_b, reinterpret_cast<std::uint32_t*>(memory.data() + 12), key, runner);
}

TEST_F(Rdma, BadAtomicsAreRefused) {
  std::vector<std::byte> memory(64);
  const std::uint32_t key = share(*b, memory);
  const std::uint32_t no_atomics = share(*b, memory, Access::remote_read | Access::remote_write);
  const auto addr = reinterpret_cast<std::uint64_t>(memory.data());
  const auto add = [&](RemoteMemory remote, std::uint32_t size) {
    Outcome outcome;
    return run(outcome,
               [&] { return to_b->atomic(&outcome, AtomicOp::fetch_add, size, remote, 1, 0); });
  };
  EXPECT_EQ(add({addr + 1, key}, 8), WcStatus::rem_inv_req_err);
  EXPECT_EQ(add({addr + 2, key}, 4), WcStatus::rem_inv_req_err);
  EXPECT_EQ(add({addr + 64, key}, 8), WcStatus::rem_access_err);
  EXPECT_EQ(add({addr, no_atomics}, 8), WcStatus::rem_access_err);
  EXPECT_EQ(add({addr, key}, 2), WcStatus::rem_access_err);
  EXPECT_EQ(memory, std::vector<std::byte>(64));
}

TEST_F(Rdma, ToItself) {
  auto self = a->connect(a->address());
  std::vector<std::byte> from(300000, std::byte{3});
  std::vector<std::byte> to(300000);
  const std::uint32_t key = share(*a, from);
  Outcome outcome;
  EXPECT_EQ(run(outcome,
                [&] { return self->read(&outcome, local(to.data()), at(from, key), to.size()); }),
            WcStatus::success);
  EXPECT_EQ(to, from);
}

}  // namespace
}  // namespace weft::test
