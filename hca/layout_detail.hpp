// Shared by the layout classes: checked arithmetic and the two directions of a copy.
#pragma once

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <string>

#include "hca/layout.hpp"
#include "hca/status.hpp"

namespace weft::hca::detail {

using Wide = __int128;

/// Largest size of a packed stream and largest magnitude of an offset.
inline constexpr Wide max_value = INT64_MAX;

[[noreturn]] inline void overflow() {
  throw Error(EOVERFLOW, "layout: sizes and offsets are limited to 63 bits");
}

inline std::uint64_t checked_size(Wide value) {
  if (value < 0 || value > max_value) overflow();
  return static_cast<std::uint64_t>(value);
}

inline std::int64_t checked_offset(Wide value) {
  if (value < -max_value || value > max_value) overflow();
  return static_cast<std::int64_t>(value);
}

/// Product of two sizes.
inline std::uint64_t multiply(std::uint64_t a, std::uint64_t b) {
  const unsigned __int128 product = static_cast<unsigned __int128>(a) * b;
  if (product > static_cast<unsigned __int128>(max_value)) overflow();
  return static_cast<std::uint64_t>(product);
}

/// Distance from the first to the last of `count` > 0 steps.
inline Wide span_of(std::uint64_t count, std::int64_t stride) {
  return static_cast<Wide>(multiply(1, count) - 1) * stride;
}

/// Lower and upper bound of something placed `count` > 0 times, `stride` bytes apart.
struct Bounds {
  std::int64_t lower;
  std::int64_t upper;

  [[nodiscard]] Bounds repeated(std::uint64_t count, std::int64_t stride) const {
    const Wide span = span_of(count, stride);
    if (span > 2 * max_value || span < -2 * max_value) overflow();
    return {checked_offset(lower + (span < 0 ? span : 0)),
            checked_offset(upper + (span > 0 ? span : 0))};
  }
};

/// What the parts of a layout come to.
struct Summary {
  std::uint64_t size = 0;
  std::uint64_t blocks = 0;
  Bounds bounds{INT64_MAX, INT64_MIN};

  void add(std::uint64_t more, std::uint64_t pieces, const Bounds& at) {
    size = checked_size(static_cast<Wide>(size) + more);
    blocks = checked_size(static_cast<Wide>(blocks) + pieces);
    bounds.lower = std::min(bounds.lower, at.lower);
    bounds.upper = std::max(bounds.upper, at.upper);
  }
};

/// Addresses are integers until they are used: a null base with absolute offsets is allowed.
inline std::uintptr_t address(const std::byte* base) noexcept {
  return reinterpret_cast<std::uintptr_t>(base);
}
inline std::uintptr_t advance(std::uintptr_t at, std::int64_t by) noexcept {
  return at + static_cast<std::uintptr_t>(by);
}
/// `i` strides on; wraps like the address it is for.
inline std::uintptr_t advance(std::uintptr_t at, std::uint64_t i, std::int64_t stride) noexcept {
  return at + static_cast<std::uintptr_t>(i) * static_cast<std::uintptr_t>(stride);
}
inline std::byte* pointer(std::uintptr_t at) noexcept {
  return reinterpret_cast<std::byte*>(at);
}

/// Moves `n` bytes between the stream and memory and advances the stream.
inline void move_bytes(std::byte*& packed, std::uintptr_t memory, std::uint64_t n) noexcept {
  if (n != 0) std::memcpy(packed, pointer(memory), n);
  packed += n;
}
inline void move_bytes(const std::byte*& packed, std::uintptr_t memory, std::uint64_t n) noexcept {
  if (n != 0) std::memcpy(pointer(memory), packed, n);
  packed += n;
}

/// A layout's own gather or scatter, chosen by the direction of the stream.
inline void move_part(const Layout& layout, std::uintptr_t base, std::uint64_t offset,
                      std::byte*& packed, std::uint64_t n) {
  layout.gather(pointer(base), offset, {packed, n});
  packed += n;
}
inline void move_part(const Layout& layout, std::uintptr_t base, std::uint64_t offset,
                      const std::byte*& packed, std::uint64_t n) {
  layout.scatter(pointer(base), offset, {packed, n});
  packed += n;
}

std::string text(std::uint64_t value);
std::string text(std::int64_t value);

}  // namespace weft::hca::detail
