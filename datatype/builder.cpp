#include "datatype/builder.hpp"

#include <algorithm>
#include <bit>
#include <cerrno>
#include <string>
#include <vector>

#include "hca/layout_detail.hpp"
#include "hca/status.hpp"

namespace weft::datatype {

using hca::detail::checked_offset;
using hca::detail::Wide;

namespace {

[[noreturn]] void invalid(const std::string& why) {
  throw hca::Error(EINVAL, "datatype: " + why);
}

std::uint64_t count_of(std::int64_t value, const char* what) {
  if (value < 0) invalid(std::string(what) + " is negative");
  return static_cast<std::uint64_t>(value);
}

std::int64_t multiply(std::int64_t a, std::int64_t b) {
  return checked_offset(static_cast<Wide>(a) * b);
}

void require_same(std::size_t a, std::size_t b, const char* what) {
  if (a != b) invalid(std::string("there must be as many ") + what);
}

}  // namespace

/// Gathers the parts of a type under construction and works out its bounds.
class Type::Collector {
 public:
  /// `count` copies of `type`, an extent apart, the first at `at`.
  void add(const Type& type, std::uint64_t count, std::int64_t at) {
    add_rows(type, count, at, 1, 0);
  }

  /// The same `rows` times, `stride` apart.
  void add_rows(const Type& type, std::uint64_t count, std::int64_t at, std::uint64_t rows,
                std::int64_t stride) {
    if (count == 0 || rows == 0 || !type.present_) return;
    const std::int64_t extent = type.extent();
    pieces_.push_back(moved(loop(loop(type.form_, count, extent), rows, stride), at));
    const hca::detail::Bounds first{checked_offset(static_cast<Wide>(type.lb_) + at),
                                    checked_offset(static_cast<Wide>(type.raw_ub_) + at)};
    const hca::detail::Bounds all = first.repeated(count, extent).repeated(rows, stride);
    if (type.marked_ && !marked_) {
      marked_ = true;
      lower_ = INT64_MAX;
      upper_ = INT64_MIN;
    }
    if (type.marked_ == marked_) {
      lower_ = std::min(lower_, all.lower);
      upper_ = std::max(upper_, all.upper);
    }
    alignment_ = std::max(alignment_, type.alignment_);
    present_ = true;
  }

  Type finish() {
    Type type;
    type.form_ = list(std::move(pieces_));
    type.alignment_ = alignment_;
    if (!present_) return type;
    type.present_ = true;
    type.marked_ = marked_;
    type.lb_ = lower_;
    type.raw_ub_ = upper_;
    type.ub_ = upper_;
    if (!marked_) {
      const Wide extent = static_cast<Wide>(upper_) - lower_;
      const Wide rounded = (extent + alignment_ - 1) / alignment_ * alignment_;
      type.ub_ = checked_offset(lower_ + rounded);
    }
    checked_offset(static_cast<Wide>(type.ub_) - type.lb_);
    return type;
  }

