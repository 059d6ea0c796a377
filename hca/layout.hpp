// Layout: where the bytes of a packed stream live in memory.
//
// A layout is immutable, knows no addresses of its own (its offsets count from a base given with
// each use; with base 0 they are absolute addresses) and is shared by reference count.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

namespace weft::hca {

class Layout;
using LayoutPtr = std::shared_ptr<const Layout>;

/// What statistics and limits call a layout.
enum class LayoutKind : std::uint8_t { contiguous, strided, interleaved, sg_list, nested };

const char* to_string(LayoutKind kind) noexcept;

/// One repetition of a strided layout: `count` times, `stride` bytes apart (any sign).
struct Dimension {
  std::uint64_t count;
  std::int64_t stride;
  bool operator==(const Dimension&) const = default;
};

/// One entry of a scatter-gather list.
struct Block {
  std::int64_t offset;
  std::uint64_t length;
  bool operator==(const Block&) const = default;
};

/// A layout placed at an offset, for sequences.
struct Placed {
  std::int64_t offset;
  LayoutPtr layout;
};

/// One entry of a round robin: equal items, `repeat` of which are taken in each round.
struct RoundRobinEntry {
  LayoutPtr child{};              ///< what the items are parts of; null: of memory
  std::int64_t offset = 0;        ///< of the first item: into the child's stream, or from the base
  std::uint64_t block = 0;        ///< bytes of an item
  std::vector<Dimension> dims{};  ///< of the items, outermost first; none: one item
  std::uint64_t repeat = 1;
};

/// Blocks of this many bytes and more are copied about as fast as contiguous memory.
constexpr std::uint64_t long_block = 256;

class Layout {
 public:
  virtual ~Layout() = default;
  Layout(const Layout&) = delete;
  Layout& operator=(const Layout&) = delete;

  // Factories. They check for overflow of 63 bits (hca::Error EOVERFLOW) and drop empty parts; the
  // normal form (merging, collapsing of dimensions) is the work of datatype/.

  /// `length` bytes at `offset`.
  static LayoutPtr contiguous(std::uint64_t length, std::int64_t offset = 0);
  /// Blocks of `block` bytes; dimensions outermost first.
  static LayoutPtr strided(std::int64_t offset, std::uint64_t block,
                           std::span<const Dimension> dims);
  /// A list of blocks in the order given. Kept in compact form (equal lengths, 32-bit offsets).
  static LayoutPtr sg_list(std::span<const Block> blocks);
  /// `count` copies of `child`, `stride` bytes apart.
  static LayoutPtr repeat(LayoutPtr child, std::uint64_t count, std::int64_t stride);
  /// Copies of one child at the given offsets.
  static LayoutPtr indexed(LayoutPtr child, std::span<const std::int64_t> offsets);
  /// Different layouts one after another.
  static LayoutPtr sequence(std::span<const Placed> parts);
  /// Bytes `offset` to `offset + length` of a layout's stream (hca::Error EINVAL when it has not
  /// those).
  static LayoutPtr slice(LayoutPtr child, std::uint64_t offset, std::uint64_t length);
  /// Items of each entry in turn until all have run out; an entry that has is passed over. Items
  /// of a child must lie in its stream (hca::Error EINVAL).
  static LayoutPtr round_robin(std::vector<RoundRobinEntry> entries);

  /// Bytes of the packed stream.
  [[nodiscard]] std::uint64_t size() const noexcept { return size_; }
  /// First byte touched and one past the last, counted from the base (true lower and upper bound).
  [[nodiscard]] std::int64_t lower() const noexcept { return lower_; }
  [[nodiscard]] std::int64_t upper() const noexcept { return upper_; }
  /// Pieces the stream is moved in. Most are not adjacent; long lists are held in pieces of one
  /// length, of which some may be.
  [[nodiscard]] std::uint64_t block_count() const noexcept { return blocks_; }
  /// Mean length of the pieces, as far as it matters to speed; `base` as in gather().
  [[nodiscard]] virtual std::uint64_t mean_block(const std::byte* /*base*/) const noexcept {
    return blocks_ == 0 ? 0 : size_ / blocks_;
  }
  /// Whether moving the stream in pieces of a few KiB, one after the other, takes no longer than
  /// all at once.
  [[nodiscard]] virtual bool cuts_well() const noexcept { return false; }
  [[nodiscard]] LayoutKind kind() const noexcept { return kind_; }
  [[nodiscard]] bool is_contiguous() const noexcept { return kind_ == LayoutKind::contiguous; }

  /// Copies `out.size()` bytes of the packed stream from `offset` on out of memory at `base`.
  /// `offset + out.size()` must not exceed `size()`. Any byte offset is allowed.
  virtual void gather(const std::byte* base, std::uint64_t offset,
                      std::span<std::byte> out) const = 0;
  /// The opposite direction.
  virtual void scatter(std::byte* base, std::uint64_t offset,
                       std::span<const std::byte> in) const = 0;

  /// Where `length` bytes of the stream from `offset` on are, when they are adjacent in memory;
  /// else null. They must be within the stream.
  [[nodiscard]] virtual std::byte* adjacent(std::byte* /*base*/, std::uint64_t /*offset*/,
                                            std::uint64_t /*length*/) const noexcept {
    return nullptr;
  }

  /// Two layouts are equal when they are the same description (of normalised layouts: the same
  /// bytes in the same order).
  [[nodiscard]] virtual bool equals(const Layout& other) const noexcept = 0;
  /// The description as text, for people: `strided(offset 0, block 8, 1024 x 8208)`.
  [[nodiscard]] virtual std::string describe() const = 0;
  /// Memory that the description takes, in bytes.
  [[nodiscard]] virtual std::size_t footprint() const noexcept = 0;

 protected:
  Layout(LayoutKind kind, std::uint64_t size, std::int64_t lower, std::int64_t upper,
         std::uint64_t blocks) noexcept
      : size_(size), lower_(lower), upper_(upper), blocks_(blocks), kind_(kind) {}

 private:
  std::uint64_t size_;
  std::int64_t lower_;
  std::int64_t upper_;
  std::uint64_t blocks_;
  LayoutKind kind_;
};

}  // namespace weft::hca
