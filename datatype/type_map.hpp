// TypeMap: a datatype written out byte range by byte range, exactly as the MPI standard defines it.
//
// The oracle of the tests: slow, obvious, and sharing no code with the builder or the layouts.
#pragma once

#include <cstddef>
#include <cstdint>
#include <random>
#include <vector>

#include "datatype/spec.hpp"

namespace weft::datatype {

struct TypeMap {
  /// One basic element.
  struct Entry {
    std::int64_t displacement;
    std::uint64_t size;
    std::uint64_t alignment;
  };

  std::vector<Entry> entries{};
  std::vector<std::int64_t> lb_markers{};
  std::vector<std::int64_t> ub_markers{};

  [[nodiscard]] std::uint64_t size() const;
  [[nodiscard]] std::int64_t lb() const;
  [[nodiscard]] std::int64_t ub() const;
  [[nodiscard]] std::int64_t extent() const { return ub() - lb(); }
  [[nodiscard]] std::int64_t true_lb() const;
  [[nodiscard]] std::int64_t true_ub() const;

  /// The same type, `count` times.
  [[nodiscard]] TypeMap repeated(std::int64_t count) const;
  /// Where in memory each byte of the packed stream is.
  [[nodiscard]] std::vector<std::int64_t> bytes() const;
};

TypeMap expand(const Spec& spec);

/// What random_spec() may make.
struct RandomSpecLimits {
  std::uint64_t max_bytes = 4096;   ///< packed; roughly
  std::int64_t max_span = 1 << 20;  ///< memory between the first and the last byte; exactly
  int max_depth = 4;
};

/// A random datatype over all constructors, with empty parts, negative strides, odd extents and
/// overlaps.
Spec random_spec(std::mt19937_64& random, const RandomSpecLimits& limits = {});

}  // namespace weft::datatype
