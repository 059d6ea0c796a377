#include <algorithm>

#include "hca/layout_detail.hpp"
#include "hca/layout_nodes.hpp"

namespace weft::hca {

using namespace detail;

SliceLayout::SliceLayout(LayoutPtr child, std::uint64_t offset, std::uint64_t length)
    // The child's bounds: those of the part could be had only by walking over it.
    : Layout(LayoutKind::nested, checked_size(length), child->lower(), child->upper(),
             static_cast<std::uint64_t>(static_cast<Wide>(child->block_count()) * length /
                                        child->size()) +
                 1),
      child_(std::move(child)),
      offset_(offset) {}

void SliceLayout::gather(const std::byte* base, std::uint64_t offset,
                         std::span<std::byte> out) const {
  child_->gather(base, offset_ + offset, out);
}

void SliceLayout::scatter(std::byte* base, std::uint64_t offset,
                          std::span<const std::byte> in) const {
  child_->scatter(base, offset_ + offset, in);
}

std::byte* SliceLayout::adjacent(std::byte* base, std::uint64_t offset,
                                 std::uint64_t length) const noexcept {
  return child_->adjacent(base, offset_ + offset, length);
}

bool SliceLayout::equals(const Layout& other) const noexcept {
  const auto* o = dynamic_cast<const SliceLayout*>(&other);
  return o != nullptr && o->offset_ == offset_ && o->size() == size() && child_->equals(*o->child_);
}

std::string SliceLayout::describe() const {
  return "slice(" + text(size()) + " bytes from " + text(offset_) + ", " + child_->describe() + ")";
}

std::size_t SliceLayout::footprint() const noexcept {
  return sizeof *this + child_->footprint();
}

}  // namespace weft::hca
