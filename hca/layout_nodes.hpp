// The classes behind Layout's factories, for those who translate a layout into something else (a
// device's work request, another normal form). Users of layouts need only layout.hpp.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "hca/kernels/kernels.hpp"
#include "hca/layout.hpp"

namespace weft::hca {

namespace detail {
struct Summary;
}

/// One piece of memory.
class ContiguousLayout final : public Layout {
 public:
  ContiguousLayout(std::uint64_t length, std::int64_t offset);
  void gather(const std::byte* base, std::uint64_t offset,
              std::span<std::byte> out) const noexcept override;
  void scatter(std::byte* base, std::uint64_t offset,
               std::span<const std::byte> in) const noexcept override;
  [[nodiscard]] std::byte* adjacent(std::byte* base, std::uint64_t offset,
                                    std::uint64_t length) const noexcept override;
  [[nodiscard]] bool equals(const Layout& other) const noexcept override;
  [[nodiscard]] std::string describe() const override;
  [[nodiscard]] std::size_t footprint() const noexcept override;
};

/// Equal blocks in one or more dimensions; at least one dimension, every count positive.
class StridedLayout final : public Layout {
 public:
  StridedLayout(std::int64_t offset, std::uint64_t block, std::vector<Dimension> dims);
  /// Of the first block.
  [[nodiscard]] std::int64_t offset() const noexcept { return offset_; }
  [[nodiscard]] std::uint64_t block() const noexcept { return block_; }
  /// Outermost first.
  [[nodiscard]] std::span<const Dimension> dims() const noexcept { return dims_; }

  void gather(const std::byte* base, std::uint64_t offset,
              std::span<std::byte> out) const noexcept override;
  void scatter(std::byte* base, std::uint64_t offset,
               std::span<const std::byte> in) const noexcept override;
  [[nodiscard]] std::byte* adjacent(std::byte* base, std::uint64_t offset,
                                    std::uint64_t length) const noexcept override;
  [[nodiscard]] bool cuts_well() const noexcept override { return order_ != Order::columns; }
  [[nodiscard]] bool equals(const Layout& other) const noexcept override;
  [[nodiscard]] std::string describe() const override;
  [[nodiscard]] std::size_t footprint() const noexcept override;

 private:
  template <bool gathering, typename Packed>
  void row(std::uintptr_t at, std::uint64_t skip, Packed& packed, std::uint64_t n) const noexcept;
  template <bool gathering, typename Packed>
  void plane(std::uintptr_t at, std::uint64_t skip, Packed& packed, std::uint64_t n) const noexcept;
  template <bool gathering, typename Packed>
  void walk(std::size_t dim, std::uintptr_t at, std::uint64_t skip, Packed& packed,
            std::uint64_t n) const noexcept;

  std::int64_t offset_;
  std::uint64_t block_;
  std::vector<Dimension> dims_;
  std::vector<std::uint64_t> bytes_;  // packed bytes of one iteration of each dimension
  const kernels::BlockKernels* kernels_;
  /// How whole rows of the two inner dimensions are executed.
  enum class Order : std::uint8_t {
    rows,     // a kernel call for each
    plane,    // one call for all: rows are short
    columns,  // one call, the loops exchanged: neighbours in memory are in different rows
  } order_;
};

/// A list of blocks; how it is stored depends on their lengths and offsets.
class SgListLayout : public Layout {
 public:
  static LayoutPtr make(std::vector<Block> blocks);
  [[nodiscard]] virtual Block entry(std::uint64_t index) const noexcept = 0;
  [[nodiscard]] bool cuts_well() const noexcept override { return true; }
  [[nodiscard]] bool equals(const Layout& other) const noexcept final;
  [[nodiscard]] std::string describe() const final;

 protected:
  using Layout::Layout;
};

/// `count` rounds over a short list of blocks, each round `stride` bytes further.
class InterleavedLayout final : public Layout {
 public:
  /// Lists longer than this are executed as RepeatLayout.
  static constexpr std::size_t max_entries = 32;

  InterleavedLayout(std::vector<Block> entries, std::uint64_t count, std::int64_t stride);
  [[nodiscard]] std::span<const Block> entries() const noexcept { return entries_; }
  [[nodiscard]] std::uint64_t count() const noexcept { return count_; }
  [[nodiscard]] std::int64_t stride() const noexcept { return stride_; }

  void gather(const std::byte* base, std::uint64_t offset,
              std::span<std::byte> out) const noexcept override;
  void scatter(std::byte* base, std::uint64_t offset,
               std::span<const std::byte> in) const noexcept override;
  [[nodiscard]] std::byte* adjacent(std::byte* base, std::uint64_t offset,
                                    std::uint64_t length) const noexcept override;
  [[nodiscard]] bool equals(const Layout& other) const noexcept override;
  [[nodiscard]] std::string describe() const override;
  [[nodiscard]] std::size_t footprint() const noexcept override;

 private:
  template <bool gathering, typename Packed>
  void run(std::uintptr_t base, std::uint64_t offset, Packed packed,
           std::uint64_t n) const noexcept;
  template <bool gathering, typename Packed>
  void part_of_round(std::uintptr_t at, std::uint64_t skip, Packed& packed,
                     std::uint64_t n) const noexcept;

  std::vector<Block> entries_;
  std::vector<const kernels::BlockKernels*> kernels_;
  std::uint64_t count_;
  std::int64_t stride_;
  std::uint64_t round_;  // packed bytes of one round
  std::uint64_t tile_;   // rounds per pass, so that their memory stays in the L1 cache
};

/// Copies of one child, equally far apart.
class RepeatLayout final : public Layout {
 public:
  RepeatLayout(LayoutPtr child, std::uint64_t count, std::int64_t stride);
  [[nodiscard]] const LayoutPtr& child() const noexcept { return child_; }
  [[nodiscard]] std::uint64_t count() const noexcept { return count_; }
  [[nodiscard]] std::int64_t stride() const noexcept { return stride_; }

