#include "hca/emu/device_file.hpp"

#include <fcntl.h>
#include <sched.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <map>

#include "hca/emu/process_id.hpp"
#include "hca/status.hpp"

namespace weft::hca::emu {

namespace {

constexpr std::uint64_t device_magic = 0x3176656474666577;  // "weftdev1"
constexpr std::uint32_t device_abi = 1;
constexpr std::size_t max_units = max_dm_bytes / dm_unit;

/// A unit's owner word: the process's tag, with the purpose where the start time's top byte was.
constexpr std::uint64_t purpose_shift = 24;
constexpr std::uint64_t purpose_mask = std::uint64_t{0xff} << purpose_shift;

std::uint64_t unit_tag(std::uint64_t tag, DmPurpose purpose) noexcept {
  return (tag & ~purpose_mask) |
         (std::uint64_t{static_cast<std::uint8_t>(purpose)} << purpose_shift);
}

/// Where the locks of device memory lie in the file: behind everything that is in it.
constexpr off_t locks_at = off_t{1} << 40;

DmPurpose purpose_of(std::uint64_t unit) noexcept {
  return static_cast<DmPurpose>((unit & purpose_mask) >> purpose_shift);
}

constexpr std::size_t units_of(std::size_t bytes) noexcept {
  return bytes / dm_unit + (bytes % dm_unit != 0 ? 1 : 0);
}

std::string piece_of_memory(std::size_t offset, std::size_t bytes) {
  return "device memory at " + std::to_string(offset) + " of " + std::to_string(bytes) + " bytes";
}

bool owner_alive(std::uint64_t unit) noexcept {
  const auto pid = static_cast<std::uint32_t>(unit >> 32);
  const std::uint64_t start = start_time_of(pid);
  return start != 0 && (start & 0xffffff) == (unit & 0xffffff);
}

[[noreturn]] void fail(int code, const std::string& what) {
  throw Error(code, what);
}

}  // namespace

struct DeviceFile::Shared {
  struct Entry {
    std::atomic<std::uint64_t> tag;  ///< 0: free
    Address address;
    char purpose[16];
  };

