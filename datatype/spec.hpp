// Spec: the expression of a datatype, as a person writes it. The little language of weft-layout and
// the tests share it: it is parsed and printed, built into a Type, expanded by the oracle.
//
//   type  = NAME                                              double, int, byte, ... (MPI_ allowed)
//         | contiguous(count, type)
//         | vector(count, blocklength, stride, type)          stride in extents
//         | hvector(count, blocklength, stride, type)         stride in bytes
//         | indexed([blocklengths], [displacements], type)    displacements in extents
//         | hindexed([blocklengths], [displacements], type)   displacements in bytes
//         | indexed_block(blocklength, [displacements], type)
//         | hindexed_block(blocklength, [displacements], type)
//         | struct([blocklengths], [displacements], [types])
//         | subarray([sizes], [subsizes], [starts], C|F, type)
//         | darray(rank, [sizes], [none|block|cyclic ...], [arguments], [processes], C|F, type)
//         | resized(type, lb, extent)
//         | dup(type)
// An argument of a distribution is a number or `default`. Numbers may have the suffixes K, M, G.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

#include "datatype/builder.hpp"

namespace weft::datatype {

/// A predefined datatype of C, with this machine's sizes.
struct Primitive {
  std::string_view name;
  std::uint64_t size;
  std::uint64_t alignment;
};

std::span<const Primitive> primitives() noexcept;

struct Spec {
  enum class Kind : std::uint8_t {
    primitive,
    contiguous,
    vector,
    hvector,
    indexed,
    hindexed,
    indexed_block,
    hindexed_block,
    structure,
    subarray,
    darray,
    resized,
    dup
  };
  using List = std::vector<std::int64_t>;

  Kind kind = Kind::primitive;
  Primitive primitive{};
  std::int64_t count = 0;        ///< also: rank of darray
  std::int64_t blocklength = 0;  ///< also: lb of resized
  std::int64_t stride = 0;       ///< also: extent of resized
  List blocklengths{};           ///< also: subsizes of subarray
  List displacements{};          ///< also: starts of subarray
  List sizes{};
  std::vector<GridDimension> grid{};
  Order order = Order::c;
  std::vector<Spec> types{};
};

/// Where and why a text is no datatype.
class SyntaxError : public std::runtime_error {
 public:
  SyntaxError(std::size_t position, const std::string& what)
      : std::runtime_error(what), position_(position) {}
  /// Of the first character that is wrong, from 0.
  [[nodiscard]] std::size_t position() const noexcept { return position_; }

 private:
  std::size_t position_;
};

/// SyntaxError when the text is not a datatype.
Spec parse(std::string_view text);
std::string to_string(const Spec& spec);
/// hca::Error as Type's constructors throw it.
Type build(const Spec& spec);

}  // namespace weft::datatype
