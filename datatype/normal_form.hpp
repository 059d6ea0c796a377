// The normal form of a type map: blocks, loops and lists, built bottom-up so that equal byte
// streams written in different ways come out equal.
//
// A piece is a part of the packed stream placed in memory: a block of bytes or a term. A term
// counts from its own first byte, so a piece moves by changing one number. The rules, each applied
// where a piece is made:
//   - nothing is empty, no loop runs once, no list has one item, lists do not contain lists;
//   - two blocks that follow each other in the stream and in memory are one block, also where one
//     iteration of a loop meets the next (the loop then starts a block later; long lists stay as
//     they are);
//   - a loop over a loop that tiles it is one loop;
//   - in a list, three or more equal pieces a constant step apart are a loop, and so is a group of
//     pieces that comes three or more times.
// A piece of few blocks (canonical_blocks) is written out and collected anew, so that its form
// depends on its blocks alone, however it was described. Beyond, loops are never expanded: the cost
// is O(description) and two descriptions come out equal if these rules lead from one to the other.
// The order of the stream is never changed.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "hca/layout.hpp"

namespace weft::datatype {

/// Pieces of up to this many blocks have one form only.
inline constexpr std::uint64_t canonical_blocks = 256;

class Term;
using TermPtr = std::shared_ptr<const Term>;

/// `length` bytes of the stream (0: empty); the first of them is at `offset`. Without a term they
/// are contiguous.
struct Piece {
  std::int64_t offset = 0;
  std::uint64_t length = 0;
  TermPtr term{};

  [[nodiscard]] bool empty() const noexcept { return length == 0; }
  [[nodiscard]] bool is_block() const noexcept { return term == nullptr; }
  [[nodiscard]] bool is_loop() const noexcept;
  [[nodiscard]] bool is_list() const noexcept;
  [[nodiscard]] std::uint64_t blocks() const noexcept;
  /// First byte touched and one past the last. 0 and 0 when empty.
  [[nodiscard]] std::int64_t lower() const noexcept;
  [[nodiscard]] std::int64_t upper() const noexcept;
};

/// A loop (`items` is its body) or a list. Immutable; made by loop() and list() only.
class Term {
 public:
  std::vector<Piece> items;  ///< of a loop: one; the first item is at offset 0
  std::uint64_t count = 0;   ///< of a loop; 0: a list
  std::int64_t stride = 0;   ///< of a loop
  std::uint64_t blocks = 0;
  std::int64_t lower = 0;  ///< counted from the first byte, as all offsets here
  std::int64_t upper = 0;
  Piece last_block{};  ///< of the stream
  std::uint64_t hash = 0;
};

/// Same bytes relative to their first one; offsets are not compared.
bool same_shape(const Piece& a, const Piece& b) noexcept;

// All throw hca::Error EOVERFLOW when sizes or offsets exceed 63 bits.

Piece block(std::uint64_t length, std::int64_t offset = 0);
Piece moved(Piece piece, std::int64_t by);
/// `count` copies, `stride` bytes apart.
Piece loop(const Piece& body, std::uint64_t count, std::int64_t stride);
/// One after another.
Piece list(std::vector<Piece> pieces);

/// Appends the blocks of a piece in order: O(blocks), for short pieces only.
void append_blocks(const Piece& piece, std::vector<Piece>& out);
void append_blocks(const Piece& piece, std::vector<hca::Block>& out);

/// The layout that executes a piece fastest; equal pieces give equal layouts.
hca::LayoutPtr to_layout(const Piece& piece);
/// The piece of a layout.
Piece from_layout(const hca::Layout& layout);

}  // namespace weft::datatype
