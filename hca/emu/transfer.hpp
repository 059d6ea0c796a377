// Moving bytes between memory, contiguous or of any layout, and a piece that is contiguous.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>

#include "hca/emu/key_table.hpp"
#include "hca/emu/operation.hpp"
#include "hca/gather_for_peer.hpp"
#include "hca/scatter_from_peer.hpp"

namespace weft::hca::emu {

inline void gather(const LocalMemory& memory, std::uint64_t at, std::span<std::byte> out) noexcept {
  if (memory.layout == nullptr) {
    if (out.empty()) return;  // no address need be given for nothing
    std::memcpy(out.data(), memory.base + memory.offset + at, out.size());
  } else {
    gather_for_peer(*memory.layout, memory.base, memory.offset + at, out);
  }
}

inline void scatter(const LocalMemory& memory, std::uint64_t at,
                    std::span<const std::byte> in) noexcept {
  if (memory.layout == nullptr) {
    if (in.empty()) return;  // no address need be given for nothing
    std::memcpy(memory.base + memory.offset + at, in.data(), in.size());
  } else {
    scatter_from_peer(*memory.layout, memory.base, memory.offset + at, in);
  }
}

/// The memory that a region's address `addr` names; the region has been checked for it.
inline LocalMemory memory_at(const Region& region, std::uint64_t addr) noexcept {
  return {region.base, region.layout.get(), addr - region.addr};
}

/// Whether this is copied about as fast as contiguous memory.
inline bool is_coarse(const LocalMemory& memory) noexcept {
  return memory.layout == nullptr || memory.layout->mean_block(memory.base) >= long_block;
}

/// Pieces sent to one link in one pass: others wait no longer than that.
constexpr unsigned pieces_per_pass = 4;

/// What the largest piece of a transfer may be set to, in bytes.
constexpr std::uint32_t least_largest_piece = 16 * 1024;
constexpr std::uint32_t most_largest_piece = 64 * 1024;

/// Size of the pieces in which a transfer of `length` bytes goes: small enough that both sides work
/// at the same time, at most `most` (16 KiB or more, and no more than a large slot). A piece costs
/// some 0.3 us beside its bytes, so that a transfer of some ten pieces has larger ones than a
/// sixteenth, above all where memory is coarse on both sides, which takes less time.
inline std::uint32_t piece_size(std::uint64_t length, bool coarse, std::uint64_t most) noexcept {
  const std::uint64_t least = coarse ? 16 * 1024 : 4096;
  const std::uint64_t few = coarse ? length / 4 : std::min<std::uint64_t>(length / 8, 16 * 1024);
  const std::uint64_t wanted = std::max(length / 16, few) / 64 * 64;
  return static_cast<std::uint32_t>(std::clamp(wanted, least, most));
}

}  // namespace weft::hca::emu
