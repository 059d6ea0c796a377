// From a layout to what mlx5dv_wr_mr_interleaved and mlx5dv_wr_mr_list take, with the card's limits
// checked here: the provider cuts block and stride to 16 bits without a word, and notices a list
// that is too long only when the work request is completed.
#pragma once

#include <infiniband/mlx5dv.h>
#include <infiniband/verbs.h>

#include <cstdint>
#include <span>
#include <vector>

#include "hca/layout.hpp"

namespace weft::hca::mlx5 {

/// What one layout may have. The first two depend on the QP that registers layouts, whose work
/// requests hold the entries (IBV_SEND_INLINE); those of the smallest such QP are given here. An
/// interleaved layout has a header that takes the place of one entry.
struct CardLimits {
  std::uint32_t max_list = 4;
  std::uint32_t max_interleaved = 3;

  static constexpr std::uint32_t max_key_entries = 65535;  ///< a 16-bit field
  static constexpr std::uint64_t max_block = 65535;        ///< of an interleaved entry
  static constexpr std::uint64_t max_stride = 65535;       ///< likewise: count + skip
  static constexpr std::uint64_t max_repeat = UINT32_MAX;  ///< rounds
  static constexpr std::uint64_t max_bytes = INT32_MAX;    ///< the provider adds them up in an int
};

/// A layout as the card takes it; its addresses count from 0 (zero-based).
struct CardLayout {
  /// Rounds over `interleaved`; 0: it is `list`.
  std::uint32_t repeat = 0;
  std::vector<mlx5dv_mr_interleaved> interleaved;
  std::vector<ibv_sge> list;
  std::uint64_t bytes = 0;
};

/// `count` items, `stride` bytes apart.
struct DatumDimension {
  std::uint64_t stride;
  std::uint64_t count;
};

/// Items that are taken `repeated` at a time in each round; without a dimension one item.
struct InterleavedEntry {
  ibv_sge first;
  std::uint32_t repeated = 1;
  std::span<const DatumDimension> dims;
};

// These throw hca::Error naming value and limit: EINVAL (an empty list, a length or count of 0, an
// address that goes past the end of the address space), EOPNOTSUPP (the card cannot do it).

CardLayout list_of(std::span<const ibv_sge> list, const CardLimits& limits);
CardLayout interleaved_of(std::span<const InterleavedEntry> entries, const CardLimits& limits);
/// A layout over memory at `base` (where its offset 0 is) that `lkey` covers.
CardLayout card_layout_of(const Layout& layout, std::uint64_t base, std::uint32_t lkey,
                          const CardLimits& limits);

}  // namespace weft::hca::mlx5
