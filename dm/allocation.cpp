#include "dm/allocation.hpp"

#include <sys/mman.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <map>
#include <mutex>
#include <utility>

#include "hca/emu/process_id.hpp"
#include "hca/emu/shared_file.hpp"
#include "hca/status.hpp"

namespace weft::dm {

using hca::Error;
using hca::emu::DeviceFile;
using hca::emu::DmPurpose;

namespace {

constexpr std::uint64_t handle_magic = 0x31656c6448'6d64ull;  // "dmHdle1"
constexpr std::size_t max_host_bytes = std::size_t{1} << 30;

Handle empty_handle(const std::string& device, std::size_t bytes) {
  const hca::emu::ProcessId self = hca::emu::this_process();
  Handle handle{};
  handle.magic = handle_magic;
  handle.pid = self.pid;
  handle.start_time = self.start_time;
  handle.host = hca::emu::host_id(device);
  handle.bytes = bytes;
  device.copy(handle.device, sizeof handle.device - 1);
  return handle;
}

// ---- device memory ------------------------------------------------------------------------------

class DeviceAllocation : public Allocation {
 public:
  DeviceAllocation(const std::string& device, std::size_t bytes, DmPurpose purpose)
      : device_(open_device(device)), pid_(::getpid()), owner_(true) {
    const std::size_t offset = device_->allocate(bytes, purpose);
    handle_ = empty_handle(device, bytes);
    share_ = device_->share(offset, bytes);
    handle_.offset = offset;
    handle_.tag = share_.tag;
    memory_ = device_->memory().subspan(offset, bytes);
  }
  explicit DeviceAllocation(const Handle& handle)
      : device_(open_device(handle.device)),
        share_{handle.offset, handle.bytes, handle.tag},
        pid_(::getpid()),
        // The process's own, or its parent's from before a fork.
        owner_(false) {
    device_->attach(share_);
    handle_ = handle;
    memory_ = device_->memory().subspan(handle.offset, handle.bytes);
  }
  ~DeviceAllocation() override {
    // A forked child has the view, but it is its parent's to free.
    if (left_ || pid_ != ::getpid()) return;
    if (owner_) {
      device_->free_shared(share_);
    } else {
      device_->detach(share_);
    }
  }
  void leave(bool last) noexcept override {
    left_ = true;
    if (last) {
      device_->free_shared(share_);
    } else if (!owner_) {
      device_->detach(share_);
    }
  }

 private:
  std::shared_ptr<DeviceFile> device_;
  hca::emu::DmShare share_{};
  pid_t pid_;
  bool owner_;
  bool left_ = false;
};

// ---- host memory --------------------------------------------------------------------------------

/// A memfd: a unit with this header, then the memory.
struct HostHeader {
  std::uint64_t magic;
  std::uint64_t id;
  std::uint64_t bytes;
};
constexpr std::uint64_t host_magic = 0x3174736f48'6d64ull;  // "dmHost1"
constexpr std::size_t header_bytes = hca::emu::dm_unit;

class HostAllocation : public Allocation {
 public:
  HostAllocation(const std::string& device, std::size_t bytes) {
    if (bytes > max_host_bytes) {
      throw Error(ENOMEM, std::to_string(bytes) + " bytes of host memory asked for, " +
                              std::to_string(max_host_bytes) + " is the most");
    }
    const std::size_t whole = header_bytes + bytes;
    fd_ = hca::emu::create_shared_file("weft-dm", whole);
    if (fd_ < 0 || !map(whole)) {
      const int code = errno;
      close();
      throw Error(code, "no " + std::to_string(bytes) +
                            " bytes of shared host memory: " + std::strerror(code));
    }
    auto* header = static_cast<HostHeader*>(base_);
    *header = {host_magic, hca::emu::random_id(), bytes};
    handle_ = empty_handle(device, bytes);
    handle_.in_host = 1;
    handle_.offset = static_cast<std::uint64_t>(fd_);
    handle_.tag = header->id;
    memory_ = {static_cast<std::byte*>(base_) + header_bytes, bytes};
  }
  explicit HostAllocation(const Handle& handle) {
    const std::string who = "process " + std::to_string(handle.pid);
    const std::size_t whole = header_bytes + handle.bytes;
    fd_ = hca::emu::open_shared_file(handle.pid, static_cast<std::uint32_t>(handle.offset), whole);
    if (fd_ < 0 && errno != EPROTO) throw Error(errno, "cannot open the memory of " + who);
    const bool plausible = fd_ >= 0 && handle.bytes <= max_host_bytes && map(whole);
    const auto* header = static_cast<const HostHeader*>(base_);
    if (!plausible || header->magic != host_magic || header->id != handle.tag ||
        header->bytes != handle.bytes) {
      close();
      throw Error(ESTALE, "the memory of " + who + " was freed");
    }
    handle_ = handle;
    memory_ = {static_cast<std::byte*>(base_) + header_bytes, handle.bytes};
  }
  ~HostAllocation() override { close(); }
  void leave(bool) noexcept override {}

 private:
  bool map(std::size_t whole) noexcept {
    void* base = ::mmap(nullptr, whole, PROT_READ | PROT_WRITE, MAP_SHARED, fd_, 0);
    if (base == MAP_FAILED) return false;
    base_ = base;
    whole_ = whole;
    return true;
  }
  void close() noexcept {
    if (base_ != nullptr) ::munmap(base_, whole_);
    if (fd_ >= 0) ::close(fd_);
  }

  int fd_ = -1;
  void* base_ = nullptr;
  std::size_t whole_ = 0;
};

}  // namespace

std::unique_ptr<Allocation> Allocation::create(const std::string& device, std::size_t bytes,
                                               Place place, DmPurpose purpose) {
  if (bytes == 0) throw Error(EINVAL, "0 bytes of device memory asked for");
  if (place == Place::host) return std::make_unique<HostAllocation>(device, bytes);
  try {
    return std::make_unique<DeviceAllocation>(device, bytes, purpose);
  } catch (const Error& error) {
    if (place == Place::device || error.code() == EINVAL) throw;
  }
  return std::make_unique<HostAllocation>(device, bytes);
}

std::unique_ptr<Allocation> Allocation::attach(const Handle& handle) {
  const bool named = std::memchr(handle.device, '\0', sizeof handle.device) != nullptr;
  if (handle.magic != handle_magic || !named || handle.in_host > 1) {
    throw Error(EINVAL, "this is no handle of device memory");
  }
  if (handle.host != hca::emu::host_id(handle.device)) {
    throw Error(EHOSTUNREACH,
                "the memory of process " + std::to_string(handle.pid) + " is on another node");
  }
  if (hca::emu::start_time_of(handle.pid) != handle.start_time) {
    throw Error(EHOSTUNREACH, "process " + std::to_string(handle.pid) + " is gone");
  }
  if (handle.in_host != 0) return std::make_unique<HostAllocation>(handle);
  return std::make_unique<DeviceAllocation>(handle);
}

std::shared_ptr<DeviceFile> open_device(const std::string& name) {
  struct Opened {
    pid_t pid;
    std::weak_ptr<DeviceFile> file;
  };
  static std::mutex mutex;
  // Never destroyed: components are closed after static objects.
  static auto& opened = *new std::map<std::string, Opened>;
  const std::scoped_lock guard(mutex);
  Opened& known = opened[name];
  // What was opened before a fork is the parent's.
  if (known.pid == ::getpid()) {
    if (auto file = known.file.lock()) return file;
  }
  auto file = std::make_shared<DeviceFile>(name);
  file->announce({}, "dm");
  known = {::getpid(), file};
  return file;
}

}  // namespace weft::dm
