// Protection domains and the memory registered in them.
#pragma once

#include <infiniband/verbs.h>

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "hca/access.hpp"
#include "hca/mlx5/context.hpp"
#include "hca/mlx5/handle.hpp"

namespace weft::hca::mlx5 {

/// As ibv_access_flags.
unsigned flags_of(Access access) noexcept;

class ProtectionDomain {
 public:
  explicit ProtectionDomain(const Context& context)
      : pd_(made(ibv_alloc_pd(context.get()), "no PD")) {}
  [[nodiscard]] ibv_pd* get() const noexcept { return pd_.get(); }

 private:
  Handle<ibv_pd, ibv_dealloc_pd> pd_;
};

/// A host range, by its addresses.
class MemoryRegion {
 public:
  /// Throws hca::Error with the errno of ibv_reg_mr.
  MemoryRegion(const ProtectionDomain& pd, void* addr, std::size_t length, Access access);
  [[nodiscard]] std::uint32_t lkey() const noexcept { return mr_->lkey; }
  [[nodiscard]] std::uint32_t rkey() const noexcept { return mr_->rkey; }

 private:
  Handle<ibv_mr, ibv_dereg_mr> mr_;
};

/// ibv_free_dm is an inline function of the header, which a type that others see cannot name.
inline void free_dm(ibv_dm* dm) {
  ibv_free_dm(dm);
}

/// Device memory with its region, zero-based. Cards run out of it, and some have none
/// (ibv_alloc_dm fails with EINVAL or ENOMEM): then it is host memory behind the same interface.
class DeviceMemory {
 public:
  /// Throws hca::Error when host memory cannot be registered either.
  DeviceMemory(const ProtectionDomain& pd, std::size_t length, Access access);

  [[nodiscard]] bool on_device() const noexcept { return dm_ != nullptr; }
  [[nodiscard]] std::uint32_t lkey() const noexcept { return mr_->lkey; }
  [[nodiscard]] std::uint32_t rkey() const noexcept { return mr_->rkey; }
  /// Throw hca::Error EINVAL for bytes outside of it.
  void copy_to(std::size_t offset, std::span<const std::byte> from);
  void copy_from(std::size_t offset, std::span<std::byte> to) const;

 private:
  void check(std::size_t offset, std::size_t length) const;

  std::size_t length_;
  Handle<ibv_dm, free_dm> dm_;
  std::vector<std::byte> host_;
  Handle<ibv_mr, ibv_dereg_mr> mr_;
};

}  // namespace weft::hca::mlx5
