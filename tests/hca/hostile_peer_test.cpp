// Peers that write into shared memory what no peer of ours would: what the fuzz targets and reading
// have found. Each line is put where the reader looks next.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstring>
#include <memory>
#include <thread>
#include <vector>

#include "hca/emu/completion_queue.hpp"
#include "hca/emu/device_memory.hpp"
#include "hca/emu/queue_pair.hpp"
#include "hca/emu/wire.hpp"
#include "tests/hca/two_contexts.hpp"

namespace weft::test {
namespace {

using namespace hca;
using namespace hca::emu;

/// Writes to the port that `peer` has in `victim`'s segment.
class Forger {
 public:
  Forger(const Context& victim, const Context& peer) : segment_(Segment::attach(victim.address())) {
    for (std::uint32_t i = 0; i < port_count && port_ == nullptr; ++i) {
      if (segment_.port(i).peer == peer.address()) port_ = &segment_.port(i);
    }
  }
  /// Fields, and bytes of data behind them.
  template <class Fields>
  void put(WireOp op, const Fields& fields, std::size_t bytes) {
    Line* line = &port_->wire.line[next_ % WireRing::lines];
    std::memcpy(line->payload, &fields, sizeof fields);
    std::memset(line->payload + sizeof fields, 0x77, bytes);
    line->header.op = raw(op);
    line->header.length = static_cast<std::uint16_t>(sizeof fields + bytes);
    line->header.lap.store(WireRing::lap_of(next_), std::memory_order_release);
    next_ += lines_for(sizeof fields + bytes);
  }

 private:
  Segment segment_;
  Port* port_ = nullptr;
  std::uint32_t next_ = 0;
};

SendLine send_piece(std::uint32_t flags, std::uint64_t remaining, std::uint32_t length,
                    std::uint32_t qp) {
  SendLine line{};
  line.remaining = remaining;
  line.length = length;
  line.flags = flags;
  line.qp = static_cast<std::uint16_t>(qp & ((1u << qp_index_bits) - 1));
  return line;
}

class HostilePeer : public TwoContexts {
 protected:
  void receive(QueuePair& qp, std::size_t bytes) {
    mr = pd->register_memory(memory.data(), bytes, Access::all);
    qp.post_recv({1, {{mr->addr(), bytes, mr->lkey()}}});
  }
  WorkCompletion completion() {
    WorkCompletion result;
    bool came = false;
    EXPECT_TRUE(pump([&] { return came = came || cq->poll({&result, 1}) == 1; }));
    EXPECT_EQ(result.status, WcStatus::success);
    return result;
  }
  void SetUp() override {
    TwoContexts::SetUp();
    pd = std::make_unique<ProtectionDomain>(*a);
    cq = std::make_unique<CompletionQueue>(*a, 16);
    // Until both have seen each other's port.
    for (int i = 0; i < 64; ++i) {
      a->progress();
      b->progress();
    }
  }
  void TearDown() override {
    mr.reset();
    cq.reset();
    pd.reset();
  }

