#include <algorithm>
#include <numeric>

#include "hca/layout_detail.hpp"
#include "hca/layout_nodes.hpp"

namespace weft::hca {

using namespace detail;

namespace {

/// Shorter lists take little memory in any case.
constexpr std::uint64_t worth_dividing = 640;

struct ListSummary : Summary {
  std::uint64_t longest = 0;
  std::uint64_t unit = 0;  ///< greatest common divisor of the lengths
};

ListSummary summary_of(std::span<const Block> blocks) {
  ListSummary s;
  for (const Block& block : blocks) {
    s.add(checked_size(block.length), 1,
          {checked_offset(block.offset),
           checked_offset(static_cast<Wide>(block.offset) + block.length)});
    s.longest = std::max(s.longest, block.length);
    s.unit = std::gcd(s.unit, block.length);
  }
  return s;
}

/// The same blocks in pieces of `length` bytes, `count` in all.
std::vector<Block> divided(std::span<const Block> blocks, std::uint64_t length,
                           std::uint64_t count) {
  std::vector<Block> pieces;
  pieces.reserve(count);
  for (const Block& block : blocks) {
    for (std::uint64_t at = 0; at < block.length; at += length)
      pieces.push_back({block.offset + static_cast<std::int64_t>(at), length});
  }
  return pieces;
}

/// All blocks of one length. Offsets count from the list's lowest byte.
template <typename Offset>
class EqualList final : public SgListLayout {
  static constexpr bool narrow = sizeof(Offset) == 4;

 public:
  EqualList(const ListSummary& s, std::span<const Block> blocks)
      : SgListLayout(LayoutKind::sg_list, s.size, s.bounds.lower, s.bounds.upper, s.blocks),
        block_(blocks[0].length),
        origin_(s.bounds.lower),
        kernels_(&kernels::kernels_for(block_)),
        offsets_(blocks.size()) {
    std::transform(blocks.begin(), blocks.end(), offsets_.begin(), [&](const Block& b) {
      return static_cast<Offset>(static_cast<Wide>(b.offset) - origin_);
    });
  }

  [[nodiscard]] Block entry(std::uint64_t index) const noexcept override {
    return {static_cast<std::int64_t>(at(static_cast<std::uintptr_t>(origin_), index)), block_};
  }

  void gather(const std::byte* base, std::uint64_t offset,
              std::span<std::byte> out) const noexcept override {
    run(advance(address(base), origin_), offset, out.data(), out.size());
  }
  void scatter(std::byte* base, std::uint64_t offset,
               std::span<const std::byte> in) const noexcept override {
    run(advance(address(base), origin_), offset, in.data(), in.size());
  }

  [[nodiscard]] std::byte* adjacent(std::byte* base, std::uint64_t offset,
                                    std::uint64_t length) const noexcept override {
    const std::uint64_t index = offset / block_;
    const std::uint64_t skip = offset - index * block_;
    if (length > block_ - skip) return nullptr;
    return pointer(at(advance(address(base), origin_), index) + skip);
  }

  [[nodiscard]] std::size_t footprint() const noexcept override {
    return sizeof *this + offsets_.capacity() * sizeof(Offset);
  }

 private:
  [[nodiscard]] std::uintptr_t at(std::uintptr_t base, std::uint64_t index) const noexcept {
    return base + static_cast<std::uintptr_t>(offsets_[index]);
  }

  void blocks(std::uintptr_t base, std::uint64_t first, std::uint64_t count,
              std::byte* packed) const noexcept {
    if constexpr (narrow) {
      kernels_->gather_list32(packed, pointer(base), &offsets_[first], count, block_);
    } else {
      kernels_->gather_list64(packed, pointer(base), &offsets_[first], count, block_);
    }
  }
  void blocks(std::uintptr_t base, std::uint64_t first, std::uint64_t count,
              const std::byte* packed) const noexcept {
    if constexpr (narrow) {
      kernels_->scatter_list32(pointer(base), &offsets_[first], packed, count, block_);
    } else {
      kernels_->scatter_list64(pointer(base), &offsets_[first], packed, count, block_);
    }
  }

