// Protection domains and the memory regions in them: handles that register on construction and
// deregister on destruction.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <utility>

#include "hca/emu/context.hpp"

namespace weft::hca::emu {

class DeviceMemory;

/// A memory region; its lkey and rkey are the same number.
class MemoryRegion {
 public:
  MemoryRegion(std::shared_ptr<Domain> domain, Region region)
      : domain_(std::move(domain)),
        addr_(region.addr),
        length_(region.length),
        key_(domain_->register_region(std::move(region))) {}
  ~MemoryRegion() { domain_->deregister(key_); }
  MemoryRegion(const MemoryRegion&) = delete;
  MemoryRegion& operator=(const MemoryRegion&) = delete;

  /// Stands for another region from now on, under the same key; nothing uses the old one when it
  /// returns. Throws hca::Error EINVAL; the old region stays then.
  void replace(Region region) {
    const std::uint64_t addr = region.addr;
    const std::uint64_t length = region.length;
    domain_->replace(key_, std::move(region));
    addr_ = addr;
    length_ = length;
  }

  /// The same under the domain's lock, and under `key`, which is lkey() or one of its successors
  /// (the last 8 bits differ). The region's bounds are sound.
  void rebind(std::uint32_t key, Region region) noexcept {
    addr_ = region.addr;
    length_ = region.length;
    domain_->unbind(key_);
    domain_->bind(key, std::move(region));
    key_ = key;
  }

  [[nodiscard]] std::uint32_t lkey() const noexcept { return key_; }
  [[nodiscard]] std::uint32_t rkey() const noexcept { return key_; }
  [[nodiscard]] std::uint64_t addr() const noexcept { return addr_; }
  [[nodiscard]] std::uint64_t length() const noexcept { return length_; }

 private:
  std::shared_ptr<Domain> domain_;
  std::uint64_t addr_;
  std::uint64_t length_;
  std::uint32_t key_;
};

class ProtectionDomain {
 public:
  explicit ProtectionDomain(Context& context);

  [[nodiscard]] std::uint32_t number() const noexcept { return number_; }

  /// Any region, by a key of this PD.
  std::unique_ptr<MemoryRegion> register_region(Region region);
  /// A host range, by its addresses. Throws hca::Error EINVAL, ENOMEM.
  std::unique_ptr<MemoryRegion> register_memory(void* addr, std::uint64_t length, Access access);
  /// A layout over memory at `base`, zero-based: address i is byte i of its stream.
  std::unique_ptr<MemoryRegion> register_layout(void* base, LayoutPtr layout, Access access);
  /// Device memory, zero-based. The DM must outlive the region.
  std::unique_ptr<MemoryRegion> register_device_memory(DeviceMemory& memory, Access access);

 private:
  std::shared_ptr<Domain> domain_;
  std::uint32_t number_;
};

}  // namespace weft::hca::emu
