// Access rights of a memory region (IB specification 10.6.3).
#pragma once

#include <cstdint>

namespace weft::hca {

enum class Access : std::uint32_t {
  none = 0,
  local_write = 1u << 0,
  remote_write = 1u << 1,
  remote_read = 1u << 2,
  remote_atomic = 1u << 3,
  all = 0xf,
};

constexpr Access operator|(Access a, Access b) noexcept {
  return static_cast<Access>(static_cast<std::uint32_t>(a) | static_cast<std::uint32_t>(b));
}
constexpr Access operator&(Access a, Access b) noexcept {
  return static_cast<Access>(static_cast<std::uint32_t>(a) & static_cast<std::uint32_t>(b));
}
constexpr bool allows(Access have, Access need) noexcept {
  return (have & need) == need;
}

}  // namespace weft::hca
