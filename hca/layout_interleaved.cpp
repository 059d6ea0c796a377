#include <algorithm>

#include "hca/layout_detail.hpp"
#include "hca/layout_nodes.hpp"

namespace weft::hca {

using namespace detail;

namespace {

Summary round_of(std::span<const Block> entries) {
  Summary r;
  for (const Block& e : entries) {
    r.add(e.length, 1,
          {checked_offset(e.offset),
           checked_offset(static_cast<Wide>(e.offset) + checked_size(e.length))});
  }
  return r;
}

}  // namespace

InterleavedLayout::InterleavedLayout(std::vector<Block> entries, std::uint64_t count,
                                     std::int64_t stride)
    : Layout(LayoutKind::interleaved, multiply(round_of(entries).size, count),
             round_of(entries).bounds.repeated(count, stride).lower,
             round_of(entries).bounds.repeated(count, stride).upper,
             multiply(entries.size(), count)),
      entries_(std::move(entries)),
      count_(count),
      stride_(stride),
      round_(round_of(entries_).size) {
  kernels_.reserve(entries_.size());
  for (const Block& e : entries_) kernels_.push_back(&kernels::kernels_for(e.length));
  // Each entry takes a pass over a tile: small enough that its lines are still in L1 for the next
  // entry's pass, large enough that the passes' starts cost little.
  constexpr std::uint64_t tile_bytes = 8192;
  const Bounds one = round_of(entries_).bounds;
  const auto width = static_cast<std::uint64_t>(one.upper) - static_cast<std::uint64_t>(one.lower);
  tile_ = std::clamp<std::uint64_t>(tile_bytes / std::max<std::uint64_t>(width, 1), 16, 256);
}

/// Less than a round, from its byte `skip` on.
template <bool gathering, typename Packed>
void InterleavedLayout::part_of_round(std::uintptr_t at, std::uint64_t skip, Packed& packed,
                                      std::uint64_t n) const noexcept {
  for (const Block& e : entries_) {
    if (n == 0) return;
    if (skip >= e.length) {
      skip -= e.length;
      continue;
    }
    const std::uint64_t part = std::min(e.length - skip, n);
    move_bytes(packed, advance(at, e.offset) + skip, part);
    n -= part;
    skip = 0;
  }
}

template <bool gathering, typename Packed>
void InterleavedLayout::run(std::uintptr_t base, std::uint64_t offset, Packed packed,
                            std::uint64_t n) const noexcept {
  const std::uint64_t first = offset / round_;
  std::uintptr_t at = advance(base, first, stride_);
  if (const std::uint64_t skip = offset - first * round_; skip != 0) {
    const std::uint64_t part = std::min(round_ - skip, n);
    part_of_round<gathering>(at, skip, packed, part);
    n -= part;
    at = advance(at, stride_);
  }
  std::uint64_t rounds = n / round_;
  n -= rounds * round_;
  while (rounds != 0) {
    const std::uint64_t here = std::min(rounds, tile_);
    Packed stream = packed;
    for (std::size_t i = 0; i < entries_.size(); ++i) {
      const Block& e = entries_[i];
      const auto step = static_cast<std::ptrdiff_t>(round_);
      if constexpr (gathering) {
        kernels_[i]->copy(stream, step, pointer(advance(at, e.offset)), stride_, here, e.length);
      } else {
        kernels_[i]->copy(pointer(advance(at, e.offset)), stride_, stream, step, here, e.length);
      }
      stream += e.length;
    }
    packed += here * round_;
    at = advance(at, here, stride_);
    rounds -= here;
  }
  if (n != 0) part_of_round<gathering>(at, 0, packed, n);
}

void InterleavedLayout::gather(const std::byte* base, std::uint64_t offset,
                               std::span<std::byte> out) const noexcept {
  run<true>(address(base), offset, out.data(), out.size());
}

void InterleavedLayout::scatter(std::byte* base, std::uint64_t offset,
                                std::span<const std::byte> in) const noexcept {
  run<false>(address(base), offset, in.data(), in.size());
}

bool InterleavedLayout::equals(const Layout& other) const noexcept {
  if (other.kind() != LayoutKind::interleaved) return false;
  const auto& o = static_cast<const InterleavedLayout&>(other);
  return o.count_ == count_ && o.stride_ == stride_ && o.entries_ == entries_;
}

std::string InterleavedLayout::describe() const {
  std::string s = "interleaved(" + text(count_) + " x " + text(stride_) + ", blocks";
  for (std::size_t i = 0; i < entries_.size(); ++i) {
    s += (i == 0 ? " " : ", ") + text(entries_[i].length) + " @ " + text(entries_[i].offset);
  }
  return s + ")";
}

std::size_t InterleavedLayout::footprint() const noexcept {
  constexpr std::size_t pointer_size = sizeof(void*);
  return sizeof *this + entries_.capacity() * sizeof(Block) + kernels_.capacity() * pointer_size;
}

std::byte* InterleavedLayout::adjacent(std::byte* base, std::uint64_t offset,
                                       std::uint64_t length) const noexcept {
  const std::uint64_t round = offset / round_;
  std::uint64_t skip = offset - round * round_;
  for (const Block& e : entries_) {
    if (skip < e.length) {
      if (length > e.length - skip) return nullptr;
      return pointer(advance(advance(address(base), round, stride_), e.offset) + skip);
    }
    skip -= e.length;
  }
  return nullptr;
}

}  // namespace weft::hca