  /// Part of a block, whole blocks, part of a block.
  template <typename Packed>
  void run(std::uintptr_t base, std::uint64_t offset, Packed packed,
           std::uint64_t n) const noexcept {
    std::uint64_t index = offset / block_;
    if (const std::uint64_t skip = offset - index * block_; skip != 0) {
      const std::uint64_t part = std::min(block_ - skip, n);
      move_bytes(packed, at(base, index) + skip, part);
      n -= part;
      ++index;
    }
    const std::uint64_t count = n / block_;
    if (count != 0) {
      blocks(base, index, count, packed);
      packed += count * block_;
    }
    if (const std::uint64_t part = n - count * block_; part != 0) {
      move_bytes(packed, at(base, index + count), part);
    }
  }

  std::uint64_t block_;
  std::int64_t origin_;
  const kernels::BlockKernels* kernels_;
  std::vector<Offset> offsets_;
};

/// Blocks of different lengths. The position of every 64th block in the stream is kept, so that a
/// transfer finds its start by a binary search and a short walk.
template <typename Entry>
class MixedList final : public SgListLayout {
  static constexpr bool narrow = sizeof(Entry) == sizeof(kernels::Entry32);
  static constexpr std::uint64_t every = 64;

 public:
  MixedList(const ListSummary& s, std::span<const Block> blocks)
      : SgListLayout(LayoutKind::sg_list, s.size, s.bounds.lower, s.bounds.upper, s.blocks),
        origin_(narrow ? s.bounds.lower : 0),
        kernels_(&kernels::mixed_kernels()) {
    entries_.reserve(blocks.size());
    starts_.reserve((blocks.size() + every - 1) / every);
    std::uint64_t start = 0;
    for (const Block& b : blocks) {
      if (entries_.size() % every == 0) starts_.push_back(start);
      entries_.push_back({static_cast<decltype(Entry::offset)>(b.offset - origin_),
                          static_cast<decltype(Entry::length)>(b.length)});
      start += b.length;
    }
  }

  [[nodiscard]] Block entry(std::uint64_t index) const noexcept override {
    return {origin_ + static_cast<std::int64_t>(entries_[index].offset), entries_[index].length};
  }

  void gather(const std::byte* base, std::uint64_t offset,
              std::span<std::byte> out) const noexcept override {
    run(advance(address(base), origin_), offset, out.data(), out.size());
  }
  void scatter(std::byte* base, std::uint64_t offset,
               std::span<const std::byte> in) const noexcept override {
    run(advance(address(base), origin_), offset, in.data(), in.size());
  }

  [[nodiscard]] std::byte* adjacent(std::byte* base, std::uint64_t offset,
                                    std::uint64_t length) const noexcept override {
    std::uint64_t skip = 0;
    const std::uint64_t index = find(offset, skip);
    if (length > entries_[index].length - skip) return nullptr;
    return pointer(at(advance(address(base), origin_), index) + skip);
  }

  [[nodiscard]] std::size_t footprint() const noexcept override {
    return sizeof *this + entries_.capacity() * sizeof(Entry) +
           starts_.capacity() * sizeof(std::uint64_t);
  }

 private:
  [[nodiscard]] std::uintptr_t at(std::uintptr_t base, std::uint64_t index) const noexcept {
    return base + static_cast<std::uintptr_t>(entries_[index].offset);
  }

  static void move_whole(const kernels::MixedKernels* kernels, std::uintptr_t base,
                         const Entry* entries, std::uint64_t count, std::byte* packed) noexcept {
    if constexpr (narrow) {
      kernels->gather(packed, pointer(base), entries, count);
    } else {
      for (std::uint64_t i = 0; i < count; ++i)
        move_bytes(packed, advance(base, entries[i].offset), entries[i].length);
    }
  }
  static void move_whole(const kernels::MixedKernels* kernels, std::uintptr_t base,
                         const Entry* entries, std::uint64_t count,
                         const std::byte* packed) noexcept {
    if constexpr (narrow) {
      kernels->scatter(pointer(base), entries, packed, count);
    } else {
      for (std::uint64_t i = 0; i < count; ++i)
        move_bytes(packed, advance(base, entries[i].offset), entries[i].length);
    }
  }