  std::uint64_t magic;
  std::uint32_t abi;
  std::uint32_t reserved;
  std::uint64_t bytes;
  std::uint64_t dm_bytes;
  Entry directory[directory_entries];
  std::atomic<std::uint64_t> unit[max_units];
  alignas(4096) std::byte memory[];
};

namespace {
constexpr std::size_t file_limit = 1024 * 1024;
}

std::string device_from(const char* variable) {
  const char* name = std::getenv(variable);
  return name != nullptr && *name != '\0' ? name : default_device;
}

const char* to_string(DmPurpose purpose) noexcept {
  switch (purpose) {
    case DmPurpose::user:
      return "user";
    case DmPurpose::counter:
      return "counter";
    case DmPurpose::collective:
      return "collective";
  }
  return "unknown";
}

std::string DeviceFile::path_of(const std::string& device) {
  return "/dev/shm/weft-" + std::to_string(::geteuid()) + "-" + device;
}

std::size_t DeviceFile::wanted_dm_bytes() {
  const char* text = std::getenv("WEFT_DM_SIZE");
  if (text == nullptr) return default_dm_bytes;
  char* end = nullptr;
  const unsigned long long value = std::strtoull(text, &end, 10);
  if (*text == '\0' || *end != '\0' || value == 0 || value > max_dm_bytes || value % dm_unit != 0) {
    fail(EINVAL, std::string("WEFT_DM_SIZE=") + text + " is no multiple of " +
                     std::to_string(dm_unit) + " from " + std::to_string(dm_unit) + " to " +
                     std::to_string(max_dm_bytes));
  }
  return value;
}

DeviceFile::DeviceFile(const std::string& device)
    : path_(path_of(device)), tag_(this_process().tag()) {
  static_assert(sizeof(Shared) + max_dm_bytes <= file_limit);
  const bool plain = !device.empty() && device.size() <= 32 &&
                     std::all_of(device.begin(), device.end(), [](unsigned char c) {
                       return std::isalnum(c) != 0 || c == '_' || c == '-';
                     });
  if (!plain) fail(EINVAL, "'" + device + "' is no device name (1 to 32 of A-Z a-z 0-9 _ -)");
  const std::size_t dm_bytes = wanted_dm_bytes();
  // An attempt fails only when the file was removed or restarted in between.
  for (int attempt = 0; attempt < 100; ++attempt) {
    if (!try_open(dm_bytes)) continue;
    reclaim_dead();
    return;
  }
  fail(EAGAIN, path_ + " is removed and made again all the time");
}

bool DeviceFile::try_open(std::size_t dm_bytes) {
  fd_ = ::open(path_.c_str(), O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
  if (fd_ < 0) fail(errno, "cannot open " + path_ + ": " + std::strerror(errno));
  try {
    struct stat info {};
    if (::fstat(fd_, &info) != 0 || !S_ISREG(info.st_mode) || info.st_uid != ::geteuid() ||
        (info.st_mode & 077) != 0) {
      fail(EACCES, path_ + " is not a file of this user's with mode 0600: remove it");
    }
    if (::flock(fd_, LOCK_EX | LOCK_NB) == 0) initialise(dm_bytes);
    // The change from the exclusive to the shared lock is not atomic: map() looks again.
    if (::flock(fd_, LOCK_SH) != 0) fail(errno, "cannot lock " + path_);
    if (::fstat(fd_, &info) == 0 && info.st_nlink != 0) {
      map();
      return true;
    }
  } catch (...) {
    ::close(fd_);
    fd_ = -1;
    throw;
  }
  ::close(fd_);
  fd_ = -1;
  return false;
}

void DeviceFile::initialise(std::size_t dm_bytes) {
  struct stat info {};
  if (::fstat(fd_, &info) != 0 || info.st_nlink == 0) return;  // removed: the caller starts again
  const std::size_t bytes = sizeof(Shared) + dm_bytes;
  if (::ftruncate(fd_, 0) != 0 || ::ftruncate(fd_, static_cast<off_t>(bytes)) != 0) {
    fail(errno, "cannot size " + path_ + " to " + std::to_string(bytes) + " bytes");
  }
  // Ask for the pages now: a full file system is an error here, not a signal later.
  if (const int code = ::posix_fallocate(fd_, 0, static_cast<off_t>(bytes)); code != 0) {
    fail(code, "no room for " + std::to_string(bytes) + " bytes in " + path_);
  }
  void* base = ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd_, 0);
  if (base == MAP_FAILED) fail(errno, "cannot map " + path_);
  auto* shared = static_cast<Shared*>(base);
  shared->abi = device_abi;
  shared->bytes = bytes;
  shared->dm_bytes = dm_bytes;
  shared->magic = device_magic;
  ::munmap(base, bytes);
}

void DeviceFile::map() {
  struct stat info {};
  ::fstat(fd_, &info);
  const auto bytes = static_cast<std::size_t>(info.st_size);
  if (bytes < sizeof(Shared) + dm_unit || bytes > file_limit) {
    fail(EPROTO,
         path_ + " has " + std::to_string(bytes) + " bytes: no device file of this version");
  }
  void* base = ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd_, 0);
  if (base == MAP_FAILED) fail(errno, "cannot map " + path_);
  shared_ = static_cast<Shared*>(base);
  bytes_ = bytes;
  if (shared_->magic != device_magic || shared_->abi != device_abi || shared_->bytes != bytes ||
      shared_->dm_bytes != bytes - sizeof(Shared)) {
    ::munmap(base, bytes);
    shared_ = nullptr;
    fail(EPROTO, path_ + " is of another version: end the programs that use it and remove it");
  }
}

