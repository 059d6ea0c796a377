// SharedRegion: memory that the device allocates for its user, in a memfd of its own, so that the
// initiator of an RDMA or atomic operation executes it: neither the owner's attention nor its core
// is needed. The region has an ordinary key as well; where a peer cannot map it, that serves.
#pragma once

#include <sys/types.h>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>

#include "hca/emu/address.hpp"

namespace weft::hca::emu {

/// What lies in the memfd's first page.
struct SharedRegionHeader {
  std::uint64_t magic;
  std::uint64_t addr;    ///< where its owner has it
  std::uint64_t length;  ///< from the second page on
  /// The key by which it is registered; 0 once it is not any more.
  std::atomic<std::uint32_t> key;
};

class SharedRegion {
 public:
  /// `length` zeroed bytes. Throws hca::Error (ENOMEM, EMFILE...).
  static std::unique_ptr<SharedRegion> create(std::size_t length);
  ~SharedRegion();
  SharedRegion(const SharedRegion&) = delete;
  SharedRegion& operator=(const SharedRegion&) = delete;

  [[nodiscard]] std::byte* memory() const noexcept;
  [[nodiscard]] std::size_t length() const noexcept { return header_->length; }
  /// For peers, beside the key; -1 when they cannot map it.
  [[nodiscard]] int fd() const noexcept { return fd_; }
  void set_key(std::uint32_t key) noexcept { header_->key.store(key, std::memory_order_release); }

 private:
  SharedRegion() = default;
  SharedRegionHeader* header_ = nullptr;
  std::size_t mapped_ = 0;
  int fd_ = -1;
  pid_t pid_ = 0;
};

/// A peer's shared region, mapped here.
class SharedRegionView {
 public:
  /// Null when it cannot be mapped or is not the region of that key.
  static std::unique_ptr<SharedRegionView> map(const Address& peer, std::uint32_t fd,
                                               std::uint32_t key) noexcept;
  ~SharedRegionView();
  SharedRegionView(const SharedRegionView&) = delete;
  SharedRegionView& operator=(const SharedRegionView&) = delete;

  [[nodiscard]] bool is_valid() const noexcept {
    return header_->key.load(std::memory_order_acquire) == key_;
  }
  /// Where `length` bytes at the owner's address `addr` are; null when the region has none such, or
  /// is not registered any more.
  [[nodiscard]] std::byte* at(std::uint64_t addr, std::uint64_t length) const noexcept {
    const std::uint64_t offset = addr - addr_;
    if (addr < addr_ || offset > length_ || length > length_ - offset ||
        header_->key.load(std::memory_order_acquire) != key_) [[unlikely]] {
      return nullptr;
    }
    return memory_ + offset;
  }

 private:
  SharedRegionView() = default;
  const SharedRegionHeader* header_ = nullptr;
  std::byte* memory_ = nullptr;
  // Copied once and checked against the file's size: what is shared is not trusted for a bound.
  std::uint64_t addr_ = 0;
  std::uint64_t length_ = 0;
  std::uint32_t key_ = 0;
  std::size_t mapped_ = 0;
};

}  // namespace weft::hca::emu
