// Packing by hand: the loops a careful programmer writes for a known shape.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "benchmarks/shape.hpp"

namespace weft::benchmarks {

class HandPack {
 public:
  explicit HandPack(const Side& side);

  void pack(const std::byte* memory, std::byte* packed) const;
  void unpack(const std::byte* packed, std::byte* memory) const;

 private:
  /// `count` blocks of one length, equally far apart.
  struct Row {
    std::size_t offset, count, stride, length;
  };
  /// `rows` such rows, equally far apart.
  struct Plane {
    Row row;
    std::size_t rows, step;
  };

  static std::vector<Plane> planes_of(const std::vector<Block>& blocks);
  template <bool packing, class Memory, class Packed>
  void move(Memory* memory, Packed* packed) const;

  std::vector<Plane> planes_;
  /// Used instead of planes_ where these would be small: every block for itself.
  std::vector<Block> blocks_;
  /// Instead of blocks_ where all have the same length.
  std::vector<std::uint32_t> offsets_;
  std::size_t length_ = 0;
};

}  // namespace weft::benchmarks