 private:
  std::vector<Piece> pieces_;
  std::int64_t lower_ = INT64_MAX;
  std::int64_t upper_ = INT64_MIN;
  std::uint64_t alignment_ = 1;
  bool marked_ = false;
  bool present_ = false;
};

hca::LayoutPtr Type::layout(std::uint64_t count) const {
  return to_layout(loop(form_, count, extent()));
}

Type Type::primitive(std::uint64_t size, std::uint64_t alignment) {
  if (!std::has_single_bit(alignment)) invalid("an alignment is no power of two");
  Type type;
  type.form_ = block(size);
  if (size == 0) return type;
  type.raw_ub_ = type.ub_ = static_cast<std::int64_t>(size);
  type.alignment_ = alignment;
  type.present_ = true;
  return type;
}

Type Type::contiguous(std::int64_t count, const Type& type) {
  Collector c;
  c.add(type, count_of(count, "count"), 0);
  return c.finish();
}

Type Type::vector(std::int64_t count, std::int64_t blocklength, std::int64_t stride,
                  const Type& type) {
  return hvector(count, blocklength, multiply(stride, type.extent()), type);
}

Type Type::hvector(std::int64_t count, std::int64_t blocklength, std::int64_t stride,
                   const Type& type) {
  Collector c;
  c.add_rows(type, count_of(blocklength, "blocklength"), 0, count_of(count, "count"), stride);
  return c.finish();
}

Type Type::indexed(std::span<const std::int64_t> blocklengths,
                   std::span<const std::int64_t> displacements, const Type& type) {
  require_same(blocklengths.size(), displacements.size(), "blocklengths as displacements");
  Collector c;
  for (std::size_t i = 0; i < blocklengths.size(); ++i) {
    c.add(type, count_of(blocklengths[i], "a blocklength"),
          multiply(displacements[i], type.extent()));
  }
  return c.finish();
}

Type Type::hindexed(std::span<const std::int64_t> blocklengths,
                    std::span<const std::int64_t> displacements, const Type& type) {
  require_same(blocklengths.size(), displacements.size(), "blocklengths as displacements");
  Collector c;
  for (std::size_t i = 0; i < blocklengths.size(); ++i) {
    c.add(type, count_of(blocklengths[i], "a blocklength"), displacements[i]);
  }
  return c.finish();
}

Type Type::indexed_block(std::int64_t blocklength, std::span<const std::int64_t> displacements,
                         const Type& type) {
  Collector c;
  for (const std::int64_t at : displacements) {
    c.add(type, count_of(blocklength, "blocklength"), multiply(at, type.extent()));
  }
  return c.finish();
}

Type Type::hindexed_block(std::int64_t blocklength, std::span<const std::int64_t> displacements,
                          const Type& type) {
  Collector c;
  for (const std::int64_t at : displacements) {
    c.add(type, count_of(blocklength, "blocklength"), at);
  }
  return c.finish();
}

Type Type::structure(std::span<const std::int64_t> blocklengths,
                     std::span<const std::int64_t> displacements, std::span<const Type> types) {
  require_same(blocklengths.size(), displacements.size(), "blocklengths as displacements");
  require_same(blocklengths.size(), types.size(), "types as blocklengths");
  Collector c;
  for (std::size_t i = 0; i < types.size(); ++i) {
    c.add(types[i], count_of(blocklengths[i], "a blocklength"), displacements[i]);
  }
  return c.finish();
}

Type Type::subarray(std::span<const std::int64_t> sizes, std::span<const std::int64_t> subsizes,
                    std::span<const std::int64_t> starts, Order order, const Type& type) {
  require_same(sizes.size(), subsizes.size(), "subsizes as sizes");
  require_same(sizes.size(), starts.size(), "starts as sizes");
  if (sizes.empty()) invalid("a subarray needs a dimension");
  Piece form = type.form_;
  std::int64_t extent = type.extent();
  for (std::size_t i = 0; i < sizes.size(); ++i) {
    // From the dimension whose elements are next to each other outwards.
    const std::size_t d = order == Order::c ? sizes.size() - 1 - i : i;
    if (sizes[d] < 1 || subsizes[d] < 1 || subsizes[d] > sizes[d] || starts[d] < 0 ||
        starts[d] > sizes[d] - subsizes[d]) {
      invalid("a subarray must lie within its array and be at least one element wide");
    }
    form = moved(loop(form, static_cast<std::uint64_t>(subsizes[d]), extent),
                 multiply(starts[d], extent));
    extent = multiply(extent, sizes[d]);
  }
  Type result = type;
  result.form_ = std::move(form);
  return resized(result, 0, extent);
}

Type Type::darray(std::int64_t rank, std::span<const GridDimension> dims, Order order,
                  const Type& type) {
  if (dims.empty()) invalid("a darray needs a dimension");
  // The process grid is in row-major order whatever the order of the array.
  std::vector<std::int64_t> coordinates(dims.size());
  std::int64_t left = rank;
  for (std::size_t d = dims.size(); d-- > 0;) {
    if (dims[d].processes < 1) invalid("a process grid needs a process in every dimension");
    coordinates[d] = left % dims[d].processes;
    left /= dims[d].processes;
  }
  if (rank < 0 || left != 0) invalid("the rank is outside the process grid");

  Piece form = type.form_;
  std::int64_t extent = type.extent();
  for (std::size_t i = 0; i < dims.size(); ++i) {
    const std::size_t d = order == Order::c ? dims.size() - 1 - i : i;
    const auto [size, distribution, argument, processes] = dims[d];
    const bool by_default = argument == default_distribution_argument;
    if (size < 1) invalid("a darray needs an element in every dimension");
    if (!by_default && argument < 1 && distribution != Distribution::none) {
      invalid("a distribution argument is not positive");
    }
    std::int64_t width = size;  // of one block of the distribution
    if (distribution == Distribution::none) {
      if (processes != 1) invalid("an undistributed dimension has one process");
    } else if (distribution == Distribution::block) {
      width = by_default ? (size + processes - 1) / processes : argument;
      if (static_cast<Wide>(width) * processes < size) invalid("the blocks do not cover the array");
    } else {
      width = by_default ? 1 : argument;
    }
    const std::int64_t first = multiply(coordinates[d], width);
    const std::int64_t cycle = multiply(width, processes);
    // Whole blocks of this process, then what is left of the last.
    const std::int64_t after = size > first ? size - first : 0;
    std::int64_t whole = after / cycle;
    std::int64_t part = std::min(after - whole * cycle, width);
    if (part == width) {
      ++whole;
      part = 0;
    }
    const auto count = static_cast<std::uint64_t>(width);
    form = list(
        {moved(loop(loop(form, count, extent), static_cast<std::uint64_t>(whole),
                    multiply(cycle, extent)),
               multiply(first, extent)),
         moved(loop(form, static_cast<std::uint64_t>(part), extent),
               multiply(checked_offset(static_cast<Wide>(first) + static_cast<Wide>(whole) * cycle),
                        extent))});
    extent = multiply(extent, size);
  }
  Type result = type;
  result.form_ = std::move(form);
  return resized(result, 0, extent);
}

Type Type::resized(const Type& type, std::int64_t lb, std::int64_t extent) {
  Type result = type;
  result.lb_ = lb;
  result.ub_ = result.raw_ub_ = checked_offset(static_cast<Wide>(lb) + extent);
  result.marked_ = true;
  result.present_ = true;
  return result;
}

}  // namespace weft::datatype
