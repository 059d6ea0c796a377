// Layouts that take items from several patterns in turn.
#include <algorithm>
#include <cerrno>
#include <optional>

#include "verbs/layout.hpp"
#include "verbs/limits.hpp"
#include "verbs/log.hpp"
#include "verbs/memory_region.hpp"

namespace weft::verbs {

namespace {

/// An entry as the program gave it, with what follows from that.
struct Pattern {
  ibv_sge first;
  std::uint64_t repeat;
  std::uint64_t items;
  std::uint64_t extent;  ///< from the first byte of the first item to the last of the last
  std::vector<hca::Dimension> dims;  ///< outermost first

  [[nodiscard]] std::uint64_t whole_rounds() const { return items / repeat; }
  [[nodiscard]] bool ends_with_a_round() const { return items % repeat == 0; }
};

class InterleavedDescription final : public LayoutDescription {
 public:
  InterleavedDescription(bool raw, std::vector<Pattern> patterns)
      : LayoutDescription(raw), patterns_(std::move(patterns)) {}

  [[nodiscard]] hca::LayoutPtr compile(Resolver& resolver) const override {
    std::vector<hca::RoundRobinEntry> entries;
    for (const Pattern& pattern : patterns_) {
      Resolver::Place place = resolver.place(pattern.first, pattern.extent);
      entries.push_back({std::move(place.layout), place.offset, pattern.first.length, pattern.dims,
                         pattern.repeat});
    }
    if (entries.size() == 1 && !entries[0].child) {
      return hca::Layout::strided(entries[0].offset, entries[0].block, entries[0].dims);
    }
    if (hca::LayoutPtr layout = as_equal_rounds(entries)) return layout;
    return hca::Layout::round_robin(std::move(entries));
  }

  [[nodiscard]] bool fits_in_place_of(const LayoutDescription& other) const override {
    const auto* o = dynamic_cast<const InterleavedDescription*>(&other);
    return o != nullptr &&
           std::equal(patterns_.begin(), patterns_.end(), o->patterns_.begin(), o->patterns_.end(),
                      [](const Pattern& a, const Pattern& b) { return a.repeat == b.repeat; });
  }
  [[nodiscard]] bool is_inline() const override {
    return patterns_.size() <= limits().layouts.max_inline_num_interleaved;
  }
  void populate(bool writable) const override {
    for (const Pattern& pattern : patterns_) {
      auto* const addr = reinterpret_cast<void*>(pattern.first.addr);
      check_range(addr, pattern.extent, 0);
      verbs::populate(addr, pattern.extent, writable);
    }
  }

 private:
  /// When all rounds are the same, a constant distance apart: the first one, repeated. That is
  /// executed faster. Null when they are not.
  [[nodiscard]] hca::LayoutPtr as_equal_rounds(
      const std::vector<hca::RoundRobinEntry>& entries) const {
    constexpr std::uint64_t longest_round = 1024;
    std::vector<hca::Block> round;
    std::optional<std::int64_t> distance;
    const std::uint64_t rounds = patterns_[0].whole_rounds();
    for (std::size_t i = 0; i < entries.size(); ++i) {
      const hca::RoundRobinEntry& entry = entries[i];
      if (entry.child || entry.dims.size() > 1 || !patterns_[i].ends_with_a_round() ||
          patterns_[i].whole_rounds() != rounds || entry.repeat > longest_round ||
          round.size() > longest_round) {
        return nullptr;
      }
      const std::int64_t stride = entry.dims.empty() ? 0 : entry.dims[0].stride;
      const std::int64_t apart = stride * static_cast<std::int64_t>(entry.repeat);
      if (rounds > 1 && distance.value_or(apart) != apart) return nullptr;
      distance = apart;
      for (std::uint64_t item = 0; item < entry.repeat; ++item) {
        round.push_back({entry.offset + static_cast<std::int64_t>(item) * stride, entry.block});
      }
    }
    return hca::Layout::repeat(hca::Layout::sg_list(round), rounds, *distance);
  }

