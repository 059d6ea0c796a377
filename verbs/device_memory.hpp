// Device memory (DM) as the verbs give it out.
#pragma once

#include <infiniband/verbs.h>

#include <atomic>
#include <cstdint>
#include <memory>

#include "hca/emu/device_memory.hpp"

namespace weft::verbs {

struct DeviceMemory : ibv_dm {
  static DeviceMemory& of(ibv_dm* dm) noexcept { return *static_cast<DeviceMemory*>(dm); }

  std::unique_ptr<hca::emu::DeviceMemory> core;
  std::atomic<int> users{0};  ///< MRs on it
};

ibv_dm* alloc_dm(ibv_context* context, ibv_alloc_dm_attr* attr);
int free_dm(ibv_dm* dm);
ibv_mr* reg_dm_mr(ibv_pd* pd, ibv_dm* dm, std::uint64_t offset, std::size_t length,
                  unsigned access);

}  // namespace weft::verbs
