// What UCP is told that a window is. It has one size of piece and one way for each memory type.
#pragma once

#include <ucs/memory/memory_type.h>

#include <cstdint>

#include "hca/layout.hpp"

namespace weft::ucx {

// UCX 1.13 has no memory type for "reached by RDMA only"; those of GPUs are not served by anybody
// in a build without them, and these two are not taken for CPU-accessible.

/// The wire registers it: short messages go in zero-copy pieces of WireLimits::max_zcopy, long ones
/// by rendezvous. All windows may be this.
inline constexpr ucs_memory_type_t window_memory_type = UCS_MEMORY_TYPE_ROCM;
/// Nobody registers it: goes in pieces of WireLimits::max_bcopy. For sends below UCP's rendezvous.
inline constexpr ucs_memory_type_t coarse_window_memory_type = UCS_MEMORY_TYPE_CUDA_MANAGED;

/// The better of the two for sending `bytes`, all of the layout's or fewer.
ucs_memory_type_t memory_type_for_send(const hca::Layout& layout, std::uint64_t bytes) noexcept;

}  // namespace weft::ucx
