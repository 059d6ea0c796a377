// Between normal form and hca::Layout. What is equal in normal form is equal as a layout.
#include <algorithm>
#include <cerrno>
#include <utility>

#include "datatype/normal_form.hpp"
#include "hca/layout_nodes.hpp"
#include "hca/status.hpp"

namespace weft::datatype {

using hca::Block;
using hca::Layout;
using hca::LayoutPtr;
using hca::Placed;

namespace {

/// Pieces of a list with up to this many blocks are entered in its SG list one by one: executing an
/// entry costs less than starting a layout of its own.
constexpr std::uint64_t short_piece = 16;
/// In lists of many items, so are equal longer ones in a row that have no more blocks than this
/// together: a layout of their own would take more memory.
constexpr std::uint64_t short_group = 128;
constexpr std::size_t many_items = 16;
/// Loop bodies of up to this many blocks become the entries of an interleaved layout.
constexpr std::uint64_t short_body = 32;

LayoutPtr sg_list(const Piece& p) {
  std::vector<Block> blocks;
  blocks.reserve(p.blocks());
  append_blocks(p, blocks);
  return Layout::sg_list(blocks);
}

LayoutPtr loop_layout(const Piece& p) {
  std::vector<hca::Dimension> dims;
  Piece inner = p;
  for (; inner.is_loop(); inner = inner.term->items[0]) {
    dims.push_back({inner.term->count, inner.term->stride});
  }
  if (inner.is_block()) return Layout::strided(p.offset, inner.length, dims);
  const Piece body = moved(p.term->items[0], p.offset);
  return Layout::repeat(body.blocks() <= short_body ? sg_list(body) : to_layout(body),
                        p.term->count, p.term->stride);
}

/// Groups the items: short ones into SG lists, equal long ones into indexed layouts.
LayoutPtr list_layout(const Piece& p) {
  const std::vector<Piece>& items = p.term->items;
  const auto is_short = [](const Piece& item) { return item.blocks() <= short_piece; };
  if (p.blocks() <= short_body || std::all_of(items.begin(), items.end(), is_short)) {
    return sg_list(p);
  }
  std::vector<Placed> parts;
  std::vector<Block> blocks;  // of the next SG list
  const auto add_list = [&] {
    if (!blocks.empty()) parts.push_back({0, Layout::sg_list(std::exchange(blocks, {}))});
  };
  for (std::size_t i = 0, end = 0; i < items.size(); i = end) {
    end = i + 1;
    while (end < items.size() && same_shape(items[i], items[end])) ++end;
    const bool listed = is_short(items[i]) ||
                        (items.size() > many_items && (end - i) * items[i].blocks() <= short_group);
    if (listed) {
      for (; i < end; ++i) append_blocks(moved(items[i], p.offset), blocks);
      continue;
    }
    add_list();
    const Piece first = moved(items[i], p.offset);
    if (end - i == 1) {
      parts.push_back({0, to_layout(first)});
      continue;
    }
    std::vector<std::int64_t> offsets;
    for (; i < end; ++i) offsets.push_back(moved(items[i], p.offset).offset);
    parts.push_back({0, Layout::indexed(to_layout(moved(first, -first.offset)), offsets)});
  }
  add_list();
  return parts.size() == 1 ? parts[0].layout : Layout::sequence(parts);
}

}  // namespace

LayoutPtr to_layout(const Piece& piece) {
  if (piece.empty()) return Layout::contiguous(0);
  if (piece.is_block()) return Layout::contiguous(piece.length, piece.offset);
  return piece.is_loop() ? loop_layout(piece) : list_layout(piece);
}

Piece from_layout(const Layout& layout) {
  if (layout.is_contiguous()) return block(layout.size(), layout.lower());
  if (const auto* strided = dynamic_cast<const hca::StridedLayout*>(&layout)) {
    Piece p = block(strided->block(), strided->offset());
    for (auto dim = strided->dims().rbegin(); dim != strided->dims().rend(); ++dim) {
      p = loop(p, dim->count, dim->stride);
    }
    return p;
  }
  std::vector<Piece> pieces;
  if (const auto* sg = dynamic_cast<const hca::SgListLayout*>(&layout)) {
    pieces.reserve(sg->block_count());
    for (std::uint64_t i = 0; i < sg->block_count(); ++i) {
      pieces.push_back(block(sg->entry(i).length, sg->entry(i).offset));
    }
    return list(std::move(pieces));
  }
  if (const auto* rounds = dynamic_cast<const hca::InterleavedLayout*>(&layout)) {
    for (const Block& b : rounds->entries()) pieces.push_back(block(b.length, b.offset));
    return loop(list(std::move(pieces)), rounds->count(), rounds->stride());
  }
  if (const auto* repeated = dynamic_cast<const hca::RepeatLayout*>(&layout)) {
    return loop(from_layout(*repeated->child()), repeated->count(), repeated->stride());
  }
  if (const auto* indexed = dynamic_cast<const hca::IndexedLayout*>(&layout)) {
    const Piece child = from_layout(*indexed->child());
    for (const std::int64_t offset : indexed->offsets()) pieces.push_back(moved(child, offset));
    return list(std::move(pieces));
  }
  if (const auto* sequence = dynamic_cast<const hca::SequenceLayout*>(&layout)) {
    for (const Placed& part : sequence->parts()) {
      pieces.push_back(moved(from_layout(*part.layout), part.offset));
    }
    return list(std::move(pieces));
  }
  throw hca::Error(EINVAL, "layout of an unknown class");
}

}  // namespace weft::datatype