  std::vector<std::byte> memory = std::vector<std::byte>(4096);
  std::unique_ptr<ProtectionDomain> pd;
  std::unique_ptr<CompletionQueue> cq;
  std::unique_ptr<MemoryRegion> mr;
};

TEST_F(HostilePeer, AKeyToInvalidateThatCameWithTheLastPieceAlone) {
  QueuePair qp(*a, *pd, *cq, *cq);
  qp.connect(b->address(), 2);
  receive(qp, 100);
  Forger forger(*a, *b);
  forger.put(WireOp::send_inline, send_piece(RequestFlags::first, 16, 8, qp.number()), 8);
  for (const std::uint32_t key : {0xffffff01u, mr->lkey()}) {
    SendLine last = send_piece(RequestFlags::last | RequestFlags::invalidate, 8, 8, qp.number());
    last.immediate = key;
    forger.put(WireOp::send_inline, last, 8);
  }
  EXPECT_FALSE(completion().invalidated);
  const std::scoped_lock guard(a->engine().lock());
  EXPECT_NE(a->domain().find(mr->lkey()), nullptr) << "that region is no memory window";
}

TEST_F(HostilePeer, TwoThatMixTheirMessagesToOneUdQp) {
  const auto c = Context::open(options("c"));
  const auto c_to_a = c->connect(a->address());
  for (int i = 0; i < 64; ++i) a->progress();
  QueuePair qp(*a, *pd, *cq, *cq, {}, QpType::ud);
  QpAttributes attributes;
  for (const QpState state : {QpState::init, QpState::rtr, QpState::rts}) {
    qp.modify(state, attributes);
  }
  receive(qp, 140);
  Forger from_b(*a, *b);
  Forger from_c(*a, *c);
  const auto go_on = [&] {
    for (int i = 0; i < 64; ++i) a->progress();
  };
  from_b.put(WireOp::send_inline, send_piece(RequestFlags::first, 100, 50, qp.number()), 50);
  go_on();
  from_c.put(WireOp::send_inline, send_piece(RequestFlags::first, 100, 90, qp.number()), 90);
  go_on();
  from_b.put(WireOp::send_inline, send_piece(RequestFlags::last, 50, 50, qp.number()), 50);
  go_on();
  EXPECT_TRUE(std::all_of(memory.begin() + 140, memory.end(), [](std::byte byte) {
    return byte == std::byte{0};
  })) << "bytes behind the receive's 140 were written";
}

TEST_F(HostilePeer, TheNumberOfPortsInUse) {
  Segment segment = Segment::attach(a->address());
  segment.header().ports_used.store(0xffffffff);
  segment.header().port_changes.fetch_add(1);
  for (int i = 0; i < 600; ++i) a->progress();
  const auto c = Context::open(options("c"));
  const auto c_to_a = c->connect(a->address());
  std::vector<std::byte> bytes(100);
  const std::uint32_t key = share(*a, bytes);
  Outcome outcome;
  while (!c_to_a->write_short(&outcome, "weft", 4,
                              {reinterpret_cast<std::uint64_t>(bytes.data()), key})) {
  }
  for (int i = 0; i < 1'000'000 && !outcome.finished; ++i) {
    a->progress();
    c->progress();
  }
  EXPECT_EQ(outcome.how, WcStatus::success);
}

TEST_F(HostilePeer, ASecondPortForTheSamePeer) {
  Segment of_a = Segment::attach(a->address());
  Segment of_b = Segment::attach(b->address());
  Port& second = of_a.port(20);
  second.owner.store(1);
  second.peer = b->address();
  second.state.store(Port::open);
  of_a.header().ports_used.store(21);
  of_a.header().port_changes.fetch_add(1);
  for (int i = 0; i < 200; ++i) {
    a->progress();
    b->progress();
  }
  EXPECT_EQ(second.state.load(), Port::vacant) << "given back";
  EXPECT_EQ(of_b.header().ports_used.load(), 1u) << "and not answered";
}

TEST_F(HostilePeer, ADamagedDeviceFile) {
  auto dm = std::make_unique<DeviceMemory>(*a, 1000);
  const std::string path = DeviceFile::path_of(options().device);
  const int fd = ::open(path.c_str(), O_RDWR | O_CLOEXEC);
  struct stat info {};
  ASSERT_EQ(::fstat(fd, &info), 0);
  const auto size = static_cast<std::size_t>(info.st_size);
  void* const base = ::mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
  ASSERT_NE(base, MAP_FAILED);
  ::close(fd);
  std::memset(static_cast<std::byte*>(base) + 64, 0xee, size - 64);
  EXPECT_TRUE(DeviceFile::inspect(options().device).has_value());
  dm.reset();
  EXPECT_NO_THROW(DeviceMemory(*a, 64)) << "the owner that is named is dead";
  for (std::uint32_t entry = 0; entry < directory_entries; ++entry) {
    EXPECT_FALSE(a->device().address_of(entry).has_value());
  }
  ::munmap(base, size);
}

// The mark says whether a bell has to be rung: without it, nobody woke the helper when it was to
// end.
TEST_F(HostilePeer, AHelperThatIsMarkedAwakeAsleep) {
  auto lone = Context::open(options("lone"));
  lone->event_fd();
  Segment forged = Segment::attach(lone->address());
  std::atomic<std::uint32_t>& asleep = forged.header().helper_asleep;
  for (int i = 0; i < 10'000 && asleep.load() == 0; ++i) {
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  ASSERT_EQ(asleep.load(), 1u);
  asleep.store(0);
  lone.reset();
}

}  // namespace
}  // namespace weft::test
