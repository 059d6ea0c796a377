// Memory windows of type 1 and 2B.
#pragma once

#include <infiniband/verbs.h>

#include <cstdint>
#include <functional>

#include "hca/status.hpp"

namespace weft::verbs {

struct MemoryRegion;
struct QueuePair;

struct MemoryWindow : ibv_mw {
  static MemoryWindow& of(ibv_mw* mw) noexcept { return *static_cast<MemoryWindow*>(mw); }

  std::uint32_t key = 0;       ///< bound last, or the one it was made with
  MemoryRegion* on = nullptr;  ///< bound to; stale once the key has been invalidated
};

ibv_mw* alloc_mw(ibv_pd* pd, ibv_mw_type type);
int dealloc_mw(ibv_mw* mw);
/// Type 1: the window's key changes when this returns; the bind itself is a work request.
int bind_mw(ibv_qp* qp, ibv_mw* mw, ibv_mw_bind* bind);
/// Windows that are bound to a region now. Under the lock of the context's domain.
int windows_on(const MemoryRegion& mr);

/// What the work requests for type 2 do when it is their turn. They throw hca::Error EINVAL.
std::function<hca::WcStatus()> binding(QueuePair& qp, ibv_mw* mw, std::uint32_t rkey,
                                       const ibv_mw_bind_info& info);
std::function<hca::WcStatus()> invalidation(QueuePair& qp, std::uint32_t rkey);

}  // namespace weft::verbs
