// Kernels: loops that move many small blocks between scattered memory and a packed stream.
//
// A kernel is compiled for one class of block size, so that moving a block is a fixed handful of
// instructions and never a call of memcpy. Sizes that are no power of two are moved as two
// overlapping powers of two (12 bytes: bytes 0-7 and 4-11). Every kernel exists for several
// instruction sets; the choice is made once, at run time, when a layout is constructed (explicitly
// and not by ifunc, which sanitizers cannot live with).
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

namespace weft::hca::kernels {

/// Offset and length of a block of unequal lengths, counted from the list's lowest byte.
struct Entry32 {
  std::uint32_t offset;
  std::uint32_t length;
  bool operator==(const Entry32&) const = default;
};

// `packed` runs through the stream without gaps, `memory` is where the blocks are. Nothing outside
// the blocks is read or written. Streams and blocks must not overlap each other.

using GatherStrided = void (*)(std::byte* packed, const std::byte* memory, std::ptrdiff_t stride,
                               std::size_t count, std::size_t block) noexcept;
using ScatterStrided = void (*)(std::byte* memory, std::ptrdiff_t stride, const std::byte* packed,
                                std::size_t count, std::size_t block) noexcept;
/// Strided on both sides.
using CopyStrided = void (*)(std::byte* out, std::ptrdiff_t out_stride, const std::byte* in,
                             std::ptrdiff_t in_stride, std::size_t count,
                             std::size_t block) noexcept;
/// Two dimensions on both sides, `inner` ones within `outer` ones.
struct Step {
  std::ptrdiff_t out;
  std::ptrdiff_t in;
  std::size_t count;
};
using CopyPlane = void (*)(std::byte* out, const std::byte* in, const Step& outer,
                           const Step& inner, std::size_t block) noexcept;
template <typename Offset>
using GatherList = void (*)(std::byte* packed, const std::byte* memory, const Offset* offsets,
                            std::size_t count, std::size_t block) noexcept;
template <typename Offset>
using ScatterList = void (*)(std::byte* memory, const Offset* offsets, const std::byte* packed,
                             std::size_t count, std::size_t block) noexcept;

/// The kernels of one class of block size.
struct BlockKernels {
  GatherStrided gather;
  ScatterStrided scatter;
  CopyStrided copy;
  CopyPlane plane;
  GatherList<std::uint32_t> gather_list32;
  ScatterList<std::uint32_t> scatter_list32;
  GatherList<std::uint64_t> gather_list64;
  ScatterList<std::uint64_t> scatter_list64;
};

/// Blocks of unequal lengths.
struct MixedKernels {
  void (*gather)(std::byte* packed, const std::byte* memory, const Entry32* entries,
                 std::size_t count) noexcept;
  void (*scatter)(std::byte* memory, const Entry32* entries, const std::byte* packed,
                  std::size_t count) noexcept;
};

/// Number of classes of block size: see class_of().
inline constexpr std::size_t class_count = 17;

/// All kernels of one instruction set.
struct Table {
  const char* name;
  BlockKernels blocks[class_count];
  MixedKernels mixed;
};

/// Class of a block size > 0: exact and odd sizes for each power of two up to 128, one for wider.
std::size_t class_of(std::size_t block) noexcept;

/// The tables this processor can run, best first; never empty.
std::span<const Table* const> tables() noexcept;

/// The kernels of the best table for a block size.
inline const BlockKernels& kernels_for(std::size_t block) noexcept {
  return tables().front()->blocks[class_of(block)];
}
inline const MixedKernels& mixed_kernels() noexcept {
  return tables().front()->mixed;
}

}  // namespace weft::hca::kernels
