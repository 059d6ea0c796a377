#include "benchmarks/hand_pack.hpp"

#if defined __x86_64__
#include <immintrin.h>
#endif

#include <algorithm>
#include <cstring>
#include <type_traits>

namespace weft::benchmarks {
namespace {

/// Calls `function` with the length, as a constant where it is a usual one: that turns memcpy into
/// a few moves.
template <class Function>
void with_length(std::size_t length, Function function) {
  switch (length) {
    case 4:
      return function(std::integral_constant<std::size_t, 4>());
    case 8:
      return function(std::integral_constant<std::size_t, 8>());
    case 16:
      return function(std::integral_constant<std::size_t, 16>());
    case 24:
      return function(std::integral_constant<std::size_t, 24>());
    case 64:
      return function(std::integral_constant<std::size_t, 64>());
    case 256:
      return function(std::integral_constant<std::size_t, 256>());
    default:
      return function(length);
  }
}

template <bool packing, class Memory, class Packed>
inline void copy(Memory* memory, Packed* packed, std::size_t length) {
  if constexpr (packing) {
    std::memcpy(packed, memory, length);
  } else {
    std::memcpy(memory, packed, length);
  }
}

/// `count` blocks, `stride` bytes apart in memory and `step` bytes apart when packed.
template <bool packing, class Memory, class Packed, class Length>
void copy_row(Memory* memory, std::size_t stride, Packed* packed, std::size_t step,
              std::size_t count, Length length) {
  for (std::size_t i = 0; i < count; ++i)
    copy<packing>(memory + i * stride, packed + i * step, length);
}

/// `count` pairs of blocks.
template <bool packing, class Memory, class Packed, class Length>
void copy_pairs(Memory* memory, std::size_t stride, std::size_t second, Packed* packed,
                std::size_t count, Length length) {
  for (std::size_t i = 0; i < count; ++i, memory += stride, packed += 2 * length) {
    copy<packing>(memory, packed, length);
    copy<packing>(memory + second, packed + length, length);
  }
}

/// Whole words where there are only few of them; memcpy would cost a call per block.
template <bool packing, class Memory, class Packed>
void copy_blocks(const std::vector<Block>& blocks, Memory* memory, Packed* packed) {
  constexpr std::size_t word = 8, few = 64;
  for (const Block& block : blocks) {
    if (block.length % word != 0 || block.length > few) {
      copy<packing>(memory + block.offset, packed, block.length);
    } else {
      for (std::size_t i = 0; i < block.length; i += word)
        copy<packing>(memory + block.offset + i, packed + i, word);
    }
    packed += block.length;
  }
}

#if defined __x86_64__
constexpr std::size_t vector_bytes = 64;

bool has_masks() {
  return __builtin_cpu_supports("avx512bw") != 0;
}

/// Blocks of up to 64 bytes, whatever their lengths, without a branch.
template <bool packing, class Memory, class Packed>
[[gnu::target("avx512f,avx512bw")]] void copy_masked(const std::vector<Block>& blocks,
                                                     Memory* memory, Packed* packed) {
  for (const Block& block : blocks) {
    const __mmask64 mask = ~std::uint64_t{0} >> (vector_bytes - block.length);
    if constexpr (packing) {
      _mm512_mask_storeu_epi8(packed, mask, _mm512_maskz_loadu_epi8(mask, memory + block.offset));
    } else {
      _mm512_mask_storeu_epi8(memory + block.offset, mask, _mm512_maskz_loadu_epi8(mask, packed));
    }
    packed += block.length;
  }
}
#endif

}  // namespace

std::vector<HandPack::Plane> HandPack::planes_of(const std::vector<Block>& blocks) {
  std::vector<Row> rows;
  for (const Block& block : blocks) {
    if (!rows.empty() && rows.back().length == block.length) {
      Row& row = rows.back();
      const std::size_t step = block.offset - (row.offset + (row.count - 1) * row.stride);
      if (row.count == 1 && block.offset > row.offset) row.stride = step;
      if (block.offset == row.offset + row.count * row.stride && row.stride != 0) {
        ++row.count;
        continue;
      }
    }
    rows.push_back({block.offset, 1, 0, block.length});
  }
  std::vector<Plane> planes;
  for (const Row& row : rows) {
    if (!planes.empty()) {
      Plane& plane = planes.back();
      const Row& first = plane.row;
      if (plane.rows == 1 && row.offset > first.offset) plane.step = row.offset - first.offset;
      if (row.count == first.count && row.stride == first.stride && row.length == first.length &&
          plane.step != 0 && row.offset == first.offset + plane.rows * plane.step) {
        ++plane.rows;
        continue;
      }
    }
    planes.push_back({row, 1, 0});
  }
  return planes;
}

HandPack::HandPack(const Side& side) : planes_(planes_of(side.blocks)) {
  constexpr std::size_t small_plane = 8;
  if (side.blocks.size() <= small_plane || side.blocks.size() / planes_.size() >= small_plane)
    return;
  planes_.clear();
  blocks_ = side.blocks;
  length_ = blocks_.front().length;
  const bool equal = std::all_of(blocks_.begin(), blocks_.end(), [this](const Block& block) {
    return block.length == length_ && block.offset <= UINT32_MAX;
  });
  if (!equal) return;
  for (const Block& block : blocks_) offsets_.push_back(static_cast<std::uint32_t>(block.offset));
  blocks_.clear();
}

template <bool packing, class Memory, class Packed>
void HandPack::move(Memory* memory, Packed* packed) const {
  for (const Plane& plane : planes_) {
    const Row& row = plane.row;
    with_length(row.length, [&](auto length) {
      constexpr std::size_t pair = 2;
      auto* const first = memory + row.offset;
      const std::size_t row_bytes = row.count * length;
      if (row.count == pair) {
        copy_pairs<packing>(first, plane.step, row.stride, packed, plane.rows, length);
      } else if (plane.rows > 1 && plane.step == length) {
        // Neighbours in memory are in different rows.
        for (std::size_t i = 0; i < row.count; ++i)
          copy_row<packing>(first + i * row.stride, plane.step, packed + i * length, row_bytes,
                            plane.rows, length);
      } else {
        for (std::size_t r = 0; r < plane.rows; ++r)
          copy_row<packing>(first + r * plane.step, row.stride, packed + r * row_bytes, length,
                            row.count, length);
      }
    });
    packed += plane.rows * row.count * row.length;
  }
  if (!offsets_.empty()) {
    with_length(length_, [&](auto length) {
      for (std::size_t i = 0; i < offsets_.size(); ++i)
        copy<packing>(memory + offsets_[i], packed + i * length, length);
    });
  }
  if (blocks_.empty()) return;
#if defined __x86_64__
  static const bool masks = has_masks();
  const auto fits = [](const Block& block) { return block.length - 1 < vector_bytes; };
  if (masks && std::all_of(blocks_.begin(), blocks_.end(), fits))
    return copy_masked<packing>(blocks_, memory, packed);
#endif
  copy_blocks<packing>(blocks_, memory, packed);
}

void HandPack::pack(const std::byte* memory, std::byte* packed) const {
  move<true>(memory, packed);
}

void HandPack::unpack(const std::byte* packed, std::byte* memory) const {
  move<false>(memory, packed);
}

}  // namespace weft::benchmarks
