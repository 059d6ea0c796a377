#include <algorithm>
#include <map>

#include "hca/layout_detail.hpp"
#include "hca/layout_nodes.hpp"

namespace weft::hca {

using namespace detail;

namespace {

std::uint64_t items_of(const RoundRobinEntry& entry) {
  std::uint64_t items = 1;
  for (const Dimension& dim : entry.dims) items = multiply(items, dim.count);
  return items;
}

/// Of the entry's bytes: from the base, or in the child's stream.
Bounds extent_of(const RoundRobinEntry& entry) {
  Bounds bounds{checked_offset(entry.offset),
                checked_offset(static_cast<Wide>(entry.offset) + checked_size(entry.block))};
  for (const Dimension& dim : entry.dims) bounds = bounds.repeated(dim.count, dim.stride);
  return bounds;
}

Summary summary_of(std::span<const RoundRobinEntry> entries) {
  Summary s;
  for (const RoundRobinEntry& entry : entries) {
    if (entry.repeat == 0) throw Error(EINVAL, "layout: a round takes at least one item");
    const std::uint64_t items = items_of(entry);
    Bounds bounds = extent_of(entry);
    if (entry.child) {
      if (bounds.lower < 0 || static_cast<std::uint64_t>(bounds.upper) > entry.child->size()) {
        throw Error(EINVAL, "layout: items from " + text(bounds.lower) + " to " +
                                text(bounds.upper) + " of a stream of " +
                                text(entry.child->size()));
      }
      bounds = {entry.child->lower(), entry.child->upper()};
    }
    s.add(multiply(items, entry.block), items, bounds);
  }
  return s;
}

/// Items that an entry of so many gives in a round.
std::uint64_t items_in(std::uint64_t round, std::uint64_t items, std::uint64_t repeat) noexcept {
  const std::uint64_t whole = items / repeat;
  return round < whole ? repeat : round == whole ? items - whole * repeat : 0;
}

std::int64_t offset_of(const RoundRobinEntry& entry, std::uint64_t item) noexcept {
  std::uintptr_t at = static_cast<std::uintptr_t>(entry.offset);
  for (std::size_t dim = entry.dims.size(); dim-- != 0;) {
    const std::uint64_t index = dim == 0 ? item : item % entry.dims[dim].count;
    at = advance(at, index, entry.dims[dim].stride);
    item /= entry.dims[dim].count;
  }
  return static_cast<std::int64_t>(at);
}

}  // namespace

RoundRobinLayout::RoundRobinLayout(std::vector<RoundRobinEntry> entries)
    : RoundRobinLayout(summary_of(entries), std::move(entries)) {}

RoundRobinLayout::RoundRobinLayout(const Summary& sum, std::vector<RoundRobinEntry>&& entries)
    : Layout(LayoutKind::nested, sum.size, sum.bounds.lower, sum.bounds.upper, sum.blocks),
      entries_(std::move(entries)) {
  // Where the size of a round changes, and by how much. (Modulo 2^64; the sums are sizes.)
  std::map<std::uint64_t, std::uint64_t> changes;
  for (const RoundRobinEntry& entry : entries_) {
    const std::uint64_t items = items_of(entry);
    items_.push_back(items);
    const std::uint64_t whole = items / entry.repeat;
    const std::uint64_t rest = (items - whole * entry.repeat) * entry.block;
    const std::uint64_t full = entry.repeat * entry.block;
    if (whole != 0) {
      changes[0] += full;
      changes[whole] -= full;
    }
    if (rest != 0) {
      changes[whole] += rest;
      changes[whole + 1] -= rest;
    }
  }
  std::uint64_t start = 0;
  std::uint64_t size = 0;
  std::uint64_t first = 0;
  for (const auto& [round, change] : changes) {
    start += (round - first) * size;
    first = round;
    size += change;
    if (size != 0 && change != 0) phases_.push_back({start, first, size});
  }
}

/// Calls visit(entry, offset, bytes) for the pieces of `n` bytes of the stream from `offset` on.
template <class Visit>
void RoundRobinLayout::each_piece(std::uint64_t offset, std::uint64_t n, Visit visit) const {
  if (n == 0) return;
  const auto after =
      std::upper_bound(phases_.begin(), phases_.end(), offset,
                       [](std::uint64_t at, const Phase& p) { return at < p.start; });
  const Phase& phase = *(after - 1);
  const std::uint64_t rounds = (offset - phase.start) / phase.size;
  std::uint64_t skip = offset - phase.start - rounds * phase.size;
  for (std::uint64_t round = phase.first + rounds;; ++round) {
    for (std::size_t i = 0; i < entries_.size(); ++i) {
      const RoundRobinEntry& entry = entries_[i];
      const std::uint64_t items = items_in(round, items_[i], entry.repeat);
      if (skip >= items * entry.block) {
        skip -= items * entry.block;
        continue;
      }
      std::uint64_t item = skip / entry.block;
      skip -= item * entry.block;
      for (; item != items; ++item) {
        const std::uint64_t part = std::min(entry.block - skip, n);
        visit(entry,
              offset_of(entry, round * entry.repeat + item) + static_cast<std::int64_t>(skip),
              part);
        n -= part;
        if (n == 0) return;
        skip = 0;
      }
    }
  }
}

void RoundRobinLayout::gather(const std::byte* base, std::uint64_t offset,
                              std::span<std::byte> out) const {
  std::byte* packed = out.data();
  each_piece(
      offset, out.size(), [&](const RoundRobinEntry& entry, std::int64_t at, std::uint64_t part) {
        if (entry.child) {
          move_part(*entry.child, address(base), static_cast<std::uint64_t>(at), packed, part);
        } else {
          move_bytes(packed, advance(address(base), at), part);
        }
      });
}

void RoundRobinLayout::scatter(std::byte* base, std::uint64_t offset,
                               std::span<const std::byte> in) const {
  const std::byte* packed = in.data();
  each_piece(
      offset, in.size(), [&](const RoundRobinEntry& entry, std::int64_t at, std::uint64_t part) {
        if (entry.child) {
          move_part(*entry.child, address(base), static_cast<std::uint64_t>(at), packed, part);
        } else {
          move_bytes(packed, advance(address(base), at), part);
        }
      });
}

std::byte* RoundRobinLayout::adjacent(std::byte* base, std::uint64_t offset,
                                      std::uint64_t length) const noexcept {
  std::byte* found = nullptr;
  std::uint64_t pieces = 0;
  each_piece(
      offset, length, [&](const RoundRobinEntry& entry, std::int64_t at, std::uint64_t part) {
        if (++pieces != 1 || part != length) return;
        found = entry.child ? entry.child->adjacent(base, static_cast<std::uint64_t>(at), part)
                            : pointer(advance(address(base), at));
      });
  return found;
}

bool RoundRobinLayout::equals(const Layout& other) const noexcept {
  const auto* o = dynamic_cast<const RoundRobinLayout*>(&other);
  return o != nullptr &&
         std::equal(entries_.begin(), entries_.end(), o->entries_.begin(), o->entries_.end(),
                    [](const RoundRobinEntry& a, const RoundRobinEntry& b) {
                      const bool same_child =
                          a.child && b.child ? a.child->equals(*b.child) : a.child == b.child;
                      return same_child && a.offset == b.offset && a.block == b.block &&
                             a.dims == b.dims && a.repeat == b.repeat;
                    });
}

std::string RoundRobinLayout::describe() const {
  constexpr std::size_t shown = 8;
  std::string s = "round_robin(";
  for (std::size_t i = 0; i < std::min(entries_.size(), shown); ++i) {
    const RoundRobinEntry& entry = entries_[i];
    s += (i == 0 ? "" : ", ") + text(entry.block) + " @ " + text(entry.offset);
    for (const Dimension& dim : entry.dims) s += ", " + text(dim.count) + " x " + text(dim.stride);
    if (entry.repeat != 1) s += ", " + text(entry.repeat) + " at once";
    if (entry.child) s += " of " + entry.child->describe();
  }
  return s + (entries_.size() > shown ? ", ...)" : ")");
}

std::size_t RoundRobinLayout::footprint() const noexcept {
  std::size_t bytes = sizeof *this + entries_.capacity() * sizeof(RoundRobinEntry) +
                      items_.capacity() * sizeof(std::uint64_t) +
                      phases_.capacity() * sizeof(Phase);
  for (const RoundRobinEntry& entry : entries_) {
    bytes += entry.dims.capacity() * sizeof(Dimension);
    if (entry.child) bytes += entry.child->footprint();
  }
  return bytes;
}

}  // namespace weft::hca
