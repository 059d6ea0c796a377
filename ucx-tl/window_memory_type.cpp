#include "ucx-tl/window_memory_type.hpp"

namespace weft::ucx {
namespace {

/// Below where UCP begins its rendezvous (79,752 bytes, by UCX_WEFT_REG_COST). Beyond, such a
/// window would go through host memory and UCP's pipeline.
constexpr std::uint64_t longest_coarse = 77 * 1024;

/// Blocks so short that one piece of UCP's has hundreds of them.
constexpr std::uint64_t short_block = 32;

/// Whether all blocks lie in few sets of the L1 cache (4 KiB from one line of a set to the next):
/// each store has to drive a changed line out of it, 10 ns a block.
bool meets_in_cache(std::uint64_t stride, std::uint64_t blocks) noexcept {
  constexpr std::uint64_t set_distance = 1024;  // 4 sets of 8 to 12 lines
  constexpr std::uint64_t lines = 256;
  return stride != 0 && stride % set_distance == 0 && blocks >= lines;
}

/// Whether the blocks lie in more pages than the processor keeps translations for.
bool exceeds_translations(std::uint64_t stride, std::uint64_t blocks) noexcept {
  constexpr std::uint64_t page = 4096;
  constexpr std::uint64_t pages = 4096;
  return stride >= page && blocks > pages;
}

/// Whether moving a block takes so long that sender and receiver had better be at work at the same
/// time on small pieces, whose signals take some 0.3 us each.
bool moves_slowly(const hca::Layout& layout) noexcept {
  const std::uint64_t blocks = layout.block_count();
  if (blocks < 2) return false;
  const std::uint64_t block = layout.size() / blocks;
  if (block > short_block) return false;
  const auto reach = static_cast<std::uint64_t>(layout.upper() - layout.lower());
  if (reach <= block) return false;
  const std::uint64_t all_strides = reach - block;
  const std::uint64_t stride = all_strides / (blocks - 1);
  const bool even = stride * (blocks - 1) == all_strides;
  return (even && meets_in_cache(stride, blocks)) ||
         (block <= short_block / 4 && exceeds_translations(stride, blocks));
}

}  // namespace

ucs_memory_type_t memory_type_for_send(const hca::Layout& layout, std::uint64_t bytes) noexcept {
  return bytes > longest_coarse || moves_slowly(layout) ? window_memory_type
                                                        : coarse_window_memory_type;
}

}  // namespace weft::ucx
