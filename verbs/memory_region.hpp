// Memory regions: registration, re-registration, the null MR.
#pragma once

#include <infiniband/verbs.h>

#include <atomic>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "hca/access.hpp"
#include "hca/emu/protection_domain.hpp"
#include "verbs/protection_domain.hpp"

namespace weft::verbs {

struct BoundLayout;
struct DeviceMemory;
struct StagedLayout;

struct MemoryRegion : ibv_mr {
  static MemoryRegion& of(ibv_mr* mr) noexcept { return *static_cast<MemoryRegion*>(mr); }

  std::unique_ptr<hca::emu::MemoryRegion> core;
  std::uint64_t iova = 0;          ///< the first address by which peers and SGEs name it
  unsigned access = 0;             ///< ibv_access_flags
  DeviceMemory* memory = nullptr;  ///< of a DM MR
  std::span<std::byte> pinned{};   ///< what child processes do not get
  bool may_carry = false;          ///< a layout: it came from ibv_reg_mr()
  std::atomic<int> users{0};       ///< layouts that refer to it

  // Under the lock of the context's domain.
  std::shared_ptr<const BoundLayout> layout;
  std::shared_ptr<const StagedLayout> staged;
  std::vector<MemoryRegion*> parents;  ///< whose layouts refer to it
  bool leaving = false;                ///< is being deregistered
};

/// Throws hca::Error: EINVAL for flags that exclude each other, EOPNOTSUPP for those the device has
/// not.
hca::Access access_of(unsigned flags);

/// Brings the pages in, as pinning them would: memory that is not there, or not writable where that
/// is asked for, is an error now and not a signal when a peer writes. Throws hca::Error EFAULT.
void populate(void* addr, std::uint64_t length, bool writable);
/// Refuses a range that is too long or wraps. Throws hca::Error EINVAL.
void check_range(const void* addr, std::uint64_t length, std::uint64_t iova);
/// Fills in what a program sees of a region and counts it as a user of its PD.
void enter(MemoryRegion& mr, ibv_pd* pd);
/// The lock under which a region's keys are used.
hca::emu::SpinLock& lock_of(const MemoryRegion& mr);

ibv_mr* reg_mr(ibv_pd* pd, void* addr, std::size_t length, std::uint64_t iova, unsigned access);
int dereg_mr(ibv_mr* mr);
/// Returns an ibv_rereg_mr_err_code.
int rereg_mr(ibv_mr* mr, int flags, ibv_pd* pd, void* addr, std::size_t length, int access);
ibv_mr* alloc_null_mr(ibv_pd* pd);
int advise_mr(ibv_pd* pd, ibv_advise_mr_advice advice, std::uint32_t flags, ibv_sge* sg_list,
              std::uint32_t num_sge);

}  // namespace weft::verbs
