#include "verbs/memory_region.hpp"

#include <sys/mman.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <mutex>

#include "hca/emu/null_layout.hpp"
#include "verbs/context.hpp"
#include "verbs/device_memory.hpp"
#include "verbs/fork_ranges.hpp"
#include "verbs/layout.hpp"
#include "verbs/log.hpp"
#include "verbs/memory_window.hpp"

namespace weft::verbs {

namespace {

hca::emu::Region region_of(MemoryRegion& mr, hca::Access access) {
  hca::emu::Region region{mr.iova, mr.length, static_cast<std::byte*>(mr.addr),
                          nullptr, access,    ProtectionDomain::of(mr.pd).core->number()};
  region.owner = &mr;
  return region;
}

/// From here on nothing begins to refer to the region; throws hca::Error EBUSY when something does.
void retire(MemoryRegion& mr) {
  const std::scoped_lock guard(lock_of(mr));
  if (const int users = mr.users + windows_on(mr); users != 0) {
    refuse(EBUSY, std::to_string(users) + " windows or layouts refer to the region");
  }
  if (is_posted(mr)) refuse(EBUSY, "a layout of the region is in a send queue");
  mr.leaving = true;
  forget_layouts(mr);
}

}  // namespace

void populate(void* addr, std::uint64_t length, bool writable) {
  if (length == 0) return;
  const auto page = static_cast<std::uint64_t>(::sysconf(_SC_PAGESIZE));
  const auto first = reinterpret_cast<std::uint64_t>(addr) / page * page;
  const std::uint64_t bytes = reinterpret_cast<std::uint64_t>(addr) + length - first;
  constexpr int populate_read = 22;  // MADV_POPULATE_READ, MADV_POPULATE_WRITE: Linux 5.14
  constexpr int populate_write = 23;
  // EINVAL also stands for pages that cannot be written; so the kernel is asked what it knows once.
  static const bool known = [&] {
    std::uint64_t here = 0;
    const auto own = reinterpret_cast<std::uint64_t>(&here) / page * page;
    return ::madvise(reinterpret_cast<void*>(own), page, populate_read) == 0;
  }();
  auto* const at = reinterpret_cast<void*>(first);
  const int failed = known ? ::madvise(at, bytes, writable ? populate_write : populate_read)
                           : ::msync(at, bytes, MS_ASYNC);
  if (failed == 0) return;
  refuse(EFAULT, std::to_string(length) + " bytes at " +
                     std::to_string(reinterpret_cast<std::uint64_t>(addr)) +
                     (writable ? " are not all mapped and writable" : " are not all mapped"));
}

void check_range(const void* addr, std::uint64_t length, std::uint64_t iova) {
  check_limit(EINVAL, "length", length, limits().max_mr_size);
  const auto start = reinterpret_cast<std::uint64_t>(addr);
  if (start + length < start || iova + length < iova) {
    refuse(EINVAL, std::to_string(length) + " bytes at " + std::to_string(start) +
                       " go past the end of the address space");
  }
}

void enter(MemoryRegion& mr, ibv_pd* pd) {
  mr.context = pd->context;
  mr.pd = pd;
  mr.lkey = mr.core->lkey();
  mr.rkey = mr.core->rkey();
  mr.handle = mr.lkey;
  ++ProtectionDomain::of(pd).users;
}

hca::emu::SpinLock& lock_of(const MemoryRegion& mr) {
  return Context::of(mr.context).core->domain().lock();
}

hca::Access access_of(unsigned flags) {
  constexpr unsigned known = IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE |
                             IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_ATOMIC |
                             IBV_ACCESS_MW_BIND | IBV_ACCESS_ZERO_BASED | IBV_ACCESS_HUGETLB |
                             IBV_ACCESS_OPTIONAL_RANGE;
  if ((flags & ~known) != 0) {
    refuse(EOPNOTSUPP,
           "access flags " + std::to_string(flags) + ", the device has " + std::to_string(known));
  }
  if ((flags & (IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_ATOMIC)) != 0 &&
      (flags & IBV_ACCESS_LOCAL_WRITE) == 0) {
    refuse(EINVAL, "remote write and atomics need local write");
  }
  hca::Access access = hca::Access::none;
  if ((flags & IBV_ACCESS_LOCAL_WRITE) != 0) access = access | hca::Access::local_write;
  if ((flags & IBV_ACCESS_REMOTE_WRITE) != 0) access = access | hca::Access::remote_write;
  if ((flags & IBV_ACCESS_REMOTE_READ) != 0) access = access | hca::Access::remote_read;
  if ((flags & IBV_ACCESS_REMOTE_ATOMIC) != 0) access = access | hca::Access::remote_atomic;
  return access;
}

ibv_mr* reg_mr(ibv_pd* pd, void* addr, std::size_t length, std::uint64_t iova, unsigned access) {
  return guarded_pointer("ibv_reg_mr", [&]() -> ibv_mr* {
    const bool zero_based = (access & IBV_ACCESS_ZERO_BASED) != 0;
    const hca::Access rights = access_of(access);
    // An empty zero-based MR is the carrier of a layout.
    if (length == 0 && !zero_based) refuse(EINVAL, "a region of no bytes");
    auto mr = std::make_unique<MemoryRegion>();
    mr->iova = zero_based ? 0 : iova;
    mr->addr = addr;
    mr->length = length;
    mr->access = access;
    mr->pd = pd;
    mr->may_carry = true;
    check_range(addr, length, mr->iova);
    populate(addr, length, (access & IBV_ACCESS_LOCAL_WRITE) != 0);
    if (const int code = fork_ranges().dont_fork(addr, length)) {
      refuse(code, std::to_string(length) + " bytes cannot be kept from child processes");
    }
    mr->pinned = {static_cast<std::byte*>(addr), length};
    try {
      mr->core = ProtectionDomain::of(pd).core->register_region(region_of(*mr, rights));
    } catch (...) {
      fork_ranges().do_fork(addr, length);
      throw;
    }
    enter(*mr, pd);
    return mr.release();
  });
}

int dereg_mr(ibv_mr* which) {
  auto& mr = MemoryRegion::of(which);
  return guarded("ibv_dereg_mr", [&] {
    retire(mr);
    mr.core.reset();
    --ProtectionDomain::of(mr.pd).users;
    if (mr.memory != nullptr) --mr.memory->users;
    fork_ranges().do_fork(mr.pinned.data(), mr.pinned.size());
    delete &mr;
  });
}

ibv_mr* alloc_null_mr(ibv_pd* pd) {
  return guarded_pointer("ibv_alloc_null_mr", [&]() -> ibv_mr* {
    auto mr = std::make_unique<MemoryRegion>();
    hca::emu::Region region{0, ~std::uint64_t{0}, nullptr, std::make_shared<hca::emu::NullLayout>(),
                            hca::Access::local_write};
    region.owner = mr.get();
    mr->core = ProtectionDomain::of(pd).core->register_region(std::move(region));
    enter(*mr, pd);
    mr->rkey = 0;
    return mr.release();
  });
}

int advise_mr(ibv_pd* pd, ibv_advise_mr_advice advice, std::uint32_t flags, ibv_sge* sg_list,
              std::uint32_t num_sge) {
  // Registered memory is always present: there is nothing to prefetch.
  if (pd == nullptr || advice > IBV_ADVISE_MR_ADVICE_PREFETCH_NO_FAULT ||
      (flags & ~std::uint32_t{IBV_ADVISE_MR_FLAG_FLUSH}) != 0 ||
      (num_sge != 0 && sg_list == nullptr)) {
    return EINVAL;
  }
  return 0;
}

}  // namespace weft::verbs
