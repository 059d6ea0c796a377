#include <algorithm>

#include "hca/layout_detail.hpp"
#include "hca/layout_nodes.hpp"

namespace weft::hca {

using namespace detail;

namespace {

Summary summary_of(std::span<const Placed> parts) {
  Summary s;
  for (const Placed& part : parts) {
    const Layout& layout = *part.layout;
    s.add(layout.size(), layout.block_count(),
          {checked_offset(static_cast<Wide>(part.offset) + layout.lower()),
           checked_offset(static_cast<Wide>(part.offset) + layout.upper())});
  }
  return s;
}

/// Moves `n` bytes from byte `offset` of the sequence on.
template <typename Packed>
void move_parts(std::span<const Placed> parts, std::span<const std::uint64_t> starts,
                std::uintptr_t base, std::uint64_t offset, Packed packed, std::uint64_t n) {
  if (n == 0) return;
  auto index = static_cast<std::size_t>(std::upper_bound(starts.begin(), starts.end(), offset) -
                                        starts.begin()) -
               1;
  std::uint64_t skip = offset - starts[index];
  while (n != 0) {
    const Placed& part = parts[index];
    const std::uint64_t here = std::min(part.layout->size() - skip, n);
    move_part(*part.layout, advance(base, part.offset), skip, packed, here);
    n -= here;
    skip = 0;
    ++index;
  }
}

}  // namespace

SequenceLayout::SequenceLayout(std::vector<Placed> parts)
    : SequenceLayout(summary_of(parts), std::move(parts)) {}

SequenceLayout::SequenceLayout(const Summary& sum, std::vector<Placed>&& parts)
    : Layout(LayoutKind::nested, sum.size, sum.bounds.lower, sum.bounds.upper, sum.blocks),
      parts_(std::move(parts)) {
  starts_.reserve(parts_.size());
  std::uint64_t start = 0;
  for (const Placed& part : parts_) {
    starts_.push_back(start);
    start += part.layout->size();
  }
}

void SequenceLayout::gather(const std::byte* base, std::uint64_t offset,
                            std::span<std::byte> out) const {
  move_parts(parts_, starts_, address(base), offset, out.data(), out.size());
}

void SequenceLayout::scatter(std::byte* base, std::uint64_t offset,
                             std::span<const std::byte> in) const {
  move_parts(parts_, starts_, address(base), offset, in.data(), in.size());
}

bool SequenceLayout::equals(const Layout& other) const noexcept {
  const auto* o = dynamic_cast<const SequenceLayout*>(&other);
  return o != nullptr && o->parts_.size() == parts_.size() &&
         std::equal(parts_.begin(), parts_.end(), o->parts_.begin(),
                    [](const Placed& a, const Placed& b) {
                      return a.offset == b.offset && a.layout->equals(*b.layout);
                    });
}

std::string SequenceLayout::describe() const {
  std::string s = "sequence(";
  for (std::size_t i = 0; i < parts_.size(); ++i) {
    if (i != 0) s += ", ";
    s += text(parts_[i].offset) + ": " + parts_[i].layout->describe();
  }
  return s + ")";
}

std::size_t SequenceLayout::footprint() const noexcept {
  std::size_t bytes = sizeof *this + parts_.capacity() * sizeof(Placed) +
                      starts_.capacity() * sizeof(std::uint64_t);
  for (const Placed& part : parts_) bytes += part.layout->footprint();
  return bytes;
}

std::byte* SequenceLayout::adjacent(std::byte* base, std::uint64_t offset,
                                    std::uint64_t length) const noexcept {
  const auto index =
      static_cast<std::size_t>(std::upper_bound(starts_.begin(), starts_.end(), offset) -
                               starts_.begin()) -
      1;
  const Placed& part = parts_[index];
  const std::uint64_t skip = offset - starts_[index];
  if (length > part.layout->size() - skip) return nullptr;
  return part.layout->adjacent(pointer(advance(address(base), part.offset)), skip, length);
}

}  // namespace weft::hca