DeviceFile::~DeviceFile() {
  if (shared_ != nullptr) {
    // A forked child shares the lock, but the entries are its parent's.
    if (this_process().tag() == tag_) {
      if (entry_ != directory_entries) {
        shared_->directory[entry_].tag.store(0, std::memory_order_release);
      }
      const bool last_of_process =
          std::none_of(std::begin(shared_->directory), std::end(shared_->directory),
                       [this](const Shared::Entry& entry) { return entry.tag.load() == tag_; });
      if (last_of_process) {
        // What others are attached to stays until they are gone.
        for (std::size_t i = 0; i < max_units; ++i) {
          const std::uint64_t owner = shared_->unit[i].load(std::memory_order_relaxed);
          if (owner != 0 && ((owner ^ tag_) & ~purpose_mask) == 0) free_unattached(i, 1, owner);
        }
      }
      // Unlocked first: of two that leave at the same time one must get the exclusive lock.
      ::flock(fd_, LOCK_UN);
      if (::flock(fd_, LOCK_EX | LOCK_NB) == 0) {
        struct stat info {};
        if (::fstat(fd_, &info) == 0 && info.st_nlink != 0) ::unlink(path_.c_str());
      }
    }
    ::munmap(shared_, bytes_);
  }
  if (fd_ >= 0) ::close(fd_);
}

void DeviceFile::announce(const Address& address, const std::string& purpose) {
  for (int round = 0; round < 2; ++round) {
    for (std::uint32_t i = 0; i < directory_entries; ++i) {
      Shared::Entry& entry = shared_->directory[i];
      std::uint64_t nobody = 0;
      if (!entry.tag.compare_exchange_strong(nobody, tag_)) continue;
      entry.address = address;
      std::strncpy(entry.purpose, purpose.c_str(), sizeof entry.purpose - 1);
      entry.purpose[sizeof entry.purpose - 1] = '\0';
      entry_ = i;
      return;
    }
    reclaim_dead();
  }
  fail(EUSERS,
       path_ + ": all " + std::to_string(directory_entries) + " directory entries are taken");
}

std::optional<Address> DeviceFile::address_of(std::uint32_t entry) const noexcept {
  if (entry >= directory_entries) return std::nullopt;
  const Shared::Entry& found = shared_->directory[entry];
  const std::uint64_t tag = found.tag.load(std::memory_order_acquire);
  if (tag == 0) return std::nullopt;
  const Address address = found.address;
  // An entry that is just being written names another process, or none: who connects will see.
  if ((ProcessId{address.pid, address.start_time}.tag()) != tag) return std::nullopt;
  return address;
}

std::span<std::byte> DeviceFile::memory() const noexcept {
  return {shared_->memory, bytes_ - sizeof(Shared)};
}

// ---- device memory -----------------------------------------------------------------------------
//
// A unit's owner word says whose it is. Whoever uses another process's allocation holds a lock on
// its range: the kernel's (of the open file, not of the process), which a death releases.

bool DeviceFile::lock_units(int type, std::size_t first, std::size_t count,
                            bool wait) const noexcept {
  struct flock range {};
  range.l_type = static_cast<short>(type);
  range.l_whence = SEEK_SET;
  range.l_start = locks_at + static_cast<off_t>(first * dm_unit);
  range.l_len = static_cast<off_t>(count * dm_unit);
  return ::fcntl(fd_, wait ? F_OFD_SETLKW : F_OFD_SETLK, &range) == 0;
}

std::size_t DeviceFile::free_units(std::size_t first, std::size_t count,
                                   std::uint64_t tag) noexcept {
  std::size_t freed = 0;
  for (std::size_t i = 0; i < count; ++i) {
    std::uint64_t owner = tag;
    freed += shared_->unit[first + i].compare_exchange_strong(owner, 0) ? 1 : 0;
  }
  return freed;
}

std::size_t DeviceFile::free_unattached(std::size_t first, std::size_t count,
                                        std::uint64_t tag) noexcept {
  if (!lock_units(F_WRLCK, first, count, false)) return 0;
  const std::size_t freed = free_units(first, count, tag);
  lock_units(F_UNLCK, first, count, false);
  return freed;
}

