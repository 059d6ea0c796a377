#include "hca/layout_detail.hpp"
#include "hca/layout_nodes.hpp"

namespace weft::hca {

using namespace detail;

ContiguousLayout::ContiguousLayout(std::uint64_t length, std::int64_t offset)
    : Layout(LayoutKind::contiguous, checked_size(length), checked_offset(offset),
             checked_offset(static_cast<Wide>(offset) + length), length == 0 ? 0 : 1) {}

void ContiguousLayout::gather(const std::byte* base, std::uint64_t offset,
                              std::span<std::byte> out) const noexcept {
  std::byte* packed = out.data();
  move_bytes(packed, advance(address(base), lower()) + offset, out.size());
}

void ContiguousLayout::scatter(std::byte* base, std::uint64_t offset,
                               std::span<const std::byte> in) const noexcept {
  const std::byte* packed = in.data();
  move_bytes(packed, advance(address(base), lower()) + offset, in.size());
}

bool ContiguousLayout::equals(const Layout& other) const noexcept {
  return other.is_contiguous() && other.size() == size() && other.lower() == lower();
}

std::string ContiguousLayout::describe() const {
  if (size() == 0) return "empty";
  return "contiguous(offset " + text(lower()) + ", " + text(size()) + " bytes)";
}

std::size_t ContiguousLayout::footprint() const noexcept {
  return sizeof *this;
}

std::byte* ContiguousLayout::adjacent(std::byte* base, std::uint64_t offset,
                                      std::uint64_t /*length*/) const noexcept {
  return pointer(advance(address(base), lower()) + offset);
}

}  // namespace weft::hca
