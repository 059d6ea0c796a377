#include "hca/emu/protection_domain.hpp"

#include <cerrno>

#include "hca/emu/device_memory.hpp"
#include "hca/status.hpp"

namespace weft::hca::emu {

namespace {
/// 0 is for regions that belong to no PD.
std::atomic<std::uint32_t> next_number{1};
}  // namespace

ProtectionDomain::ProtectionDomain(Context& context)
    : domain_(context.shared_domain()),
      number_(next_number.fetch_add(1, std::memory_order_relaxed)) {}

std::unique_ptr<MemoryRegion> ProtectionDomain::register_region(Region region) {
  region.pd = number_;
  return std::make_unique<MemoryRegion>(domain_, std::move(region));
}

std::unique_ptr<MemoryRegion> ProtectionDomain::register_memory(void* addr, std::uint64_t length,
                                                                Access access) {
  return std::make_unique<MemoryRegion>(
      domain_, Region{reinterpret_cast<std::uint64_t>(addr), length, static_cast<std::byte*>(addr),
                      nullptr, access, number_});
}

std::unique_ptr<MemoryRegion> ProtectionDomain::register_layout(void* base, LayoutPtr layout,
                                                                Access access) {
  if (!layout) throw Error(EINVAL, "a layout region needs a layout");
  const std::uint64_t length = layout->size();
  return std::make_unique<MemoryRegion>(domain_, Region{0, length, static_cast<std::byte*>(base),
                                                        std::move(layout), access, number_});
}

std::unique_ptr<MemoryRegion> ProtectionDomain::register_device_memory(DeviceMemory& memory,
                                                                       Access access) {
  return std::make_unique<MemoryRegion>(
      domain_, Region{0, memory.bytes().size(), memory.bytes().data(), nullptr, access, number_});
}

}  // namespace weft::hca::emu
