// Memory regions: registration, re-registration, the null MR.
#pragma once

#include <infiniband/verbs.h>

#include <atomic>
#include <cstdint>
#include <memory>

#include "hca/access.hpp"
#include "hca/emu/protection_domain.hpp"
#include "verbs/protection_domain.hpp"

namespace weft::verbs {

struct DeviceMemory;

struct MemoryRegion : ibv_mr {
  static MemoryRegion& of(ibv_mr* mr) noexcept { return *static_cast<MemoryRegion*>(mr); }

  std::unique_ptr<hca::emu::MemoryRegion> core;
  std::uint64_t iova = 0;          ///< the first address by which peers and SGEs name it
  unsigned access = 0;             ///< ibv_access_flags
  DeviceMemory* memory = nullptr;  ///< of a DM MR
  std::atomic<int> users{0};       ///< layouts that refer to it
};

/// Throws hca::Error: EINVAL for flags that exclude each other, EOPNOTSUPP for those the device has
/// not.
hca::Access access_of(unsigned flags);

ibv_mr* reg_mr(ibv_pd* pd, void* addr, std::size_t length, std::uint64_t iova, unsigned access);
int dereg_mr(ibv_mr* mr);
/// Returns an ibv_rereg_mr_err_code.
int rereg_mr(ibv_mr* mr, int flags, ibv_pd* pd, void* addr, std::size_t length, int access);
ibv_mr* alloc_null_mr(ibv_pd* pd);
int advise_mr(ibv_pd* pd, ibv_advise_mr_advice advice, std::uint32_t flags, ibv_sge* sg_list,
              std::uint32_t num_sge);

}  // namespace weft::verbs