  /// The block that byte `offset` of the stream is in; `skip`: of that block's bytes.
  [[nodiscard]] std::uint64_t find(std::uint64_t offset, std::uint64_t& skip) const noexcept {
    std::uint64_t group = 0;
    if (offset != 0) {
      group = static_cast<std::uint64_t>(std::upper_bound(starts_.begin(), starts_.end(), offset) -
                                         starts_.begin()) -
              1;
    }
    skip = offset - starts_[group];
    std::uint64_t index = group * every;
    while (skip >= entries_[index].length) skip -= entries_[index++].length;
    return index;
  }

  /// Part of a block, whole blocks, part of a block.
  template <typename Packed>
  void run(std::uintptr_t base, std::uint64_t offset, Packed packed,
           std::uint64_t n) const noexcept {
    if (n == 0) return;
    std::uint64_t skip = 0;
    std::uint64_t index = find(offset, skip);
    if (skip != 0) {
      const std::uint64_t part = std::min<std::uint64_t>(entries_[index].length - skip, n);
      move_bytes(packed, at(base, index) + skip, part);
      n -= part;
      ++index;
    }
    // Where the last whole block ends: groups first, then single blocks.
    std::uint64_t last = index;
    std::uint64_t whole = 0;
    if (n != 0) {
      const std::uint64_t end = offset + (skip != 0 ? entries_[index - 1].length - skip : 0) + n;
      const std::uint64_t end_group =
          static_cast<std::uint64_t>(std::upper_bound(starts_.begin(), starts_.end(), end) -
                                     starts_.begin()) -
          1;
      if (end_group * every > index) {
        last = end_group * every;
        whole = n - (end - starts_[end_group]);
      }
      while (last < entries_.size() && whole + entries_[last].length <= n)
        whole += entries_[last++].length;
    }
    if (last != index) {
      move_whole(kernels_, base, &entries_[index], last - index, packed);
      packed += whole;
    }
    if (n != whole) move_bytes(packed, at(base, last), n - whole);
  }

  std::int64_t origin_;
  const kernels::MixedKernels* kernels_;
  std::vector<Entry> entries_;
  std::vector<std::uint64_t> starts_;
};

}  // namespace

LayoutPtr SgListLayout::make(std::vector<Block> blocks) {
  ListSummary s = summary_of(blocks);
  // Equal blocks some of which touch: an entry for each of the equal ones takes half as much memory
  // as one with a length, and a kernel of a fixed size moves it.
  const std::uint64_t units = s.size / s.unit;
  if (s.blocks > worth_dividing && units != s.blocks && units <= 2 * s.blocks) {
    blocks = divided(blocks, s.unit, units);
    s.blocks = units;
  }
  const bool narrow =
      s.longest <= UINT32_MAX && s.bounds.upper - static_cast<Wide>(s.bounds.lower) <= UINT32_MAX;
  if (units == s.blocks) {
    if (narrow) return std::make_shared<EqualList<std::uint32_t>>(s, blocks);
    return std::make_shared<EqualList<std::uint64_t>>(s, blocks);
  }
  if (narrow) return std::make_shared<MixedList<kernels::Entry32>>(s, blocks);
  return std::make_shared<MixedList<Block>>(s, blocks);
}

bool SgListLayout::equals(const Layout& other) const noexcept {
  if (other.kind() != LayoutKind::sg_list || other.block_count() != block_count() ||
      other.size() != size() || other.lower() != lower() || other.upper() != upper()) {
    return false;
  }
  const auto& o = static_cast<const SgListLayout&>(other);
  for (std::uint64_t i = 0; i < block_count(); ++i) {
    if (!(entry(i) == o.entry(i))) return false;
  }
  return true;
}

std::string SgListLayout::describe() const {
  constexpr std::uint64_t shown = 8;
  std::string s = "sg_list(" + text(block_count()) + " blocks:";
  for (std::uint64_t i = 0; i < std::min(block_count(), shown); ++i) {
    const Block b = entry(i);
    s += (i == 0 ? " " : ", ") + text(b.length) + " @ " + text(b.offset);
  }
  return s + (block_count() > shown ? ", ...)" : ")");
}

}  // namespace weft::hca