std::size_t DeviceFile::reclaim_dead() noexcept {
  // One look at each process, not one for each unit.
  std::map<std::uint64_t, bool> dead;
  std::size_t count = 0;
  const std::size_t total = memory().size() / dm_unit;
  for (std::size_t i = 0; i < total;) {
    const std::uint64_t owner = shared_->unit[i].load(std::memory_order_acquire);
    std::size_t end = i + 1;
    if (owner != 0) {
      while (end < total && shared_->unit[end].load(std::memory_order_relaxed) == owner) ++end;
      const auto [at, added] = dead.try_emplace(owner & ~purpose_mask, false);
      if (added) at->second = !owner_alive(owner & ~purpose_mask);
      if (at->second) {
        const std::size_t freed = free_unattached(i, end - i, owner);
        count += freed;
        // Several allocations side by side, and somebody is attached to one of them: one by one.
        for (std::size_t unit = i; freed == 0 && unit < end; ++unit) {
          count += free_unattached(unit, 1, owner);
        }
      }
    }
    i = end;
  }
  for (Shared::Entry& entry : shared_->directory) {
    std::uint64_t tag = entry.tag.load(std::memory_order_acquire);
    if (tag != 0 && !process_alive(tag)) entry.tag.compare_exchange_strong(tag, 0);
  }
  return count;
}

bool DeviceFile::within(const DmShare& share) const noexcept {
  return share.offset % dm_unit == 0 && share.bytes != 0 && share.offset <= memory().size() &&
         share.bytes <= memory().size() - share.offset;
}

DmShare DeviceFile::share(std::size_t offset, std::size_t bytes) const {
  const DmShare share{offset, bytes, 0};
  const std::uint64_t tag =
      within(share) ? shared_->unit[offset / dm_unit].load(std::memory_order_relaxed) : 0;
  if (tag == 0 || ((tag ^ tag_) & ~purpose_mask) != 0) {
    fail(EINVAL, piece_of_memory(offset, bytes) + " is no allocation of this process");
  }
  return {offset, bytes, tag};
}

void DeviceFile::attach(const DmShare& share) {
  const std::string what = piece_of_memory(share.offset, share.bytes);
  if (!within(share)) {
    fail(EINVAL, what + " is no part of the " + std::to_string(memory().size()) + " bytes");
  }
  const std::size_t first = share.offset / dm_unit;
  const std::size_t count = units_of(share.bytes);
  if (!lock_units(F_RDLCK, first, count, true)) fail(errno, "cannot lock " + what);
  for (std::size_t i = 0; i < count; ++i) {
    if (shared_->unit[first + i].load(std::memory_order_acquire) == share.tag) continue;
    lock_units(F_UNLCK, first, count, false);
    fail(ESTALE, what + " was freed");
  }
}

void DeviceFile::detach(const DmShare& share) noexcept {
  if (within(share)) {
    lock_units(F_UNLCK, share.offset / dm_unit, units_of(share.bytes), false);
  }
}

void DeviceFile::free_shared(const DmShare& share) noexcept {
  if (!within(share)) return;
  free_units(share.offset / dm_unit, units_of(share.bytes), share.tag);
  detach(share);
}

std::size_t DeviceFile::allocate(std::size_t bytes, DmPurpose purpose) {
  const std::size_t total = memory().size() / dm_unit;
  const std::size_t need = units_of(bytes);
  const std::uint64_t mine = unit_tag(tag_, purpose);
  for (int round = 0; bytes != 0 && need <= total && round < 16; ++round) {
    std::size_t first = 0;
    while (first + need <= total) {
      // Taken unit by unit, first to last; what another process was faster to take ends the
      // attempt.
      std::size_t have = 0;
      for (; have < need; ++have) {
        std::uint64_t nobody = 0;
        if (!shared_->unit[first + have].compare_exchange_strong(nobody, mine)) break;
      }
      if (have == need) {
        std::memset(shared_->memory + first * dm_unit, 0, need * dm_unit);
        return first * dm_unit;
      }
      for (std::size_t i = 0; i < have; ++i) shared_->unit[first + i].store(0);
      first += have + 1;
    }
    // Enough is free and yet none was found: others take and give back at this moment, or it is in
    // pieces.
    if (reclaim_dead() == 0 && free_bytes() < need * dm_unit) break;
    ::sched_yield();
  }
  fail(ENOMEM, std::to_string(bytes) + " bytes of device memory asked for, " +
                   std::to_string(free_bytes()) + " of " + std::to_string(memory().size()) +
                   " free");
}

