// An allocation of device memory (DM): shared by all processes that have the device open, reached
// by RDMA and atomics through a region's key, or by copies.
#pragma once

#include <cstddef>
#include <span>

#include "hca/emu/context.hpp"

namespace weft::hca::emu {

class DeviceMemory {
 public:
  /// `length` bytes, rounded up to units of 64, zeroed. Throws hca::Error ENOMEM naming size and
  /// free bytes.
  DeviceMemory(Context& context, std::size_t length, DmPurpose purpose = DmPurpose::user);
  ~DeviceMemory();
  DeviceMemory(const DeviceMemory&) = delete;
  DeviceMemory& operator=(const DeviceMemory&) = delete;

  /// Copies to DM at `offset`. Throws hca::Error EINVAL when it would leave the allocation.
  void copy_to(std::size_t offset, std::span<const std::byte> from);
  void copy_from(std::size_t offset, std::span<std::byte> to) const;

  /// The memory itself, as the device sees it.
  [[nodiscard]] std::span<std::byte> bytes() const noexcept;
  [[nodiscard]] std::size_t size() const noexcept { return length_; }

 private:
  void check(std::size_t offset, std::size_t length) const;

  DeviceFile& device_;
  std::size_t length_;
  std::size_t at_;
};

}  // namespace weft::hca::emu