  std::vector<Pattern> patterns_;
};

/// Throws hca::Error.
Pattern checked(const ibv_mr_layout_interleaved& entry) {
  const ibv_mr_layout_caps& caps = limits().layouts;
  const std::uint64_t block = entry.first_datum.length;
  if (block == 0) refuse(EINVAL, "an item of no bytes");
  if (entry.num_repeated < 1) {
    refuse(EINVAL, "num_repeated " + std::to_string(entry.num_repeated) + ", at least 1");
  }
  if (entry.num_dimensions < 0 || (entry.num_dimensions != 0 && entry.dims == nullptr)) {
    refuse(EINVAL, "num_dimensions " + std::to_string(entry.num_dimensions) + ", or no dims");
  }
  check_limit(EOPNOTSUPP, "num_dimensions", entry.num_dimensions, caps.max_mr_stride_dimension);
  check_limit(EOPNOTSUPP, "datum length", block, caps.max_datum_length);
  Pattern pattern{entry.first_datum, static_cast<std::uint64_t>(entry.num_repeated), 1, block, {}};
  for (int i = entry.num_dimensions; i-- != 0;) {
    const auto [stride, count] = entry.dims[i];
    if (count == 0) refuse(EINVAL, "a datum_count of 0");
    check_limit(EOPNOTSUPP, "offset_stride", stride, caps.max_offset_stride);
    if (!limits().overlapping_strides && count > 1 && stride < block) {
      refuse(EOPNOTSUPP, "offset_stride " + std::to_string(stride) + ", items of " +
                             std::to_string(block) + " bytes would overlap");
    }
    std::uint64_t span = 0;
    if (__builtin_mul_overflow(pattern.items, count, &pattern.items) ||
        __builtin_mul_overflow(count - 1, stride, &span) ||
        __builtin_add_overflow(pattern.extent, span, &pattern.extent) ||
        pattern.extent > INT64_MAX || pattern.items > INT64_MAX) {
      refuse(EOVERFLOW, "datum_count " + std::to_string(count) + " times offset_stride " +
                            std::to_string(stride) + ", an entry is limited to 63 bits");
    }
    pattern.dims.push_back({count, static_cast<std::int64_t>(stride)});
  }
  return pattern;
}

void check_uniformity(const std::vector<Pattern>& patterns) {
  const std::uint64_t caps = limits().layouts.cap_flags;
  const Pattern& first = patterns[0];
  for (const Pattern& pattern : patterns) {
    if (pattern.repeat > 1 && (caps & IBV_MR_SET_LAYOUT_INTERLEAVED_REPEAT) == 0) {
      refuse(EOPNOTSUPP, "num_repeated " + std::to_string(pattern.repeat) +
                             ", no IBV_MR_SET_LAYOUT_INTERLEAVED_REPEAT");
    }
    if (pattern.repeat != first.repeat &&
        (caps & IBV_MR_SET_LAYOUT_INTERLEAVED_NONUNIFORM_REPEAT) == 0) {
      refuse(EOPNOTSUPP, "num_repeated " + std::to_string(first.repeat) + " and " +
                             std::to_string(pattern.repeat) +
                             ", no IBV_MR_SET_LAYOUT_INTERLEAVED_NONUNIFORM_REPEAT");
    }
    if ((!pattern.ends_with_a_round() || pattern.whole_rounds() != first.whole_rounds()) &&
        (caps & IBV_MR_SET_LAYOUT_INTERLEAVED_NONUNIFORM_DATUM_TOTAL) == 0) {
      refuse(EOPNOTSUPP, std::to_string(first.items) + " and " + std::to_string(pattern.items) +
                             " items, no IBV_MR_SET_LAYOUT_INTERLEAVED_NONUNIFORM_DATUM_TOTAL");
    }
  }
}

}  // namespace

int set_layout_interleaved(ibv_mr* mr, int flags, int num_interleaved,
                           const ibv_mr_layout_interleaved* interleaved_list) {
  return layout_code(guarded("ibv_mr_set_layout_interleaved", [&] {
    check_carrier(mr, flags);
    const ibv_mr_layout_caps& caps = limits().layouts;
    if ((caps.cap_flags & IBV_MR_SET_LAYOUT_INTERLEAVED) == 0) {
      refuse(EOPNOTSUPP, "no IBV_MR_SET_LAYOUT_INTERLEAVED");
    }
    if (num_interleaved < 1 || interleaved_list == nullptr) {
      refuse(EINVAL, "num_interleaved " + std::to_string(num_interleaved) + ", or no list");
    }
    check_limit(EOPNOTSUPP, "num_interleaved", num_interleaved, caps.max_num_interleaved);
    std::vector<Pattern> patterns;
    std::transform(interleaved_list, interleaved_list + num_interleaved,
                   std::back_inserter(patterns), checked);
    check_uniformity(patterns);
    set_layout(MemoryRegion::of(mr), flags,
               std::make_shared<InterleavedDescription>(
                   (flags & IBV_MR_SET_LAYOUT_REGISTER_BUFFERS) != 0, std::move(patterns)));
  }));
}

}  // namespace weft::verbs
