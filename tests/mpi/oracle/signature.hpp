// The type signature of a message: what sender and receiver must agree on, while each builds a type
// of its own for it.
#pragma once

#include <cstdint>
#include <vector>

#include "tests/mpi/oracle/built_type.hpp"
#include "tests/mpi/oracle/rng.hpp"

namespace weft::oracle {

/// A run of `count` elements of basic type number `basic`.
struct Item {
  int basic;
  int count;

  bool operator==(const Item&) const = default;
};
using Unit = std::vector<Item>;

/// `units` times the elements of `unit`, in that order.
struct Signature {
  Unit unit;
  std::int64_t units;

  std::int64_t size() const;
};

/// Number of basic types known, and one of them.
int basic_types();
BuiltType basic_type(int basic);
int basic_size(int basic);
std::int64_t unit_size(const Unit& unit);
/// Whether a predefined pair type has this signature, and that type.
bool is_pair(const Unit& unit);
BuiltType pair_type(const Unit& unit);

/// A signature of about `bytes` bytes (exactly zero for zero).
Signature random_signature(Rng& rng, std::int64_t bytes);

}  // namespace weft::oracle
