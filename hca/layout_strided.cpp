#include "hca/layout_detail.hpp"
#include "hca/layout_nodes.hpp"

#include <algorithm>

namespace weft::hca {

using namespace detail;

namespace {

/// Rows of up to so many blocks are not worth a kernel call each.
constexpr std::uint64_t short_row = 16;
/// Blocks longer than this take longer than a call.
constexpr std::uint64_t longest_in_plane = 256;
/// With the loops exchanged, every row is a stream of its own on the packed side: as many as share
/// a cache line, and no more than the L1 cache has ways.
constexpr std::uint64_t columns_at_once = 8;

std::uint64_t magnitude(std::int64_t stride) {
  return stride < 0 ? 0 - static_cast<std::uint64_t>(stride) : static_cast<std::uint64_t>(stride);
}

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
  order_ = Order::rows;
  if (dims_.size() < 2 || block > longest_in_plane) return;
  const Dimension& outer = dims_[dims_.size() - 2];
  const Dimension& inner = dims_.back();
  if (magnitude(outer.stride) < magnitude(inner.stride)) {
    order_ = Order::columns;
  } else if (inner.count <= short_row) {
    order_ = Order::plane;
  }
}

/// Moves `n` bytes of the innermost dimension from its byte `skip` on: part of a block, whole
/// blocks, part of a block.
template <bool gathering, typename Packed>
void StridedLayout::row(std::uintptr_t at, std::uint64_t skip, Packed& packed,
                        std::uint64_t n) const noexcept {
  const Dimension dim = dims_.back();
  std::uint64_t count = dim.count;
  std::uint64_t part = 0;
  if (n != count * block_) [[likely]] {
    if (skip != 0) {
      const std::uint64_t first = skip / block_;
      skip -= first * block_;
      at = advance(at, first, dim.stride);
      if (skip != 0) {
        const std::uint64_t head = std::min(block_ - skip, n);
        move_bytes(packed, at + skip, head);
        n -= head;
        at = advance(at, dim.stride);
      }
    }
    count = n / block_;
    part = n - count * block_;
  }
  if constexpr (gathering) {
    kernels_->gather(packed, pointer(at), dim.stride, count, block_);
  } else {
    kernels_->scatter(pointer(at), dim.stride, packed, count, block_);
  }
  packed += count * block_;
  if (part != 0) move_bytes(packed, advance(at, count, dim.stride), part);
}

/// The two innermost dimensions: part of a row, whole rows, part of a row.
template <bool gathering, typename Packed>
void StridedLayout::plane(std::uintptr_t at, std::uint64_t skip, Packed& packed,
                          std::uint64_t n) const noexcept {
  const Dimension outer = dims_[dims_.size() - 2];
  const Dimension inner = dims_.back();
  const std::uint64_t bytes = inner.count * block_;
  const std::uint64_t first = skip / bytes;
  skip -= first * bytes;
  at = advance(at, first, outer.stride);
  if (skip != 0) {
    const std::uint64_t head = std::min(n, bytes - skip);
    row<gathering>(at, skip, packed, head);
    n -= head;
    at = advance(at, outer.stride);
  }
  const std::uint64_t rows = n / bytes;
  const auto step = [&](std::uint64_t packed_step, const Dimension& dim, std::uint64_t count) {
    const auto along = static_cast<std::ptrdiff_t>(packed_step);
    return gathering ? kernels::Step{along, dim.stride, count}
                     : kernels::Step{dim.stride, along, count};
  };
  const bool exchanged = order_ == Order::columns;
  const std::uint64_t most = exchanged ? columns_at_once : rows;
  for (std::uint64_t done = 0; done < rows; done += most) {
    const std::uint64_t here = std::min(most, rows - done);
    const kernels::Step by_row = step(bytes, outer, here);
    const kernels::Step by_block = step(block_, inner, inner.count);
    const kernels::Step& slow = exchanged ? by_block : by_row;
    const kernels::Step& fast = exchanged ? by_row : by_block;
    if constexpr (gathering) {
      kernels_->plane(packed, pointer(at), slow, fast, block_);
    } else {
      kernels_->plane(pointer(at), packed, slow, fast, block_);
    }
    packed += here * bytes;
    at = advance(at, here, outer.stride);
  }
  if (const std::uint64_t part = n - rows * bytes; part != 0) row<gathering>(at, 0, packed, part);
}

template <bool gathering, typename Packed>
void StridedLayout::walk(std::size_t dim, std::uintptr_t at, std::uint64_t skip, Packed& packed,
                         std::uint64_t n) const noexcept {
  if (dim + 1 == dims_.size()) {
    row<gathering>(at, skip, packed, n);
    return;
  }
  if (dim + 2 == dims_.size() && order_ != Order::rows) {
    plane<gathering>(at, skip, packed, n);
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

std::byte* StridedLayout::adjacent(std::byte* base, std::uint64_t offset,
                                   std::uint64_t length) const noexcept {
  std::uint64_t index = offset / block_;
  const std::uint64_t skip = offset - index * block_;
  if (length > block_ - skip) return nullptr;
  std::uintptr_t at = advance(address(base), offset_);
  for (std::size_t dim = dims_.size(); dim-- != 0; index /= dims_[dim].count) {
    at = advance(at, index % dims_[dim].count, dims_[dim].stride);
  }
  return pointer(at + skip);
}

}  // namespace weft::hca