void DeviceFile::free(std::size_t offset, std::size_t bytes) {
  const std::size_t first = offset / dm_unit;
  const std::size_t count = units_of(bytes);
  const std::size_t total = memory().size() / dm_unit;
  bool mine = offset % dm_unit == 0 && first <= total && count <= total - first;
  for (std::size_t i = 0; mine && i < count; ++i) {
    mine = ((shared_->unit[first + i].load() ^ tag_) & ~purpose_mask) == 0;
  }
  if (!mine) {
    fail(EINVAL, piece_of_memory(offset, bytes) + " is no allocation of this process");
  }
  for (std::size_t i = 0; i < count; ++i)
    shared_->unit[first + i].store(0, std::memory_order_release);
}

std::size_t DeviceFile::free_bytes() const noexcept {
  std::size_t units = 0;
  for (std::size_t i = 0; i < memory().size() / dm_unit; ++i) {
    units += shared_->unit[i].load(std::memory_order_relaxed) == 0 ? 1 : 0;
  }
  return units * dm_unit;
}

std::optional<DeviceSnapshot> DeviceFile::inspect(const std::string& device) {
  const std::string path = path_of(device);
  const int fd = ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
  if (fd < 0) return std::nullopt;
  struct stat info {};
  std::size_t bytes = 0;
  if (::fstat(fd, &info) == 0 && info.st_uid == ::geteuid()) {
    bytes = static_cast<std::size_t>(info.st_size);
  }
  void* base = bytes >= sizeof(Shared) && bytes <= file_limit
                   ? ::mmap(nullptr, bytes, PROT_READ, MAP_SHARED, fd, 0)
                   : MAP_FAILED;
  ::close(fd);
  if (base == MAP_FAILED) return std::nullopt;
  const auto* shared = static_cast<const Shared*>(base);
  std::optional<DeviceSnapshot> result;
  if (shared->magic == device_magic && shared->abi == device_abi && shared->bytes == bytes) {
    DeviceSnapshot& snapshot = result.emplace();
    snapshot.path = path;
    snapshot.file_bytes = bytes;
    snapshot.dm_bytes = bytes - sizeof(Shared);
    snapshot.dm_used = 0;
    snapshot.dm_left = 0;
    std::map<std::uint32_t, std::size_t> dm_by_pid;
    std::map<std::uint64_t, std::size_t> dm_by_owner;
    for (std::size_t i = 0; i < snapshot.dm_bytes / dm_unit; ++i) {
      if (const std::uint64_t owner = shared->unit[i].load(std::memory_order_relaxed)) {
        dm_by_owner[owner] += dm_unit;
      }
    }
    for (const auto& [owner, used] : dm_by_owner) {
      const auto pid = static_cast<std::uint32_t>(owner >> 32);
      const bool alive = owner_alive(owner & ~purpose_mask);
      (alive ? snapshot.dm_used : snapshot.dm_left) += used;
      dm_by_pid[pid] += used;
      snapshot.dm_uses.push_back({pid, alive, purpose_of(owner), used});
    }
    for (const Shared::Entry& entry : shared->directory) {
      const std::uint64_t tag = entry.tag.load(std::memory_order_acquire);
      if (tag == 0) continue;
      const auto pid = static_cast<std::uint32_t>(tag >> 32);
      const std::string purpose(entry.purpose, ::strnlen(entry.purpose, sizeof entry.purpose));
      snapshot.openers.push_back({pid, process_alive(tag), purpose, dm_by_pid[pid]});
    }
  }
  ::munmap(base, bytes);
  return result;
}

}  // namespace weft::hca::emu
