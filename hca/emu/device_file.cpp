#include "hca/emu/device_file.hpp"

#include <fcntl.h>
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
    if (try_open(dm_bytes)) return;
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
        for (auto& unit : shared_->unit) {
          std::uint64_t owner = unit.load(std::memory_order_relaxed);
          if (owner != 0 && ((owner ^ tag_) & ~purpose_mask) == 0) {
            unit.compare_exchange_strong(owner, 0);
          }
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

std::size_t DeviceFile::reclaim_dead() noexcept {
  // One look at each process, not one for each unit.
  std::map<std::uint64_t, bool> dead;
  std::size_t count = 0;
  for (auto& unit : shared_->unit) {
    std::uint64_t owner = unit.load(std::memory_order_acquire);
    if (owner == 0) continue;
    const auto [at, added] = dead.try_emplace(owner & ~purpose_mask, false);
    if (added) at->second = !owner_alive(owner & ~purpose_mask);
    if (at->second && unit.compare_exchange_strong(owner, 0)) ++count;
  }
  for (Shared::Entry& entry : shared_->directory) {
    std::uint64_t tag = entry.tag.load(std::memory_order_acquire);
    if (tag != 0 && !process_alive(tag)) entry.tag.compare_exchange_strong(tag, 0);
  }
  return count;
}

std::size_t DeviceFile::allocate(std::size_t bytes, DmPurpose purpose) {
  const std::size_t total = memory().size() / dm_unit;
  const std::size_t need = bytes / dm_unit + (bytes % dm_unit != 0 ? 1 : 0);
  const std::uint64_t mine = unit_tag(tag_, purpose);
  for (int round = 0; bytes != 0 && need <= total && round < 2; ++round) {
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
    if (reclaim_dead() == 0) break;
  }
  fail(ENOMEM, std::to_string(bytes) + " bytes of device memory asked for, " +
                   std::to_string(free_bytes()) + " of " + std::to_string(memory().size()) +
                   " free");
}

void DeviceFile::free(std::size_t offset, std::size_t bytes) {
  const std::size_t first = offset / dm_unit;
  const std::size_t count = bytes / dm_unit + (bytes % dm_unit != 0 ? 1 : 0);
  const std::size_t total = memory().size() / dm_unit;
  bool mine = offset % dm_unit == 0 && first <= total && count <= total - first;
  for (std::size_t i = 0; mine && i < count; ++i) {
    mine = ((shared_->unit[first + i].load() ^ tag_) & ~purpose_mask) == 0;
  }
  if (!mine) {
    fail(EINVAL, "device memory at " + std::to_string(offset) + " of " + std::to_string(bytes) +
                     " bytes is no allocation of this process");
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
    std::map<std::uint32_t, std::size_t> dm_by_pid;
    for (std::size_t i = 0; i < snapshot.dm_bytes / dm_unit; ++i) {
      if (const std::uint64_t owner = shared->unit[i].load(std::memory_order_relaxed)) {
        dm_by_pid[static_cast<std::uint32_t>(owner >> 32)] += dm_unit;
        snapshot.dm_used += dm_unit;
      }
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
