#include "verbs/device_memory.hpp"

#include <cerrno>
#include <span>

#include "verbs/context.hpp"
#include "verbs/log.hpp"
#include "verbs/memory_region.hpp"

namespace weft::verbs {

namespace {

int memcpy_to_dm(ibv_dm* dm, std::uint64_t offset, const void* from, std::size_t length) {
  return guarded("ibv_memcpy_to_dm", [&] {
    DeviceMemory::of(dm).core->copy_to(offset, {static_cast<const std::byte*>(from), length});
  });
}

int memcpy_from_dm(void* to, ibv_dm* dm, std::uint64_t offset, std::size_t length) {
  return guarded("ibv_memcpy_from_dm", [&] {
    DeviceMemory::of(dm).core->copy_from(offset, {static_cast<std::byte*>(to), length});
  });
}

}  // namespace

ibv_dm* alloc_dm(ibv_context* context, ibv_alloc_dm_attr* attr) {
  return guarded_pointer("ibv_alloc_dm", [&]() -> ibv_dm* {
    auto& owner = Context::of(context);
    if (attr->comp_mask != 0) refuse(EINVAL, "unknown comp_mask");
    if (attr->length == 0) refuse(EINVAL, "device memory of no bytes");
    check_limit(ENOMEM, "length", attr->length, owner.core->device().memory().size());
    auto dm = std::make_unique<DeviceMemory>();
    // DM is handed out in units of 64 bytes, each aligned to that.
    check_limit(EINVAL, "log_align_req", attr->log_align_req, 6);
    dm->core = std::make_unique<hca::emu::DeviceMemory>(*owner.core, attr->length);
    dm->context = context;
    dm->memcpy_to_dm = memcpy_to_dm;
    dm->memcpy_from_dm = memcpy_from_dm;
    owner.retain();
    return dm.release();
  });
}

int free_dm(ibv_dm* which) {
  auto& dm = DeviceMemory::of(which);
  return guarded("ibv_free_dm", [&] {
    if (dm.users != 0) refuse(EBUSY, std::to_string(dm.users) + " MRs use the device memory");
    auto& owner = Context::of(dm.context);
    delete &dm;
    owner.release();
  });
}

ibv_mr* reg_dm_mr(ibv_pd* pd, ibv_dm* which, std::uint64_t offset, std::size_t length,
                  unsigned access) {
  return guarded_pointer("ibv_reg_dm_mr", [&]() -> ibv_mr* {
    auto& dm = DeviceMemory::of(which);
    if ((access & IBV_ACCESS_ZERO_BASED) == 0) {
      refuse(EINVAL, "a region of device memory is zero-based: IBV_ACCESS_ZERO_BASED");
    }
    const std::size_t size = dm.core->size();
    if (length == 0 || offset > size || length > size - offset) {
      refuse(EINVAL, std::to_string(length) + " bytes at " + std::to_string(offset) +
                         " of a device memory of " + std::to_string(size));
    }
    if (pd->context != dm.context) refuse(EINVAL, "PD and device memory are of two contexts");
    auto mr = std::make_unique<MemoryRegion>();
    hca::emu::Region region{0, length, dm.core->bytes().data() + offset, nullptr,
                            access_of(access)};
    region.owner = mr.get();
    mr->core = ProtectionDomain::of(pd).core->register_region(std::move(region));
    mr->length = length;
    mr->access = access;
    mr->memory = &dm;
    enter(*mr, pd);
    ++dm.users;
    return mr.release();
  });
}

}  // namespace weft::verbs