  void gather(const std::byte* base, std::uint64_t offset, std::span<std::byte> out) const override;
  void scatter(std::byte* base, std::uint64_t offset, std::span<const std::byte> in) const override;
  [[nodiscard]] std::byte* adjacent(std::byte* base, std::uint64_t offset,
                                    std::uint64_t length) const noexcept override;
  [[nodiscard]] bool cuts_well() const noexcept override { return child_->cuts_well(); }
  [[nodiscard]] bool equals(const Layout& other) const noexcept override;
  [[nodiscard]] std::string describe() const override;
  [[nodiscard]] std::size_t footprint() const noexcept override;

 private:
  LayoutPtr child_;
  std::uint64_t count_;
  std::int64_t stride_;
};

/// Copies of one child at listed offsets.
class IndexedLayout final : public Layout {
 public:
  IndexedLayout(LayoutPtr child, std::vector<std::int64_t> offsets);
  [[nodiscard]] const LayoutPtr& child() const noexcept { return child_; }
  [[nodiscard]] std::span<const std::int64_t> offsets() const noexcept { return offsets_; }

  void gather(const std::byte* base, std::uint64_t offset, std::span<std::byte> out) const override;
  void scatter(std::byte* base, std::uint64_t offset, std::span<const std::byte> in) const override;
  [[nodiscard]] std::byte* adjacent(std::byte* base, std::uint64_t offset,
                                    std::uint64_t length) const noexcept override;
  [[nodiscard]] bool cuts_well() const noexcept override { return child_->cuts_well(); }
  [[nodiscard]] bool equals(const Layout& other) const noexcept override;
  [[nodiscard]] std::string describe() const override;
  [[nodiscard]] std::size_t footprint() const noexcept override;

 private:
  LayoutPtr child_;
  std::vector<std::int64_t> offsets_;
};

/// Different layouts one after another.
class SequenceLayout final : public Layout {
 public:
  explicit SequenceLayout(std::vector<Placed> parts);
  [[nodiscard]] std::span<const Placed> parts() const noexcept { return parts_; }

  void gather(const std::byte* base, std::uint64_t offset, std::span<std::byte> out) const override;
  void scatter(std::byte* base, std::uint64_t offset, std::span<const std::byte> in) const override;
  [[nodiscard]] std::byte* adjacent(std::byte* base, std::uint64_t offset,
                                    std::uint64_t length) const noexcept override;
  [[nodiscard]] bool equals(const Layout& other) const noexcept override;
  [[nodiscard]] std::string describe() const override;
  [[nodiscard]] std::size_t footprint() const noexcept override;

 private:
  SequenceLayout(const detail::Summary& sum, std::vector<Placed>&& parts);

  std::vector<Placed> parts_;
  std::vector<std::uint64_t> starts_;  // where each part begins in the packed stream
};

/// Part of another layout's stream.
class SliceLayout final : public Layout {
 public:
  SliceLayout(LayoutPtr child, std::uint64_t offset, std::uint64_t length);
  [[nodiscard]] const LayoutPtr& child() const noexcept { return child_; }
  /// Of its first byte in the child's stream.
  [[nodiscard]] std::uint64_t offset() const noexcept { return offset_; }

  [[nodiscard]] std::uint64_t mean_block(const std::byte* base) const noexcept override {
    return child_->mean_block(base);
  }
  void gather(const std::byte* base, std::uint64_t offset, std::span<std::byte> out) const override;
  void scatter(std::byte* base, std::uint64_t offset, std::span<const std::byte> in) const override;
  [[nodiscard]] std::byte* adjacent(std::byte* base, std::uint64_t offset,
                                    std::uint64_t length) const noexcept override;
  [[nodiscard]] bool cuts_well() const noexcept override { return child_->cuts_well(); }
  [[nodiscard]] bool equals(const Layout& other) const noexcept override;
  [[nodiscard]] std::string describe() const override;
  [[nodiscard]] std::size_t footprint() const noexcept override;

 private:
  LayoutPtr child_;
  std::uint64_t offset_;
};

/// Items of several entries in turn, whatever their numbers, distances and repeats.
class RoundRobinLayout final : public Layout {
 public:
  explicit RoundRobinLayout(std::vector<RoundRobinEntry> entries);
  [[nodiscard]] std::span<const RoundRobinEntry> entries() const noexcept { return entries_; }

  void gather(const std::byte* base, std::uint64_t offset, std::span<std::byte> out) const override;
  void scatter(std::byte* base, std::uint64_t offset, std::span<const std::byte> in) const override;
  [[nodiscard]] std::byte* adjacent(std::byte* base, std::uint64_t offset,
                                    std::uint64_t length) const noexcept override;
  [[nodiscard]] bool equals(const Layout& other) const noexcept override;
  [[nodiscard]] std::string describe() const override;
  [[nodiscard]] std::size_t footprint() const noexcept override;

 private:
  RoundRobinLayout(const detail::Summary& sum, std::vector<RoundRobinEntry>&& entries);

  /// Rounds of the same size.
  struct Phase {
    std::uint64_t start;  // in the packed stream
    std::uint64_t first;  // round
    std::uint64_t size;   // of a round
  };
  template <class Visit>
  void each_piece(std::uint64_t offset, std::uint64_t n, Visit visit) const;

  std::vector<RoundRobinEntry> entries_;
  std::vector<std::uint64_t> items_;  // of each entry
  std::vector<Phase> phases_;
};

}  // namespace weft::hca
