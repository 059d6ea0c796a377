// Allocation: zeroed memory for counters and slots that several processes use: device memory, or
// host memory shared in the same way where the device has none left.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>

#include "hca/emu/device_file.hpp"

namespace weft::dm {

enum class Place : std::uint32_t {
  device,          ///< device memory, or an error
  device_or_host,  ///< host memory where the device has none left
  host,
};

/// What one process gives another (by whatever way, it is plain data) so that it can attach.
struct Handle {
  std::uint64_t magic;
  std::uint32_t in_host;  ///< 1: host memory
  std::uint32_t pid;
  std::uint64_t start_time;
  std::uint64_t host;    ///< boot and pid namespace
  std::uint64_t offset;  ///< device memory; host memory: the descriptor of its file
  std::uint64_t bytes;
  std::uint64_t tag;  ///< device memory: of its units; host memory: a random number in its header
  char device[40];
};
static_assert(sizeof(Handle) == 96);

class Allocation {
 public:
  /// `bytes` of at least 1, rounded up to units of 64. Throws hca::Error: EINVAL, ENOMEM naming
  /// size and free bytes, and what opening the device throws.
  static std::unique_ptr<Allocation> create(
      const std::string& device, std::size_t bytes, Place place = Place::device,
      hca::emu::DmPurpose purpose = hca::emu::DmPurpose::counter);
  /// Another process's. Throws hca::Error: EINVAL (no handle), EHOSTUNREACH (another node, or its
  /// process is gone), ESTALE (freed).
  static std::unique_ptr<Allocation> attach(const Handle& handle);

  virtual ~Allocation() = default;
  Allocation(const Allocation&) = delete;
  Allocation& operator=(const Allocation&) = delete;

  [[nodiscard]] std::span<std::byte> memory() const noexcept { return memory_; }
  [[nodiscard]] bool in_device() const noexcept { return handle_.in_host == 0; }
  [[nodiscard]] const Handle& handle() const noexcept { return handle_; }
  /// The last of those who shared it frees it, whoever that is; destroying this object then frees
  /// no more. Only for device memory.
  virtual void leave(bool last) noexcept = 0;

 protected:
  Allocation() = default;
  std::span<std::byte> memory_;
  Handle handle_{};
};

/// The device as this process has it open, opened at the first call and for as long as somebody
/// uses it. Throws what hca::emu::DeviceFile throws.
std::shared_ptr<hca::emu::DeviceFile> open_device(const std::string& name);

}  // namespace weft::dm
