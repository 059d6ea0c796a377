// Type: an MPI datatype as the standard defines it (MPI-3.1 chapter 4.1), with its normal form.
//
// Every constructor costs O(its arguments) and gives a new immutable value. Bounds follow the
// standard: markers of resized, subarray and darray types stick to whatever is built from them, and
// without markers the extent is rounded up to the strictest alignment in the type.
#pragma once

#include <cstdint>
#include <span>

#include "datatype/normal_form.hpp"
#include "hca/layout.hpp"

namespace weft::datatype {

enum class Order : std::uint8_t { c, fortran };
enum class Distribution : std::uint8_t { none, block, cyclic };

/// MPI_DISTRIBUTE_DFLT_DARG.
inline constexpr std::int64_t default_distribution_argument = -49767;

class Type;

/// What a darray's process grid says about one dimension.
struct GridDimension {
  std::int64_t size;  ///< of the global array
  Distribution distribution;
  std::int64_t argument;   ///< block size, or default_distribution_argument
  std::int64_t processes;  ///< along this dimension
};

class Type {
 public:
  /// No bytes, extent 0.
  Type() = default;

  [[nodiscard]] std::uint64_t size() const noexcept { return form_.length; }
  [[nodiscard]] std::int64_t lb() const noexcept { return lb_; }
  [[nodiscard]] std::int64_t ub() const noexcept { return ub_; }
  [[nodiscard]] std::int64_t extent() const noexcept { return ub_ - lb_; }
  [[nodiscard]] std::int64_t true_lb() const noexcept { return form_.empty() ? 0 : form_.lower(); }
  [[nodiscard]] std::int64_t true_ub() const noexcept { return form_.empty() ? 0 : form_.upper(); }
  [[nodiscard]] std::int64_t true_extent() const noexcept { return true_ub() - true_lb(); }

  [[nodiscard]] const Piece& form() const noexcept { return form_; }
  /// The layout of `count` of them, as (buffer, count, datatype) of a call means it.
  [[nodiscard]] hca::LayoutPtr layout(std::uint64_t count = 1) const;

  // The constructors, named as in MPI. They throw hca::Error: EINVAL arguments that MPI calls
  // erroneous (negative counts, lists of different lengths), EOVERFLOW more than 63 bits.

  static Type primitive(std::uint64_t size, std::uint64_t alignment);
  static Type contiguous(std::int64_t count, const Type& type);
  static Type vector(std::int64_t count, std::int64_t blocklength, std::int64_t stride,
                     const Type& type);
  static Type hvector(std::int64_t count, std::int64_t blocklength, std::int64_t stride,
                      const Type& type);
  static Type indexed(std::span<const std::int64_t> blocklengths,
                      std::span<const std::int64_t> displacements, const Type& type);
  static Type hindexed(std::span<const std::int64_t> blocklengths,
                       std::span<const std::int64_t> displacements, const Type& type);
  static Type indexed_block(std::int64_t blocklength, std::span<const std::int64_t> displacements,
                            const Type& type);
  static Type hindexed_block(std::int64_t blocklength, std::span<const std::int64_t> displacements,
                             const Type& type);
  static Type structure(std::span<const std::int64_t> blocklengths,
                        std::span<const std::int64_t> displacements, std::span<const Type> types);
  static Type subarray(std::span<const std::int64_t> sizes, std::span<const std::int64_t> subsizes,
                       std::span<const std::int64_t> starts, Order order, const Type& type);
  static Type darray(std::int64_t rank, std::span<const GridDimension> dims, Order order,
                     const Type& type);
  static Type resized(const Type& type, std::int64_t lb, std::int64_t extent);

 private:
  class Collector;

  Piece form_{};
  std::int64_t lb_ = 0;
  std::int64_t ub_ = 0;
  std::int64_t raw_ub_ = 0;  // before it is rounded up for alignment
  std::uint64_t alignment_ = 1;
  bool marked_ = false;   // bounds come from markers
  bool present_ = false;  // the type map has entries, markers included
};

}  // namespace weft::datatype
