#include "benchmarks/hand_pack.hpp"

#include <cstring>

namespace weft::benchmarks {
namespace {

// A length known at compile time turns memcpy into a few moves.
template <std::size_t Length>
void gather(const std::byte* from, std::size_t count, std::size_t stride, std::byte* to) {
  for (std::size_t i = 0; i < count; ++i) std::memcpy(to + i * Length, from + i * stride, Length);
}
template <std::size_t Length>
void scatter(const std::byte* from, std::size_t count, std::size_t stride, std::byte* to) {
  for (std::size_t i = 0; i < count; ++i) std::memcpy(to + i * stride, from + i * Length, Length);
}

void gather_row(const std::byte* from, std::size_t count, std::size_t stride, std::size_t length,
                std::byte* to) {
  switch (length) {
    case 4:
      return gather<4>(from, count, stride, to);
    case 8:
      return gather<8>(from, count, stride, to);
    case 16:
      return gather<16>(from, count, stride, to);
    case 24:
      return gather<24>(from, count, stride, to);
    case 64:
      return gather<64>(from, count, stride, to);
    case 256:
      return gather<256>(from, count, stride, to);
    default:
      for (std::size_t i = 0; i < count; ++i)
        std::memcpy(to + i * length, from + i * stride, length);
  }
}

void scatter_row(const std::byte* from, std::size_t count, std::size_t stride, std::size_t length,
                 std::byte* to) {
  switch (length) {
    case 4:
      return scatter<4>(from, count, stride, to);
    case 8:
      return scatter<8>(from, count, stride, to);
    case 16:
      return scatter<16>(from, count, stride, to);
    case 24:
      return scatter<24>(from, count, stride, to);
    case 64:
      return scatter<64>(from, count, stride, to);
    case 256:
      return scatter<256>(from, count, stride, to);
    default:
      for (std::size_t i = 0; i < count; ++i)
        std::memcpy(to + i * stride, from + i * length, length);
  }
}

/// Whole words where there are only few of them; memcpy would cost a call per block.
inline void copy_block(const std::byte* from, std::size_t length, std::byte* to) {
  constexpr std::size_t word = 8, few = 64;
  if (length % word != 0 || length > few) {
    std::memcpy(to, from, length);
    return;
  }
  for (std::size_t i = 0; i < length; i += word) std::memcpy(to + i, from + i, word);
}

}  // namespace

HandPack::HandPack(const Side& side) {
  for (const Block& block : side.blocks) {
    if (!rows_.empty() && rows_.back().length == block.length) {
      Row& row = rows_.back();
      const std::size_t step = block.offset - (row.offset + (row.count - 1) * row.stride);
      if (row.count == 1 && block.offset > row.offset) row.stride = step;
      if (block.offset == row.offset + row.count * row.stride && row.stride != 0) {
        ++row.count;
        continue;
      }
    }
    rows_.push_back({block.offset, 1, 0, block.length});
  }
  constexpr std::size_t short_row = 8;
  if (side.blocks.size() > 1 && side.blocks.size() / rows_.size() < short_row &&
      side.blocks.size() > short_row) {
    blocks_ = side.blocks;
    rows_.clear();
  }
}

void HandPack::pack(const std::byte* memory, std::byte* packed) const {
  for (const Row& row : rows_) {
    gather_row(memory + row.offset, row.count, row.stride, row.length, packed);
    packed += row.count * row.length;
  }
  for (const Block& block : blocks_) {
    copy_block(memory + block.offset, block.length, packed);
    packed += block.length;
  }
}

void HandPack::unpack(const std::byte* packed, std::byte* memory) const {
  for (const Row& row : rows_) {
    scatter_row(packed, row.count, row.stride, row.length, memory + row.offset);
    packed += row.count * row.length;
  }
  for (const Block& block : blocks_) {
    copy_block(packed, block.length, memory + block.offset);
    packed += block.length;
  }
}

}  // namespace weft::benchmarks
