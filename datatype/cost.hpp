// What a layout costs, and whether a device can take it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>

#include "hca/layout.hpp"

namespace weft::datatype {

/// What a device accepts in one layout memory region. The defaults are those of the emulated
/// device.
struct Limits {
  std::uint64_t max_blocks = UINT64_MAX;               ///< blocks in all, repetitions counted
  std::uint64_t max_entries = std::uint64_t{1} << 26;  ///< entries of one SG list or index list
  std::uint64_t max_interleaved = 1024;                ///< entries of an interleaved layout
  std::uint32_t max_dimensions = 64;                   ///< of a strided layout
  std::uint32_t max_depth = 64;                        ///< layouts over layouts; 1: none
  std::uint32_t stride_bits = 63;                      ///< a stride, and a block in it, in bytes
  bool negative_strides = true;
  bool overlapping_strides = true;  ///< a stride shorter than its block
};

/// "default" or "connectx" (what mlx5 can express in one interleaved or list MR); nullopt for other
/// names.
std::optional<Limits> limits_of_profile(const std::string& name);

struct Cost {
  std::uint64_t bytes = 0;        ///< of the packed stream
  std::uint64_t blocks = 0;       ///< pieces that are moved
  std::uint64_t entries = 0;      ///< of the longest list in it
  std::uint64_t interleaved = 0;  ///< entries of the largest interleaved layout in it
  std::uint32_t dimensions = 0;   ///< of the strided layout with most
  std::uint32_t depth = 0;        ///< layouts over layouts
  std::uint32_t stride_bits = 0;  ///< that the largest stride needs
  bool negative_strides = false;
  bool overlapping_strides = false;
  std::size_t footprint = 0;  ///< bytes of memory the description takes

  [[nodiscard]] double mean_block() const noexcept {
    return blocks == 0 ? 0.0 : static_cast<double>(bytes) / static_cast<double>(blocks);
  }
};

/// O(description).
Cost cost_of(const hca::Layout& layout);

/// Empty when the device can take the layout, otherwise why not: "stride bits 21, limit 16".
std::string exceeds(const Cost& cost, const Limits& limits);

}  // namespace weft::datatype
