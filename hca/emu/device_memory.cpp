#include "hca/emu/device_memory.hpp"

#include <cerrno>
#include <cstring>
#include <string>

#include "hca/status.hpp"

namespace weft::hca::emu {

DeviceMemory::DeviceMemory(Context& context, std::size_t length, DmPurpose purpose)
    : device_(context.device()), length_(length), at_(device_.allocate(length, purpose)) {}

DeviceMemory::~DeviceMemory() {
  try {
    device_.free(at_, length_);
  } catch (const Error&) {
    // Somebody has damaged the device file: it is this process's no more.
  }
}

std::span<std::byte> DeviceMemory::bytes() const noexcept {
  return device_.memory().subspan(at_, length_);
}

void DeviceMemory::check(std::size_t offset, std::size_t length) const {
  if (offset > length_ || length > length_ - offset) {
    throw Error(EINVAL, "bytes " + std::to_string(offset) + " to " + std::to_string(offset) +
                            " + " + std::to_string(length) + " of a DM of " +
                            std::to_string(length_));
  }
}

void DeviceMemory::copy_to(std::size_t offset, std::span<const std::byte> from) {
  check(offset, from.size());
  std::memcpy(bytes().data() + offset, from.data(), from.size());
}

void DeviceMemory::copy_from(std::size_t offset, std::span<std::byte> to) const {
  check(offset, to.size());
  std::memcpy(to.data(), bytes().data() + offset, to.size());
}

}  // namespace weft::hca::emu
