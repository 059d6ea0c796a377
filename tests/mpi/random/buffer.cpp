#include "tests/mpi/random/buffer.hpp"

#include <algorithm>
#include <cstring>

namespace weft::random_types {
namespace {

constexpr std::ptrdiff_t margin = 80;

}  // namespace

Buffer::Buffer(const oracle::TypeMap& map, int misalignment)
    : offset_(margin + misalignment - map.true_lb()),
      memory_(map.true_extent() + 2 * margin + misalignment) {}

void Buffer::fill(std::uint64_t seed) {
  std::uint64_t x = seed * 2 + 1;
  std::size_t at = 0;
  for (; at + sizeof(x) <= memory_.size(); at += sizeof(x)) {
    x ^= x >> 12;
    x ^= x << 25;
    x ^= x >> 27;
    std::memcpy(memory_.data() + at, &x, sizeof(x));
  }
  std::memset(memory_.data() + at, 0x3c, memory_.size() - at);
}

std::optional<std::ptrdiff_t> Buffer::first_difference(const Buffer& other) const {
  auto [mine, theirs] = std::mismatch(memory_.begin(), memory_.end(), other.memory_.begin());
  if (mine == memory_.end()) return std::nullopt;
  return mine - memory_.begin() - offset_;
}

}  // namespace weft::random_types
