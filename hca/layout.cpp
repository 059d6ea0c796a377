#include "hca/layout.hpp"

#include <algorithm>

#include "hca/layout_detail.hpp"
#include "hca/layout_nodes.hpp"

namespace weft::hca {

const char* to_string(LayoutKind kind) noexcept {
  switch (kind) {
    case LayoutKind::contiguous:
      return "contiguous";
    case LayoutKind::strided:
      return "strided";
    case LayoutKind::interleaved:
      return "interleaved";
    case LayoutKind::sg_list:
      return "sg_list";
    case LayoutKind::nested:
      return "nested";
  }
  return "unknown";
}

namespace {

LayoutPtr empty() {
  static const LayoutPtr layout = std::make_shared<ContiguousLayout>(0, 0);
  return layout;
}

void require(const LayoutPtr& layout) {
  if (!layout) throw Error(EINVAL, "layout: a part is null");
}

LayoutPtr shifted(const LayoutPtr& layout, std::int64_t offset) {
  if (offset == 0) return layout;
  const Placed part{offset, layout};
  return std::make_shared<SequenceLayout>(std::vector<Placed>{part});
}

}  // namespace

LayoutPtr Layout::contiguous(std::uint64_t length, std::int64_t offset) {
  if (length == 0) return empty();
  return std::make_shared<ContiguousLayout>(length, offset);
}

LayoutPtr Layout::strided(std::int64_t offset, std::uint64_t block,
                          std::span<const Dimension> dims) {
  const bool none = block == 0 || std::any_of(dims.begin(), dims.end(),
                                              [](const Dimension& d) { return d.count == 0; });
  if (none) return empty();
  if (dims.empty()) return contiguous(block, offset);
  return std::make_shared<StridedLayout>(offset, block,
                                         std::vector<Dimension>(dims.begin(), dims.end()));
}

LayoutPtr Layout::sg_list(std::span<const Block> blocks) {
  std::vector<Block> full;
  full.reserve(blocks.size());
  std::copy_if(blocks.begin(), blocks.end(), std::back_inserter(full),
               [](const Block& b) { return b.length != 0; });
  if (full.empty()) return empty();
  if (full.size() == 1) return contiguous(full[0].length, full[0].offset);
  return SgListLayout::make(std::move(full));
}

LayoutPtr Layout::repeat(LayoutPtr child, std::uint64_t count, std::int64_t stride) {
  require(child);
  if (count == 0 || child->size() == 0) return empty();
  if (count == 1) return child;
  if (const auto* list = dynamic_cast<const SgListLayout*>(child.get());
      list != nullptr && list->block_count() <= InterleavedLayout::max_entries) {
    std::vector<Block> entries(list->block_count());
    for (std::size_t i = 0; i < entries.size(); ++i) entries[i] = list->entry(i);
    return std::make_shared<InterleavedLayout>(std::move(entries), count, stride);
  }
  return std::make_shared<RepeatLayout>(std::move(child), count, stride);
}

LayoutPtr Layout::indexed(LayoutPtr child, std::span<const std::int64_t> offsets) {
  require(child);
  if (offsets.empty() || child->size() == 0) return empty();
  if (offsets.size() == 1) return shifted(child, offsets[0]);
  return std::make_shared<IndexedLayout>(std::move(child),
                                         std::vector<std::int64_t>(offsets.begin(), offsets.end()));
}

LayoutPtr Layout::sequence(std::span<const Placed> parts) {
  std::vector<Placed> full;
  full.reserve(parts.size());
  for (const Placed& part : parts) {
    require(part.layout);
    if (part.layout->size() != 0) full.push_back(part);
  }
  if (full.empty()) return empty();
  if (full.size() == 1) return shifted(full[0].layout, full[0].offset);
  return std::make_shared<SequenceLayout>(std::move(full));
}

LayoutPtr Layout::slice(LayoutPtr child, std::uint64_t offset, std::uint64_t length) {
  require(child);
  if (offset > child->size() || length > child->size() - offset) {
    throw Error(EINVAL, "layout: " + detail::text(length) + " bytes from byte " +
                            detail::text(offset) + " on of a stream of " +
                            detail::text(child->size()));
  }
  if (length == 0) return empty();
  if (length == child->size()) return child;
  if (child->is_contiguous()) {
    return contiguous(length, child->lower() + static_cast<std::int64_t>(offset));
  }
  return std::make_shared<SliceLayout>(std::move(child), offset, length);
}

LayoutPtr Layout::round_robin(std::vector<RoundRobinEntry> entries) {
  std::erase_if(entries, [](const RoundRobinEntry& e) {
    return e.block == 0 ||
           std::any_of(e.dims.begin(), e.dims.end(), [](auto& d) { return d.count == 0; });
  });
  if (entries.empty()) return empty();
  return std::make_shared<RoundRobinLayout>(std::move(entries));
}

namespace detail {
std::string text(std::uint64_t value) {
  return std::to_string(value);
}
std::string text(std::int64_t value) {
  return std::to_string(value);
}
}  // namespace detail

}  // namespace weft::hca
