#include <algorithm>

#include "hca/layout_detail.hpp"
#include "hca/layout_nodes.hpp"

namespace weft::hca {

using namespace detail;

namespace {

/// Copies of `child` of which copy `i` is at `place(i)`: moves `n` bytes from byte `offset` on.
template <typename Packed, typename Place>
void move_copies(const Layout& child, std::uint64_t offset, Packed packed, std::uint64_t n,
                 Place place) {
  const std::uint64_t size = child.size();
  std::uint64_t index = offset / size;
  std::uint64_t skip = offset - index * size;
  while (n != 0) {
    const std::uint64_t part = std::min(size - skip, n);
    move_part(child, place(index), skip, packed, part);
    n -= part;
    skip = 0;
    ++index;
  }
}

Bounds bounds_of(const Layout& child) {
  return {child.lower(), child.upper()};
}

}  // namespace

RepeatLayout::RepeatLayout(LayoutPtr child, std::uint64_t count, std::int64_t stride)
    : Layout(LayoutKind::nested, multiply(child->size(), count),
             bounds_of(*child).repeated(count, stride).lower,
             bounds_of(*child).repeated(count, stride).upper,
             multiply(child->block_count(), count)),
      child_(std::move(child)),
      count_(count),
      stride_(stride) {}

void RepeatLayout::gather(const std::byte* base, std::uint64_t offset,
                          std::span<std::byte> out) const {
  move_copies(*child_, offset, out.data(), out.size(),
              [&](std::uint64_t i) { return advance(address(base), i, stride_); });
}

void RepeatLayout::scatter(std::byte* base, std::uint64_t offset,
                           std::span<const std::byte> in) const {
  move_copies(*child_, offset, in.data(), in.size(),
              [&](std::uint64_t i) { return advance(address(base), i, stride_); });
}

bool RepeatLayout::equals(const Layout& other) const noexcept {
  const auto* o = dynamic_cast<const RepeatLayout*>(&other);
  return o != nullptr && o->count_ == count_ && o->stride_ == stride_ && child_->equals(*o->child_);
}

std::string RepeatLayout::describe() const {
  return "repeat(" + text(count_) + " x " + text(stride_) + ", " + child_->describe() + ")";
}

std::size_t RepeatLayout::footprint() const noexcept {
  return sizeof *this + child_->footprint();
}

namespace {

Bounds indexed_bounds(const Layout& child, std::span<const std::int64_t> offsets) {
  const auto [low, high] = std::minmax_element(offsets.begin(), offsets.end());
  return {checked_offset(static_cast<Wide>(child.lower()) + *low),
          checked_offset(static_cast<Wide>(child.upper()) + *high)};
}

}  // namespace

IndexedLayout::IndexedLayout(LayoutPtr child, std::vector<std::int64_t> offsets)
    : Layout(LayoutKind::nested, multiply(child->size(), offsets.size()),
             indexed_bounds(*child, offsets).lower, indexed_bounds(*child, offsets).upper,
             multiply(child->block_count(), offsets.size())),
      child_(std::move(child)),
      offsets_(std::move(offsets)) {}

void IndexedLayout::gather(const std::byte* base, std::uint64_t offset,
                           std::span<std::byte> out) const {
  move_copies(*child_, offset, out.data(), out.size(),
              [&](std::uint64_t i) { return advance(address(base), offsets_[i]); });
}

void IndexedLayout::scatter(std::byte* base, std::uint64_t offset,
                            std::span<const std::byte> in) const {
  move_copies(*child_, offset, in.data(), in.size(),
              [&](std::uint64_t i) { return advance(address(base), offsets_[i]); });
}

bool IndexedLayout::equals(const Layout& other) const noexcept {
  const auto* o = dynamic_cast<const IndexedLayout*>(&other);
  return o != nullptr && o->offsets_ == offsets_ && child_->equals(*o->child_);
}

std::string IndexedLayout::describe() const {
  constexpr std::size_t shown = 8;
  std::string s = "indexed(" + text(std::uint64_t{offsets_.size()}) + " at";
  for (std::size_t i = 0; i < std::min(offsets_.size(), shown); ++i) {
    s += (i == 0 ? " " : ", ") + text(offsets_[i]);
  }
  return s + (offsets_.size() > shown ? ", ...: " : ": ") + child_->describe() + ")";
}

std::size_t IndexedLayout::footprint() const noexcept {
  return sizeof *this + offsets_.capacity() * sizeof(std::int64_t) + child_->footprint();
}

namespace {

/// adjacent() of copies of which copy `i` is at `place(i)`.
template <typename Place>
std::byte* adjacent_in_copy(const Layout& child, std::uint64_t offset, std::uint64_t length,
                            Place place) noexcept {
  const std::uint64_t index = offset / child.size();
  const std::uint64_t skip = offset - index * child.size();
  return length > child.size() - skip ? nullptr
                                      : child.adjacent(pointer(place(index)), skip, length);
}

}  // namespace

std::byte* RepeatLayout::adjacent(std::byte* base, std::uint64_t offset,
                                  std::uint64_t length) const noexcept {
  return adjacent_in_copy(*child_, offset, length,
                          [&](std::uint64_t i) { return advance(address(base), i, stride_); });
}

std::byte* IndexedLayout::adjacent(std::byte* base, std::uint64_t offset,
                                   std::uint64_t length) const noexcept {
  return adjacent_in_copy(*child_, offset, length,
                          [&](std::uint64_t i) { return advance(address(base), offsets_[i]); });
}

}  // namespace weft::hca
