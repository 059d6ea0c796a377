// Memory domain of weft: regions of host memory and of windows, with 8-byte remote keys.
#pragma once

#include <map>
#include <memory>
#include <mutex>
#include <string>

#include "hca/emu/domain.hpp"
#include "hca/emu/shared_region.hpp"
#include "ucx-tl/abi/uct_1_13.h"

namespace weft::ucx::wire {

inline constexpr char name[] = "weft";

struct MdConfig {
  uct_md_config super;
  char* device;
  double reg_cost;
  int async;
};

struct Md : uct_md {
  std::shared_ptr<hca::emu::Domain> domain;  ///< the keys, shared by the contexts of all interfaces
  std::string device;
  double reg_cost;
  bool async;
  /// What UCX allocated here, by key.
  std::mutex shared_mutex{};
  std::map<std::uint32_t, std::unique_ptr<hca::emu::SharedRegion>> shared{};
};

/// What travels to the peer. The address travels with each request.
struct PackedKey {
  std::uint32_t key;
  std::uint32_t shared;  ///< 0, or 1 + the descriptor of a SharedRegion
};
static_assert(sizeof(PackedKey) == 8);

/// An rkey is the packed key as one number.
inline std::uint32_t key_of(uct_rkey_t rkey) noexcept {
  return static_cast<std::uint32_t>(rkey);
}
inline std::uint32_t shared_of(uct_rkey_t rkey) noexcept {
  return static_cast<std::uint32_t>(rkey >> 32);
}

extern uct_component component;

}  // namespace weft::ucx::wire
