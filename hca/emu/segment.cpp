#include "hca/emu/segment.hpp"

#include <sys/mman.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <new>
#include <string>
#include <utility>

#include "hca/emu/process_id.hpp"
#include "hca/emu/shared_file.hpp"
#include "hca/status.hpp"

namespace weft::hca::emu {

namespace {

constexpr std::size_t page = 4096;
constexpr std::size_t round_up(std::size_t bytes) {
  return (bytes + page - 1) / page * page;
}

constexpr std::size_t ports_at = round_up(sizeof(SegmentHeader));
constexpr std::size_t slots_at = round_up(ports_at + sizeof(Port) * port_count);
constexpr std::size_t segment_bytes = round_up(slots_at + slot_offset(slot_count));

/// MAP_FAILED when it cannot be. Huge pages, where the machine gives them to all shared memory,
/// would bring 2 MiB with the first touch: see segment_memory().
void* map(int fd) noexcept {
  void* base = ::mmap(nullptr, segment_bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
  if (base != MAP_FAILED) ::madvise(base, segment_bytes, MADV_NOHUGEPAGE);
  return base;
}

[[noreturn]] void fail(int code, const std::string& what) {
  throw Error(code, what + ": " + std::strerror(code));
}

}  // namespace

Segment::~Segment() {
  if (header_ != nullptr) ::munmap(header_, segment_bytes);
  if (fd_ >= 0) ::close(fd_);
}

Segment::Segment(Segment&& other) noexcept {
  *this = std::move(other);
}

Segment& Segment::operator=(Segment&& other) noexcept {
  std::swap(header_, other.header_);
  std::swap(ports_, other.ports_);
  std::swap(slots_, other.slots_);
  std::swap(fd_, other.fd_);
  return *this;
}

void Segment::place(void* base, int fd) noexcept {
  auto* bytes = static_cast<std::byte*>(base);
  header_ = reinterpret_cast<SegmentHeader*>(bytes);
  ports_ = reinterpret_cast<Port*>(bytes + ports_at);
  slots_ = bytes + slots_at;
  fd_ = fd;
}

Segment Segment::create(std::string_view device) {
  const int fd = create_shared_file("weft", segment_bytes);
  if (fd < 0) {
    fail(errno, "cannot create the context's shared segment of " + std::to_string(segment_bytes) +
                    " bytes");
  }
  void* base = map(fd);
  if (base == MAP_FAILED) {
    const int code = errno;
    ::close(fd);
    fail(code, "cannot map the context's shared segment");
  }
  Segment segment;
  segment.place(base, fd);
  const ProcessId self = this_process();
  SegmentHeader& header = segment.header();
  header.self = {host_id(device),
                 random_id(),
                 self.start_time,
                 self.pid,
                 static_cast<std::uint32_t>(fd),
                 static_cast<std::uint32_t>(::getuid()),
                 segment_abi};
  header.abi = segment_abi;
  header.ports = port_count;
  header.slots = slot_count;
  header.bytes = segment_bytes;
  header.helper_asleep.store(0, std::memory_order_relaxed);
  header.magic = segment_magic;
  return segment;
}

Segment Segment::attach(const Address& peer) {
  const std::string who = "process " + std::to_string(peer.pid);
  const int fd = open_shared_file(peer.pid, peer.fd, segment_bytes);
  if (fd < 0 && errno == EPROTO) {
    fail(EPROTO, "descriptor " + std::to_string(peer.fd) + " of " + who + " is no weft segment");
  }
  if (fd < 0) fail(errno, "cannot open the segment of " + who);
  void* base = map(fd);
  const int code = errno;
  ::close(fd);
  if (base == MAP_FAILED) fail(code, "cannot map the segment of " + who);
  Segment segment;
  segment.place(base, -1);
  const SegmentHeader& header = segment.header();
  if (header.magic != segment_magic || header.abi != segment_abi || header.ports != port_count ||
      header.slots != slot_count || header.bytes != segment_bytes || !(header.self == peer)) {
    fail(EPROTO, "the segment of " + who + " is of another version or another process");
  }
  return segment;
}

}  // namespace weft::hca::emu
