// The memory of one side of a message: the bytes a type map reaches with a margin around them, all
// filled with a pattern, so that a byte read or written in the wrong place shows.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "tests/mpi/oracle/type_map.hpp"

namespace weft::random_types {

class Buffer {
 public:
  /// Room for `map`; `misalignment` moves displacement 0 by some bytes.
  Buffer(const oracle::TypeMap& map, int misalignment);

  /// Writes the pattern number `seed` over everything.
  void fill(std::uint64_t seed);
  /// Where displacement 0 lies (it may be outside of the memory).
  std::byte* base() { return memory_.data() + offset_; }
  const std::byte* base() const { return memory_.data() + offset_; }
  const std::vector<std::byte>& memory() const { return memory_; }
  /// Displacement of the first byte that differs from the other buffer of the same map.
  std::optional<std::ptrdiff_t> first_difference(const Buffer& other) const;

 private:
  std::ptrdiff_t offset_;
  std::vector<std::byte> memory_;
};

}  // namespace weft::random_types
