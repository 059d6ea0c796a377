#include "hca/mlx5/memory.hpp"

#include <cstring>

namespace weft::hca::mlx5 {

unsigned flags_of(Access access) noexcept {
  const auto flag = [access](Access right, unsigned bit) {
    return allows(access, right) ? bit : 0;
  };
  return flag(Access::local_write, IBV_ACCESS_LOCAL_WRITE) |
         flag(Access::remote_write, IBV_ACCESS_REMOTE_WRITE) |
         flag(Access::remote_read, IBV_ACCESS_REMOTE_READ) |
         flag(Access::remote_atomic, IBV_ACCESS_REMOTE_ATOMIC);
}

MemoryRegion::MemoryRegion(const ProtectionDomain& pd, void* addr, std::size_t length,
                           Access access)
    : mr_(made(ibv_reg_mr(pd.get(), addr, length, static_cast<int>(flags_of(access))),
               "cannot register " + std::to_string(length) + " bytes")) {}

DeviceMemory::DeviceMemory(const ProtectionDomain& pd, std::size_t length, Access access)
    : length_(length) {
  const unsigned flags = flags_of(access);
  ibv_alloc_dm_attr attr{};
  attr.length = length;
  dm_.reset(ibv_alloc_dm(pd.get()->context, &attr));
  if (dm_) mr_.reset(ibv_reg_dm_mr(pd.get(), dm_.get(), 0, length, flags | IBV_ACCESS_ZERO_BASED));
  if (mr_) return;
  dm_.reset();
  host_.resize(length);
  mr_.reset(made(ibv_reg_mr_iova(pd.get(), host_.data(), length, 0, static_cast<int>(flags)),
                 "cannot register " + std::to_string(length) + " bytes instead of device memory"));
}

void DeviceMemory::check(std::size_t offset, std::size_t length) const {
  if (offset > length_ || length > length_ - offset) {
    throw Error(EINVAL, std::to_string(length) + " bytes at " + std::to_string(offset) +
                            " of a device memory of " + std::to_string(length_));
  }
}

void DeviceMemory::copy_to(std::size_t offset, std::span<const std::byte> from) {
  check(offset, from.size());
  if (!dm_) {
    std::memcpy(host_.data() + offset, from.data(), from.size());
  } else {
    succeeded(ibv_memcpy_to_dm(dm_.get(), offset, from.data(), from.size()), "copy to DM");
  }
}

void DeviceMemory::copy_from(std::size_t offset, std::span<std::byte> to) const {
  check(offset, to.size());
  if (!dm_) {
    std::memcpy(to.data(), host_.data() + offset, to.size());
  } else {
    succeeded(ibv_memcpy_from_dm(to.data(), dm_.get(), offset, to.size()), "copy from DM");
  }
}

}  // namespace weft::hca::mlx5
