// The shared segment of a context: a memfd with the rings that peers write to and the bulk slots
// that this process fills for them. Peers map it through /proc/PID/fd/FD; it is gone with its
// process and those that mapped it.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

#include "hca/emu/address.hpp"
#include "hca/emu/ring.hpp"

namespace weft::hca::emu {

constexpr std::uint32_t segment_abi = 5;
constexpr std::uint64_t segment_magic = 0x3167657374666577;  // "weftseg1"

/// Peers that can be connected to one context at a time.
constexpr std::uint32_t port_count = 512;

/// Bulk slots, a header and data each. Those of active messages and those of RDMA are kept apart,
/// so that the two threads that may fill them never meet. Large ones carry the pieces of long
/// transfers: the signal for a piece takes as long as the copy of some KiB. Each has room for a
/// protocol's header beside its power of two, which also makes the strides no multiples of 4 KiB:
/// else the slots' lines would meet in the same cache sets.
struct SlotClass {
  std::uint32_t first;
  std::uint32_t count;
  std::size_t data;
};
constexpr SlotClass message_slots{0, 32, 16 * 1024 + 64};
constexpr SlotClass small_wire_slots{32, 16, 16 * 1024 + 64};
constexpr SlotClass large_wire_slots{48, 8, 64 * 1024 + 64};
constexpr std::uint32_t slot_count = large_wire_slots.first + large_wire_slots.count;

struct Slot {
  /// 1 from the moment the owner fills it until the peer has read it.
  alignas(line_bytes) std::atomic<std::uint32_t> busy;

  [[nodiscard]] std::byte* data() noexcept {
    return reinterpret_cast<std::byte*>(this) + sizeof(Slot);
  }
};
static_assert(sizeof(Slot) == line_bytes);

constexpr std::size_t small_stride = sizeof(Slot) + small_wire_slots.data;
constexpr std::size_t large_stride = sizeof(Slot) + large_wire_slots.data;
static_assert(message_slots.data == small_wire_slots.data);

/// Where slot `index` begins in the slots' part of the segment.
constexpr std::size_t slot_offset(std::uint32_t index) noexcept {
  return index < large_wire_slots.first ? index * small_stride
                                        : large_wire_slots.first * small_stride +
                                              (index - large_wire_slots.first) * large_stride;
}

using MessageRing = Ring<256>;  ///< active messages
using WireRing = Ring<128>;     ///< RDMA, atomics and the QPs' sends, and their answers

/// Two rings written by one peer, read by the segment's owner.
struct Port {
  enum State : std::uint32_t { vacant = 0, open = 1, closed = 2 };

  /// ProcessId::tag() of the peer; 0 while nobody has it. Taken by compare-and-swap.
  alignas(line_bytes) std::atomic<std::uint64_t> owner;
  std::atomic<std::uint32_t> state;
  Address peer;  ///< written before `state` becomes open

  /// Set by the reader while it does not poll this port: ring the doorbell bit after posting.
  alignas(line_bytes) std::atomic<std::uint32_t> cold;

  MessageRing messages;
  WireRing wire;
};

struct SegmentHeader {
  std::uint64_t magic;
  std::uint32_t abi;
  std::uint32_t ports;
  std::uint32_t slots;
  std::uint32_t reserved;
  std::uint64_t bytes;
  Address self;

  /// Counts the owner's calls of progress: a peer that waits sees whether anybody attends.
  alignas(line_bytes) std::atomic<std::uint64_t> attended;

  /// Futex word on which the helper thread sleeps.
  alignas(line_bytes) std::atomic<std::uint32_t> bell;
  std::atomic<std::uint32_t> helper_asleep;
  /// Set while the owner sleeps on its event descriptor: whoever posts rings the bell.
  alignas(line_bytes) std::atomic<std::uint32_t> armed;
  /// The core on which the owner last waited for its turn, from 1; 0: it does not wait like that.
  std::atomic<std::uint32_t> waits_on;

  /// How many ports were opened or closed, so that the owner looks only when there is something.
  alignas(line_bytes) std::atomic<std::uint32_t> port_changes;
  /// One more than the highest port that was ever taken: the rest is not looked at, and so has no
  /// memory. Raised by whoever takes a port.
  std::atomic<std::uint32_t> ports_used;
  /// A bit per port with something new on a cold ring.
  std::atomic<std::uint64_t> bells[port_count / 64];
};

/// Most memory that a segment takes, in bytes, once its owner is connected with `peers` others and
/// all have used all there is: pages get memory when they are touched. Fixed: the header; each
/// peer: a port; each slot in use: its stride.
constexpr std::size_t segment_memory(std::size_t peers) noexcept {
  constexpr std::size_t page = 4096;
  const auto pages = [](std::size_t bytes) { return (bytes + page - 1) / page * page; };
  return pages(sizeof(SegmentHeader)) + pages(peers * sizeof(Port)) +
         pages(slot_offset(slot_count));
}
static_assert(64 * segment_memory(64) <= 256 * 1024 * 1024,
              "64 processes, each connected with all and with itself");

/// A mapping of a segment, one's own or a peer's.
class Segment {
 public:
  Segment() = default;
  ~Segment();
  Segment(Segment&& other) noexcept;
  Segment& operator=(Segment&& other) noexcept;

  /// Creates the calling process's own. Throws hca::Error (ENOSPC, EMFILE...).
  static Segment create(std::string_view device);
  /// Maps a peer's after checking that it is what the address says. Throws hca::Error EHOSTUNREACH
  /// (process gone), EPROTO (another structure), EACCES.
  static Segment attach(const Address& peer);

  [[nodiscard]] SegmentHeader& header() const noexcept { return *header_; }
  [[nodiscard]] Port& port(std::uint32_t index) const noexcept { return ports_[index]; }
  [[nodiscard]] Slot& slot(std::uint32_t index) const noexcept {
    return *reinterpret_cast<Slot*>(slots_ + slot_offset(index));
  }
  /// All ports, in whole pages.
  [[nodiscard]] std::span<std::byte> rings() const noexcept {
    auto* begin = reinterpret_cast<std::byte*>(ports_);
    return {begin, slots_};
  }
  [[nodiscard]] bool mapped() const noexcept { return header_ != nullptr; }

 private:
  void place(void* base, int fd) noexcept;

  SegmentHeader* header_ = nullptr;
  Port* ports_ = nullptr;
  std::byte* slots_ = nullptr;
  int fd_ = -1;  ///< own segment only; a peer's is closed after mapping
};

}  // namespace weft::hca::emu
