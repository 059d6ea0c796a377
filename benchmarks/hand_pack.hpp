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

  std::vector<Row> rows_;
  /// Used instead of rows_ where these would be short: every block for itself.
  std::vector<Block> blocks_;
};

}  // namespace weft::benchmarks
