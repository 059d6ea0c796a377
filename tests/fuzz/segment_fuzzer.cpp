// Fuzz target: a peer that writes what it likes into the shared memory that this process reads, and
// sends lines that no peer of ours would. The victim is one context with regions, QPs and
// operations under way; the peer is played by the test: a true context of its own, so that the
// victim finds somebody to connect to, and wild writes to both segments and to the device file.
// Whatever comes, the victim does not crash, touches no byte outside of its regions (they have
// exactly their size, and the sanitizer guards the ends), and its calls return.
#include <fcntl.h>
#include <fuzzer/FuzzedDataProvider.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <list>
#include <memory>
#include <string>
#include <vector>

#include "hca/emu/completion_queue.hpp"
#include "hca/emu/context.hpp"
#include "hca/emu/device_memory.hpp"
#include "hca/emu/process_id.hpp"
#include "hca/emu/protection_domain.hpp"
#include "hca/emu/queue_pair.hpp"
#include "hca/status.hpp"

namespace {

using namespace weft::hca;
using namespace weft::hca::emu;

#define REQUIRE(condition)                                                           \
  do {                                                                               \
    if (!(condition)) {                                                              \
      std::fprintf(stderr, "%s:%d: not true: %s\n", __FILE__, __LINE__, #condition); \
      std::abort();                                                                  \
    }                                                                                \
  } while (false)

constexpr std::size_t region_bytes = 80'000;
constexpr std::byte read_only_content{0x5a};

std::string device_name() {
  return "fuzz" + std::to_string(::getpid());
}

std::unique_ptr<Context> open_context(const char* purpose) {
  ContextOptions options;
  options.device = device_name();
  options.purpose = purpose;
  auto context = Context::open(options);
  // What UCX gets is looked at to its last byte.
  context->set_am_handler(
      [](void*, std::uint8_t, std::byte* data, std::size_t length) {
        volatile unsigned sum = 0;
        for (std::size_t i = 0; i < length; ++i) sum = sum + static_cast<unsigned>(data[i]);
      },
      nullptr);
  return context;
}

/// One operation of the victim's; it lives to the end of the run.
struct Posted : Operation {
  explicit Posted(std::size_t bytes) : memory(bytes) {
    done = [](Operation* self, WcStatus) {
      auto* posted = static_cast<Posted*>(self);
      REQUIRE(!posted->finished);  // completed once
      posted->finished = true;
    };
  }
  std::vector<std::byte> memory;  ///< its local side
  LayoutPtr layout{};
  bool finished = false;
};

/// The whole of the device file, as any process of this user can map it.
class DeviceFileBytes {
 public:
  DeviceFileBytes() {
    const int fd = ::open(DeviceFile::path_of(device_name()).c_str(), O_RDWR | O_CLOEXEC);
    struct stat info {};
    REQUIRE(fd >= 0 && ::fstat(fd, &info) == 0);
    size_ = static_cast<std::size_t>(info.st_size);
    base_ = ::mmap(nullptr, size_, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    REQUIRE(base_ != MAP_FAILED);
    ::close(fd);
  }
  ~DeviceFileBytes() { ::munmap(base_, size_); }
  DeviceFileBytes(const DeviceFileBytes&) = delete;
  DeviceFileBytes& operator=(const DeviceFileBytes&) = delete;
  [[nodiscard]] std::span<std::byte> bytes() const {
    return {static_cast<std::byte*>(base_), size_};
  }

 private:
  std::size_t size_ = 0;
  void* base_ = nullptr;
};

class Run {
 public:
  explicit Run(FuzzedDataProvider& input) : input_(input) {
    keys_.push_back(add(open_.data(), open_.size(), nullptr, Access::all));
    keys_.push_back(add(read_only_.data(), read_only_.size(), nullptr, Access::remote_read));
    const std::array<Dimension, 1> column{Dimension{1000, 24}};
    keys_.push_back(add(strided_.data(), 8000, Layout::strided(0, 8, column), Access::all));
    victim_qp_.connect(peer_->address(), peer_qp_.number());
    peer_qp_.connect(victim_->address(), victim_qp_.number());
    for (std::uint64_t i = 0; i < 4; ++i) {
      victim_qp_.post_recv({i, {{victim_mr_->addr() + i * 5000, 5000, victim_mr_->lkey()}}});
    }
    link_ = victim_->connect(peer_->address());
    back_ = peer_->connect(victim_->address());
    progress(20);
  }

  void go() {
    for (int steps = 0; steps < 200 && input_.remaining_bytes() != 0; ++steps) step();
    progress(300);
    REQUIRE(read_only_ == std::vector<std::byte>(region_bytes, read_only_content));
  }

 private:
  std::uint32_t add(std::byte* base, std::uint64_t length, LayoutPtr layout, Access access) {
    const std::uint64_t addr = layout ? 0 : reinterpret_cast<std::uint64_t>(base);
    return victim_->register_region({addr, length, base, std::move(layout), access});
  }

  void progress(int times) {
    for (int i = 0; i < times; ++i) {
      victim_->progress();
      peer_->progress();
    }
    std::array<WorkCompletion, 64> completions;
    try {
      victim_cq_.poll(completions);
      peer_cq_.poll(completions);
    } catch (const Error&) {  // the queue was full: said so
    }
  }

  // ---- numbers that hurt -----------------------------------------------------------------------

  template <class Value>
  Value any() {
    return input_.ConsumeIntegral<Value>();
  }
  std::uint64_t length() {
    static constexpr std::uint64_t some[] = {
        0,     1,     8,     64,    471,   512,   513,       4096,       16384,
        16448, 16449, 65600, 65601, 80000, 80001, INT32_MAX, UINT32_MAX, UINT64_MAX};
    return input_.ConsumeBool()
               ? some[input_.ConsumeIntegralInRange<std::size_t>(0, std::size(some) - 1)]
               : input_.ConsumeIntegralInRange<std::uint64_t>(0, 70000);
  }
  std::uint32_t key() {
    const auto choice = input_.ConsumeIntegralInRange<std::size_t>(0, keys_.size() + 1);
    if (choice < keys_.size()) return keys_[choice];
    return choice == keys_.size() ? victim_mr_->rkey() : any<std::uint32_t>();
  }
  std::uint64_t addr() {
    const std::uint64_t starts[] = {reinterpret_cast<std::uint64_t>(open_.data()),
                                    reinterpret_cast<std::uint64_t>(read_only_.data()), 0,
                                    victim_mr_->addr()};
    switch (input_.ConsumeIntegralInRange(0, 5)) {
      case 0:
        return any<std::uint64_t>();
      case 1:
        return starts[input_.ConsumeIntegralInRange<std::size_t>(0, 3)] - 1;
      default:
        return starts[input_.ConsumeIntegralInRange<std::size_t>(0, 3)] + length();
    }
  }
  std::uint32_t operation() {
    if (posted_.empty() || input_.ConsumeIntegralInRange(0, 3) == 0) return any<std::uint32_t>();
    auto at = posted_.begin();
    std::advance(at, input_.ConsumeIntegralInRange<std::size_t>(0, posted_.size() - 1));
    return at->id;
  }
  std::uint16_t qp() {
    switch (input_.ConsumeIntegralInRange(0, 3)) {
      case 0:
        return 0;
      case 1:
        return any<std::uint16_t>();
      default:
        return static_cast<std::uint16_t>(victim_qp_.number() & ((1u << qp_index_bits) - 1));
    }
  }
  std::uint32_t flags() {
    const std::uint32_t psn = input_.ConsumeBool() ? next_psn_++ : any<std::uint32_t>();
    return (psn << RequestFlags::psn_shift) | any<std::uint8_t>();
  }

  // ---- what the peer does ----------------------------------------------------------------------

  [[nodiscard]] std::span<std::byte> segment_bytes(const Segment& segment) const {
    return {reinterpret_cast<std::byte*>(&segment.header()), segment_size_};
  }

  /// The port by which the true peer writes to the victim.
  Port& port() {
    for (std::uint32_t i = 0; i < 8; ++i) {
      if (victim_segment_.port(i).peer == peer_->address()) return victim_segment_.port(i);
    }
    return victim_segment_.port(0);
  }

  /// Puts fields into a line, at a place where the victim looks for the next.
  template <class Ring, class Fields>
  void forge(Ring& ring, std::uint8_t op, const Fields& fields, std::size_t bytes) {
    // Where the reader is, it tells now and then; the true position is found by trying from there.
    const std::uint32_t shown = ring.head.load();
    const std::uint32_t index =
        shown + input_.ConsumeIntegralInRange<std::uint32_t>(0, Ring::lines);
    Line& line = ring.line[index & (Ring::lines - 1)];
    std::memcpy(line.payload, &fields, sizeof fields);
    line.header.op = op;
    line.header.id = 1;
    line.header.length = static_cast<std::uint16_t>(bytes);
    line.header.lap.store(Ring::lap_of(index));
    // All from the reader's position up to here are lines of some sort.
    for (std::uint32_t i = shown; i != index; ++i) {
      ring.line[i & (Ring::lines - 1)].header.lap.store(Ring::lap_of(i));
    }
  }

  void forge_wire_line() {
    const auto op = static_cast<WireOp>(input_.ConsumeIntegralInRange(0, 13));
    const std::size_t bytes = input_.ConsumeBool() ? length() : 600;
    const auto slot = static_cast<std::uint16_t>(input_.ConsumeIntegralInRange(0, 60));
    const auto piece = static_cast<std::uint32_t>(length());
    WireRing& ring = port().wire;
    switch (op) {
      case WireOp::write_inline:
      case WireOp::write_data:
        return forge(ring, raw(op),
                     WriteLine{addr(), input_.ConsumeBool() ? piece : length(), operation(), key(),
                               piece, key(), flags(), slot, qp()},
                     bytes);
      case WireOp::send_inline:
      case WireOp::send_data:
        return forge(ring, raw(op),
                     SendLine{input_.ConsumeBool() ? piece : length(), operation(), piece, key(),
                              flags(), any<std::uint8_t>(), any<std::uint8_t>(), slot, qp()},
                     bytes);
      case WireOp::read_request:
        return forge(
            ring, raw(op),
            ReadLine{addr(), length(), operation(), key(), flags(), qp(), any<std::uint8_t>()},
            bytes);
      case WireOp::atomic:
        return forge(ring, raw(op),
                     AtomicLine{addr(), any<std::uint8_t>(), any<std::uint8_t>(), operation(),
                                key(), flags(), qp(), any<std::uint8_t>(),
                                input_.ConsumeBool() ? std::uint8_t{8} : any<std::uint8_t>()},
                     bytes);
      case WireOp::ack:
        return forge(ring, raw(op), AckLine{operation(), any<std::uint8_t>(), any<std::uint8_t>()},
                     bytes);
      case WireOp::ack_count:
        return forge(ring, raw(op), AckCountLine{any<std::uint32_t>()}, bytes);
      case WireOp::read_inline:
        return forge(ring, raw(op), AnswerLine{operation(), piece}, bytes);
      case WireOp::read_data:
        return forge(ring, raw(op), DataLine{operation(), slot, piece}, bytes);
      case WireOp::atomic_answer:
        return forge(ring, raw(op), AtomicAnswerLine{any<std::uint64_t>(), operation()}, bytes);
      default:
        return forge(ring, input_.ConsumeIntegral<std::uint8_t>(), std::uint64_t{0}, bytes);
    }
  }

  void forge_message() {
    const auto op = input_.ConsumeIntegralInRange<std::uint8_t>(0, 4);
    const BulkLine bulk{input_.ConsumeIntegralInRange<std::uint32_t>(0, 60),
                        static_cast<std::uint32_t>(length())};
    forge(port().messages, op, bulk, input_.ConsumeBool() ? length() : sizeof bulk);
  }

  /// Changes some bytes; `near` of the places where much is looked at.
  void scribble(std::span<std::byte> bytes, std::size_t near) {
    std::size_t at = input_.ConsumeIntegralInRange<std::size_t>(0, 400);
    at = input_.ConsumeBool() ? near + at
                              : input_.ConsumeIntegralInRange<std::size_t>(0, bytes.size() - 1);
    const std::vector<std::uint8_t> what =
        input_.ConsumeBytes<std::uint8_t>(input_.ConsumeIntegralInRange<std::size_t>(1, 64));
    for (std::size_t i = 0; i < what.size() && at + i < bytes.size(); ++i) {
      bytes[at + i] = static_cast<std::byte>(what[i]);
    }
  }

  void scribble_segment(const Segment& segment) {
    const auto bytes = segment_bytes(segment);
    const auto offset_of = [&](const void* at) {
      return static_cast<std::size_t>(static_cast<const std::byte*>(at) - bytes.data());
    };
    Port& first = segment.port(input_.ConsumeIntegralInRange<std::uint32_t>(0, 3));
    const std::size_t places[] = {
        0, offset_of(&first), offset_of(&first.messages), offset_of(&first.wire),
        offset_of(&segment.slot(input_.ConsumeIntegralInRange<std::uint32_t>(0, slot_count - 1))) -
            64};
    scribble(bytes, places[input_.ConsumeIntegralInRange<std::size_t>(0, std::size(places) - 1)]);
  }

  void take_a_port() {
    const std::uint32_t index = input_.ConsumeIntegralInRange<std::uint32_t>(0, 5);
    Port& taken = victim_segment_.port(index);
    taken.owner.store(any<std::uint64_t>());
    Address who = peer_->address();
    if (input_.ConsumeBool()) who.pid = any<std::uint32_t>();
    if (input_.ConsumeBool()) who.fd = any<std::uint8_t>();
    if (input_.ConsumeBool()) who = victim_->address();
    taken.peer = who;
    taken.state.store(any<std::uint8_t>() % 4);
    SegmentHeader& header = victim_segment_.header();
    if (header.ports_used.load() <= index) header.ports_used.store(index + 1);
    header.port_changes.fetch_add(1);
  }

  // ---- what the victim does --------------------------------------------------------------------

  void post() {
    if (posted_.size() >= 64) return;
    const auto bytes = static_cast<std::size_t>(length() % 70000);
    Posted& op = posted_.emplace_back(bytes);
    LocalMemory local{op.memory.data(), nullptr, 0};
    if (bytes >= 16 && input_.ConsumeBool()) {
      const std::array<Dimension, 1> dims{Dimension{bytes / 16, 16}};
      op.layout = Layout::strided(0, 8, dims);
      local = {op.memory.data(), op.layout.get(), 0};
    }
    const std::uint64_t size = op.layout ? op.layout->size() : bytes;
    const RemoteMemory remote{any<std::uint64_t>(), any<std::uint32_t>()};
    switch (input_.ConsumeIntegralInRange(0, 3)) {
      case 0:
        link_->write(&op, local, remote, size);
        break;
      case 1:
        link_->atomic(&op, AtomicOp::fetch_add, 8, remote, 1, 0);
        break;
      case 2:
        link_->write_short(input_.ConsumeBool() ? &op : nullptr, op.memory.data(),
                           static_cast<std::uint32_t>(std::min<std::size_t>(bytes, 512)), remote);
        break;
      default:
        link_->read(&op, local, remote, size);
    }
  }

  void send_messages() {
    static const std::array<std::byte, 1024> data{};
    const auto n = static_cast<std::uint32_t>(input_.ConsumeIntegralInRange(0, 1000));
    if (input_.ConsumeBool()) {
      link_->am_short(1, 2, data.data(), n);
    } else if (std::byte* room = link_->am_reserve(WireLimits::max_bcopy)) {
      const std::size_t size = length() % (WireLimits::max_bcopy + 1);
      std::memset(room, 1, size);
      link_->am_commit(1, size);
    }
  }

  void post_to_qp() {
    static constexpr WrOpcode opcodes[] = {WrOpcode::send, WrOpcode::rdma_write,
                                           WrOpcode::rdma_read, WrOpcode::atomic_fetch_and_add};
    SendWr wr;
    wr.opcode = opcodes[input_.ConsumeIntegralInRange<std::size_t>(0, 3)];
    const std::uint64_t n = wr.opcode == WrOpcode::atomic_fetch_and_add ? 8 : length() % 50000;
    wr.sg_list = {{victim_mr_->addr() + 1024, n, victim_mr_->lkey()}};
    wr.remote = {any<std::uint64_t>(), any<std::uint32_t>()};
    try {
      victim_qp_.post_send(wr);
      victim_qp_.post_recv({9, {{victim_mr_->addr(), 5000, victim_mr_->lkey()}}});
      if (input_.ConsumeBool()) {  // a true peer sends
        peer_qp_.post_recv({9, {{peer_mr_->addr(), 60000, peer_mr_->lkey()}}});
        SendWr answer;
        answer.sg_list = {{peer_mr_->addr(), length() % 9000, peer_mr_->lkey()}};
        peer_qp_.post_send(answer);
      }
    } catch (const Error&) {  // full, or in the error state
    }
  }

  void change_keys() {
    const std::uint32_t old = keys_[0];
    victim_->deregister(old);
    keys_[0] = add(open_.data(), open_.size(), nullptr, Access::all);
  }

  void use_device() {
    DeviceFile& device = victim_->device();
    try {
      switch (input_.ConsumeIntegralInRange(0, 5)) {
        case 0:
          REQUIRE(device.free_bytes() <= device.memory().size());
          if (const auto snapshot = DeviceFile::inspect(device_name())) {
            REQUIRE(snapshot->dm_used + snapshot->dm_left <= snapshot->dm_bytes);
          }
          break;
        case 1:
          (void)device.address_of(any<std::uint16_t>());
          break;
        case 2: {
          const DmShare share{any<std::uint16_t>(), length(), any<std::uint64_t>()};
          device.attach(share);
          device.detach(share);
          break;
        }
        case 3:
          device.free(any<std::uint16_t>(), length());
          break;
        case 4:
          device.free_shared({any<std::uint16_t>() * dm_unit, length(), any<std::uint64_t>()});
          break;
        default: {
          const std::size_t bytes = input_.ConsumeIntegralInRange<std::size_t>(0, 300'000);
          DeviceMemory memory(*victim_, bytes);
          std::vector<std::byte> copy(bytes, std::byte{1});
          memory.copy_to(0, copy);
          memory.copy_from(0, copy);
        }
      }
    } catch (const Error&) {  // said so
    }
  }

  void connect_elsewhere() {
    Address who = peer_->address();
    if (input_.ConsumeBool()) who.fd = any<std::uint8_t>();
    if (input_.ConsumeBool()) who.segment_id = any<std::uint64_t>();
    try {
      (void)victim_->connect(who);
    } catch (const Error&) {  // nobody there
    }
  }

  void step() {
    switch (input_.ConsumeIntegralInRange(0, 15)) {
      case 0:
      case 1:
      case 2:
        return forge_wire_line();
      case 3:
        return forge_message();
      case 4:
        return scribble_segment(victim_segment_);
      case 5:
        return scribble_segment(peer_segment_);
      case 6:
        return scribble(device_.bytes(), 0);
      case 7:
      case 8:
        return post();
      case 9:
        return send_messages();
      case 10:
        return post_to_qp();
      case 11:
        return input_.ConsumeBool() ? change_keys() : connect_elsewhere();
      case 12:
        return use_device();
      case 13:
        return take_a_port();
      default:
        progress(input_.ConsumeIntegralInRange(1, 40));
    }
  }

  FuzzedDataProvider& input_;
  // Declared before what uses them: operations and memory outlive the contexts.
  std::list<Posted> posted_;
  std::vector<std::byte> open_ = std::vector<std::byte>(region_bytes);
  std::vector<std::byte> read_only_ = std::vector<std::byte>(region_bytes, read_only_content);
  std::vector<std::byte> strided_ = std::vector<std::byte>(999 * 24 + 8);
  std::vector<std::byte> victim_memory_ = std::vector<std::byte>(60'000);
  std::vector<std::byte> peer_memory_ = std::vector<std::byte>(60'000);
  std::unique_ptr<Context> victim_ = open_context("victim");
  std::unique_ptr<Context> peer_ = open_context("peer");
  ProtectionDomain victim_pd_{*victim_};
  ProtectionDomain peer_pd_{*peer_};
  CompletionQueue victim_cq_{*victim_, 64};
  CompletionQueue peer_cq_{*peer_, 64};
  std::unique_ptr<MemoryRegion> victim_mr_ =
      victim_pd_.register_memory(victim_memory_.data(), victim_memory_.size(), Access::all);
  std::unique_ptr<MemoryRegion> peer_mr_ =
      peer_pd_.register_memory(peer_memory_.data(), peer_memory_.size(), Access::all);
  QueuePair victim_qp_{*victim_, victim_pd_, victim_cq_, victim_cq_};
  QueuePair peer_qp_{*peer_, peer_pd_, peer_cq_, peer_cq_};
  Segment victim_segment_ = Segment::attach(victim_->address());
  Segment peer_segment_ = Segment::attach(peer_->address());
  const std::size_t segment_size_ = victim_segment_.header().bytes;
  DeviceFileBytes device_;
  std::shared_ptr<Link> link_;
  std::shared_ptr<Link> back_;
  std::vector<std::uint32_t> keys_;
  std::uint32_t next_psn_ = 0;
};

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  FuzzedDataProvider input(data, size);
  // The file that the last run has damaged is none of this one's.
  ::unlink(DeviceFile::path_of(device_name()).c_str());
  {
    Run run(input);
    run.go();
  }
  ::unlink(DeviceFile::path_of(device_name()).c_str());
  return 0;
}
