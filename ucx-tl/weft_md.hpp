// Memory domain of weft: regions of host memory and of windows, with 8-byte remote keys.
#pragma once

#include <memory>
#include <string>

#include "hca/emu/domain.hpp"
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
};

/// What travels to the peer. The address travels with each request.
struct PackedKey {
  std::uint32_t key;
  std::uint32_t reserved;
};
static_assert(sizeof(PackedKey) == 8);

extern uct_component component;

}  // namespace weft::ucx::wire
