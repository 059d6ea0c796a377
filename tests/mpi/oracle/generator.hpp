// Random datatypes for a given signature: nested constructors of every kind.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "tests/mpi/oracle/built_type.hpp"
#include "tests/mpi/oracle/rng.hpp"
#include "tests/mpi/oracle/signature.hpp"

namespace weft::oracle {

/// What a send or receive call is given: `count` elements of `type`.
struct Message {
  BuiltType type;
  int count = 0;
  TypeMap map;  ///< of all `count` elements
};

class Generator {
 public:
  /// With `may_overlap` the types may name a byte more than once, which is right for senders only.
  Generator(Rng& rng, bool may_overlap) : rng_(rng), may_overlap_(may_overlap) {}

  /// Elements that together have this signature.
  Message message(const Signature& signature);

 private:
  /// One type of `n` units.
  BuiltType units(const Unit& unit, std::int64_t n, int depth);
  /// A type without elements.
  BuiltType nothing();
  /// One unit.
  BuiltType single(const Unit& unit, int depth);
  /// `n` copies of one type by a random constructor.
  BuiltType copies(BuiltType inner, std::int64_t n);
  /// `n` units as a struct of several types of fewer units each.
  BuiltType parts(const Unit& unit, std::int64_t n, int depth);
  BuiltType copies_in_subarray(const BuiltType& inner, std::int64_t n);
  BuiltType copies_in_darray(const BuiltType& inner, std::int64_t n);
  BuiltType copies_interleaved(const BuiltType& inner, std::int64_t n);
  /// The same elements with an extent that lets copies follow one another without touching.
  BuiltType steppable(BuiltType type);
  /// The same elements with any extent at all.
  BuiltType any_extent(BuiltType type);
  /// One dimension of which a process holds `mine` elements.
  Distribution random_distribution(int mine);
  /// `n` as a product of `factors` numbers.
  std::vector<int> factorise(std::int64_t n, int factors);
  /// Block lengths that sum up to `n`, some of them zero.
  std::vector<int> block_lengths(std::int64_t n);
  /// Where blocks of these sizes lie: apart, in random order (overlapping, where that is allowed).
  std::vector<std::int64_t> places(std::span<const std::int64_t> sizes);
  /// Room left between blocks of about `size`.
  std::int64_t gap(std::int64_t size);

  Rng& rng_;
  bool may_overlap_;
  bool tight_ = false;
  std::int64_t gap_style_ = 0;
};

}  // namespace weft::oracle
