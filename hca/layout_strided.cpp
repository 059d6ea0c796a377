#include "hca/layout_detail.hpp"
#include "hca/layout_nodes.hpp"

#include <algorithm>

namespace weft::hca {

using namespace detail;

namespace {

struct Extent {
  Bounds bounds;
  std::uint64_t blocks;
  std::uint64_t size;
};

Extent extent_of(std::int64_t offset, std::uint64_t block, std::span<const Dimension> dims) {
  Extent e{
      {checked_offset(offset), checked_offset(static_cast<Wide>(offset) + checked_size(block))},
      1,
      0};
  for (const Dimension& dim : dims) {
    e.bounds = e.bounds.repeated(dim.count, dim.stride);
    e.blocks = multiply(e.blocks, dim.count);
  }
  e.size = multiply(e.blocks, block);
  return e;
}

}  // namespace

StridedLayout::StridedLayout(std::int64_t offset, std::uint64_t block, std::vector<Dimension> dims)
    : Layout(LayoutKind::strided, extent_of(offset, block, dims).size,
             extent_of(offset, block, dims).bounds.lower,
             extent_of(offset, block, dims).bounds.upper, extent_of(offset, block, dims).blocks),
      offset_(offset),
      block_(block),
      dims_(std::move(dims)),
      bytes_(dims_.size()),
      kernels_(&kernels::kernels_for(block)) {
  std::uint64_t bytes = block;
  for (std::size_t i = dims_.size(); i-- > 0;) {
    bytes_[i] = bytes;
    bytes *= dims_[i].count;
  }
}

/// Moves `n` bytes of the innermost dimension from its byte `skip` on: part of a block, whole
/// blocks, part of a block.
template <bool gathering, typename Packed>
void StridedLayout::row(std::uintptr_t at, std::uint64_t skip, Packed& packed,
                        std::uint64_t n) const noexcept {
  const std::int64_t stride = dims_.back().stride;
  if (skip != 0) {
    const std::uint64_t first = skip / block_;
    skip -= first * block_;
    at = advance(at, first, stride);
    if (skip != 0) {
      const std::uint64_t part = std::min(block_ - skip, n);
      move_bytes(packed, at + skip, part);
      n -= part;
      at = advance(at, stride);
    }
  }
  const std::uint64_t count = n / block_;
  if constexpr (gathering) {
    kernels_->gather(packed, pointer(at), stride, count, block_);
  } else {
    kernels_->scatter(pointer(at), stride, packed, count, block_);
  }
  packed += count * block_;
  move_bytes(packed, advance(at, count, stride), n - count * block_);
}

template <bool gathering, typename Packed>
void StridedLayout::walk(std::size_t dim, std::uintptr_t at, std::uint64_t skip, Packed& packed,
                         std::uint64_t n) const noexcept {
  if (dim + 1 == dims_.size()) {
    row<gathering>(at, skip, packed, n);
    return;
  }
  const std::uint64_t bytes = bytes_[dim];
  if (skip != 0) {
    const std::uint64_t first = skip / bytes;
    skip -= first * bytes;
    at = advance(at, first, dims_[dim].stride);
  }
  while (n != 0) {
    const std::uint64_t here = std::min(n, bytes - skip);
    walk<gathering>(dim + 1, at, skip, packed, here);
    n -= here;
    skip = 0;
    at = advance(at, dims_[dim].stride);
  }
}

void StridedLayout::gather(const std::byte* base, std::uint64_t offset,
                           std::span<std::byte> out) const noexcept {
  std::byte* packed = out.data();
  walk<true>(0, advance(address(base), offset_), offset, packed, out.size());
}

void StridedLayout::scatter(std::byte* base, std::uint64_t offset,
                            std::span<const std::byte> in) const noexcept {
  const std::byte* packed = in.data();
  walk<false>(0, advance(address(base), offset_), offset, packed, in.size());
}

bool StridedLayout::equals(const Layout& other) const noexcept {
  if (other.kind() != LayoutKind::strided) return false;
  const auto& o = static_cast<const StridedLayout&>(other);
  return o.offset_ == offset_ && o.block_ == block_ && o.dims_ == dims_;
}

std::string StridedLayout::describe() const {
  std::string s = "strided(offset " + text(offset_) + ", block " + text(block_);
  for (const Dimension& dim : dims_) s += ", " + text(dim.count) + " x " + text(dim.stride);
  return s + ")";
}

std::size_t StridedLayout::footprint() const noexcept {
  return sizeof *this + dims_.capacity() * sizeof(Dimension) +
         bytes_.capacity() * sizeof(std::uint64_t);
}

}  // namespace weft::hca
