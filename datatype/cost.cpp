#include "datatype/cost.hpp"

#include <algorithm>
#include <bit>

#include "hca/layout_nodes.hpp"

namespace weft::datatype {

using hca::Layout;

namespace {

void add_stride(Cost& cost, std::int64_t stride, std::uint64_t block) {
  const std::uint64_t magnitude = stride < 0 ? std::uint64_t{0} - static_cast<std::uint64_t>(stride)
                                             : static_cast<std::uint64_t>(stride);
  const auto bits = static_cast<std::uint32_t>(std::bit_width(std::max(magnitude, block)));
  cost.stride_bits = std::max(cost.stride_bits, bits);
  cost.negative_strides |= stride < 0;
  cost.overlapping_strides |= magnitude < block;
}

/// Adds what is special to one layout and those below it.
void visit(Cost& cost, const Layout& layout, std::uint32_t depth) {
  cost.depth = std::max(cost.depth, depth);
  if (const auto* strided = dynamic_cast<const hca::StridedLayout*>(&layout)) {
    cost.dimensions = std::max(cost.dimensions, static_cast<std::uint32_t>(strided->dims().size()));
    for (const hca::Dimension& dim : strided->dims())
      add_stride(cost, dim.stride, strided->block());
  } else if (const auto* rounds = dynamic_cast<const hca::InterleavedLayout*>(&layout)) {
    cost.interleaved = std::max<std::uint64_t>(cost.interleaved, rounds->entries().size());
    for (const hca::Block& block : rounds->entries())
      add_stride(cost, rounds->stride(), block.length);
  } else if (layout.kind() == hca::LayoutKind::sg_list) {
    cost.entries = std::max(cost.entries, layout.block_count());
  } else if (const auto* repeated = dynamic_cast<const hca::RepeatLayout*>(&layout)) {
    add_stride(cost, repeated->stride(), 0);
    visit(cost, *repeated->child(), depth + 1);
  } else if (const auto* indexed = dynamic_cast<const hca::IndexedLayout*>(&layout)) {
    cost.entries = std::max<std::uint64_t>(cost.entries, indexed->offsets().size());
    visit(cost, *indexed->child(), depth + 1);
  } else if (const auto* sequence = dynamic_cast<const hca::SequenceLayout*>(&layout)) {
    cost.entries = std::max<std::uint64_t>(cost.entries, sequence->parts().size());
    for (const hca::Placed& part : sequence->parts()) visit(cost, *part.layout, depth + 1);
  }
}

std::string over(const char* what, std::uint64_t has, std::uint64_t limit) {
  return std::string(what) + " " + std::to_string(has) + ", limit " + std::to_string(limit);
}

}  // namespace

std::optional<Limits> limits_of_profile(const std::string& name) {
  if (name == "default") return Limits{};
  if (name == "connectx") {
    Limits limits;
    limits.max_entries = 65535;
    limits.max_interleaved = 64;
    limits.max_dimensions = 1;
    limits.max_depth = 2;
    limits.stride_bits = 16;
    limits.negative_strides = false;
    limits.overlapping_strides = false;
    return limits;
  }
  return std::nullopt;
}

Cost cost_of(const Layout& layout) {
  Cost cost;
  cost.bytes = layout.size();
  cost.blocks = layout.block_count();
  cost.footprint = layout.footprint();
  visit(cost, layout, 1);
  return cost;
}

std::string exceeds(const Cost& cost, const Limits& limits) {
  if (cost.blocks > limits.max_blocks) return over("blocks", cost.blocks, limits.max_blocks);
  if (cost.entries > limits.max_entries) {
    return over("list entries", cost.entries, limits.max_entries);
  }
  if (cost.interleaved > limits.max_interleaved) {
    return over("interleaved entries", cost.interleaved, limits.max_interleaved);
  }
  if (cost.dimensions > limits.max_dimensions) {
    return over("dimensions", cost.dimensions, limits.max_dimensions);
  }
  if (cost.depth > limits.max_depth) return over("nesting", cost.depth, limits.max_depth);
  if (cost.stride_bits > limits.stride_bits) {
    return over("stride bits", cost.stride_bits, limits.stride_bits);
  }
  if (cost.negative_strides && !limits.negative_strides) return "a stride is negative";
  if (cost.overlapping_strides && !limits.overlapping_strides) return "blocks overlap their stride";
  return {};
}

}  // namespace weft::datatype
