#include "benchmarks/content.hpp"

namespace weft::benchmarks {
namespace {

/// What rank `rank` has at this place of its send buffer.
std::byte content(int rank, std::size_t offset) {
  return static_cast<std::byte>((offset * 0x9e3779b1u >> 13) + 85 * rank);
}

}  // namespace

void fill(const Side& side, int rank, std::vector<std::byte>& memory) {
  for (const Block& block : side.blocks) {
    for (std::size_t i = 0; i < block.length; ++i) {
      memory[block.offset + i] = content(rank, block.offset + i);
    }
  }
}

bool arrived(const Shape& shape, int from, const std::vector<std::byte>& memory) {
  std::vector<std::byte> expected(memory.size(), untouched);
  auto block = shape.send.blocks.begin();
  std::size_t within = 0;
  for (const Block& target : shape.recv.blocks) {
    for (std::size_t i = 0; i < target.length; ++i) {
      expected[target.offset + i] = content(from, block->offset + within);
      if (++within == block->length) {
        ++block;
        within = 0;
      }
    }
  }
  return expected == memory;
}

}  // namespace weft::benchmarks
