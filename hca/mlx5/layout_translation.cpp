#include "hca/mlx5/layout_translation.hpp"

#include <cerrno>
#include <string>
#include <utility>

#include "hca/layout_nodes.hpp"
#include "hca/status.hpp"

namespace weft::hca::mlx5 {

namespace {

template <class Value>
void check_limit(const char* what, Value value, std::uint64_t limit) {
  if (std::cmp_greater(value, limit)) {
    throw Error(EOPNOTSUPP, std::string(what) + " " + std::to_string(value) +
                                ", the card's limit is " + std::to_string(limit));
  }
}

void check_not_zero(const char* what, std::uint64_t value) {
  if (value == 0) throw Error(EINVAL, std::string(what) + " is 0");
}

/// `bytes` bytes from `addr` on end within the address space.
void check_range(std::uint64_t addr, std::uint64_t bytes) {
  if (bytes != 0 && addr + (bytes - 1) < addr) {
    throw Error(EINVAL, std::to_string(bytes) + " bytes at " + std::to_string(addr) +
                            " go past the end of the address space");
  }
}

/// One entry of `repeat` rounds; `stride` from item to item.
mlx5dv_mr_interleaved entry(std::uint64_t addr, std::uint64_t block, std::uint64_t stride,
                            std::uint64_t repeat, std::uint32_t lkey) {
  check_not_zero("the length of an interleaved item", block);
  check_limit("length of an interleaved item", block, CardLimits::max_block);
  // A single item is not followed by another: its stride does not matter.
  if (repeat == 1) stride = block;
  check_limit("stride", stride, CardLimits::max_stride);
  if (stride < block) {
    throw Error(EOPNOTSUPP, "items of " + std::to_string(block) + " bytes, " +
                                std::to_string(stride) +
                                " apart: the card takes none that overlap");
  }
  // At most 2^32 rounds of 2^16: no overflow.
  check_range(addr, (repeat - 1) * stride + block);
  return {addr, static_cast<std::uint32_t>(block), static_cast<std::uint32_t>(stride - block),
          lkey};
}

CardLayout interleaved(std::vector<mlx5dv_mr_interleaved> entries, std::uint64_t repeat,
                       const CardLimits& limits) {
  check_limit("number of interleaved entries", entries.size(), limits.max_interleaved);
  check_limit("number of interleaved entries", entries.size(), CardLimits::max_key_entries - 1);
  check_limit("number of rounds", repeat, CardLimits::max_repeat);
  CardLayout result;
  for (const mlx5dv_mr_interleaved& e : entries) result.bytes += e.bytes_count;
  result.bytes *= repeat;
  check_limit("number of bytes", result.bytes, CardLimits::max_bytes);
  result.repeat = static_cast<std::uint32_t>(repeat);
  result.interleaved = std::move(entries);
  return result;
}

/// Calls `visit(address, length)` for each block, in the order of the stream. Sums wrap, as they do
/// where a layout is executed: it is their result that lies within the layout's bounds.
template <class Visit>
void each_block(const Layout& layout, std::uint64_t at, const Visit& visit) {
  const auto far = [](std::uint64_t i, std::int64_t stride) {
    return i * static_cast<std::uint64_t>(stride);
  };
  const auto walk = [&](const auto& self, std::span<const Dimension> dims, std::uint64_t from,
                        std::uint64_t block) -> void {
    if (dims.empty()) return visit(from, block);
    for (std::uint64_t i = 0; i < dims[0].count; ++i) {
      self(self, dims.subspan(1), from + far(i, dims[0].stride), block);
    }
  };
  if (layout.is_contiguous()) {
    visit(at + far(1, layout.lower()), layout.size());
  } else if (const auto* s = dynamic_cast<const StridedLayout*>(&layout)) {
    walk(walk, s->dims(), at + far(1, s->offset()), s->block());
  } else if (const auto* list = dynamic_cast<const SgListLayout*>(&layout)) {
    for (std::uint64_t i = 0; i < list->block_count(); ++i) {
      const Block block = list->entry(i);
      visit(at + far(1, block.offset), block.length);
    }
  } else if (const auto* rounds = dynamic_cast<const InterleavedLayout*>(&layout)) {
    for (std::uint64_t i = 0; i < rounds->count(); ++i) {
      for (const Block& block : rounds->entries()) {
        visit(at + far(i, rounds->stride()) + far(1, block.offset), block.length);
      }
    }
  } else if (const auto* repeat = dynamic_cast<const RepeatLayout*>(&layout)) {
    for (std::uint64_t i = 0; i < repeat->count(); ++i) {
      each_block(*repeat->child(), at + far(i, repeat->stride()), visit);
    }
  } else if (const auto* copies = dynamic_cast<const IndexedLayout*>(&layout)) {
    for (const std::int64_t offset : copies->offsets()) {
      each_block(*copies->child(), at + far(1, offset), visit);
    }
  } else if (const auto* sequence = dynamic_cast<const SequenceLayout*>(&layout)) {
    for (const Placed& part : sequence->parts()) {
      each_block(*part.layout, at + far(1, part.offset), visit);
    }
  } else {
    throw Error(EOPNOTSUPP, "no layout that the card has: " + layout.describe());
  }
}

/// The rounds of a strided or interleaved layout. `repeat` 0: it is of another kind.
struct Rounds {
  std::uint64_t repeat = 0;
  std::int64_t stride = 0;
  std::vector<ibv_sge> blocks;  ///< of the first round
};

Rounds rounds_of(const Layout& layout, std::uint64_t base, const CardLimits& limits) {
  Rounds result;
  LayoutPtr round;
  if (const auto* rounds = dynamic_cast<const InterleavedLayout*>(&layout)) {
    result.repeat = rounds->count();
    result.stride = rounds->stride();
    round = Layout::sg_list(rounds->entries());
  } else if (const auto* strided = dynamic_cast<const StridedLayout*>(&layout)) {
    // The outermost dimension is the rounds, the inner ones are spelt out.
    result.repeat = strided->dims()[0].count;
    result.stride = strided->dims()[0].stride;
    round = Layout::strided(strided->offset(), strided->block(), strided->dims().subspan(1));
  } else {
    return result;
  }
  check_limit("number of interleaved entries", round->block_count(), limits.max_interleaved);
  each_block(*round, base, [&](std::uint64_t addr, std::uint64_t length) {
    check_limit("length of an interleaved item", length, CardLimits::max_block);
    result.blocks.push_back({addr, static_cast<std::uint32_t>(length), 0});
  });
  return result;
}

}  // namespace

CardLayout list_of(std::span<const ibv_sge> list, const CardLimits& limits) {
  check_not_zero("the number of entries", list.size());
  check_limit("number of entries", list.size(), limits.max_list);
  check_limit("number of entries", list.size(), CardLimits::max_key_entries);
  CardLayout result;
  for (const ibv_sge& sge : list) {
    check_not_zero("the length of an entry", sge.length);
    check_range(sge.addr, sge.length);
    result.bytes += sge.length;
  }
  check_limit("number of bytes", result.bytes, CardLimits::max_bytes);
  result.list.assign(list.begin(), list.end());
  return result;
}

CardLayout interleaved_of(std::span<const InterleavedEntry> entries, const CardLimits& limits) {
  check_not_zero("the number of entries", entries.size());
  check_limit("number of interleaved entries", entries.size(), limits.max_interleaved);
  std::vector<mlx5dv_mr_interleaved> items;
  std::uint64_t repeat = 0;
  for (const InterleavedEntry& e : entries) {
    check_limit("number of dimensions", e.dims.size(), 1);
    const DatumDimension dim = e.dims.empty() ? DatumDimension{e.first.length, 1} : e.dims[0];
    check_not_zero("datum_count", dim.count);
    check_not_zero("num_repeated", e.repeated);
    check_limit("num_repeated", e.repeated, limits.max_interleaved);
    check_limit("stride", dim.stride, CardLimits::max_stride);
    const std::uint64_t rounds = dim.count / e.repeated;
    const bool uneven = rounds * e.repeated != dim.count || (repeat != 0 && rounds != repeat);
    if (uneven) {
      throw Error(EOPNOTSUPP, std::to_string(dim.count) + " items, " + std::to_string(e.repeated) +
                                  " in a round: the card takes entries that end in the same round" +
                                  (repeat != 0 ? ", here " + std::to_string(repeat) : ""));
    }
    repeat = rounds;
    check_limit("number of rounds", repeat, CardLimits::max_repeat);
    // An entry that is visited several times in a round is as many entries.
    check_range(e.first.addr, (e.repeated - 1) * dim.stride + e.first.length);
    for (std::uint32_t i = 0; i < e.repeated; ++i) {
      items.push_back(entry(e.first.addr + i * dim.stride, e.first.length, dim.stride * e.repeated,
                            repeat, e.first.lkey));
    }
  }
  return interleaved(std::move(items), repeat, limits);
}

CardLayout card_layout_of(const Layout& layout, std::uint64_t base, std::uint32_t lkey,
                          const CardLimits& limits) {
  check_not_zero("the length of the layout", layout.size());
  check_limit("number of bytes", layout.size(), CardLimits::max_bytes);
  // All of it lies within the address space if it does not wrap.
  check_range(
      base + static_cast<std::uint64_t>(layout.lower()),
      static_cast<std::uint64_t>(layout.upper()) - static_cast<std::uint64_t>(layout.lower()));
  if (layout.block_count() <= limits.max_list) {
    std::vector<ibv_sge> list;
    each_block(layout, base, [&](std::uint64_t addr, std::uint64_t length) {
      list.push_back({addr, static_cast<std::uint32_t>(length), lkey});
    });
    return list_of(list, limits);
  }
  const Rounds rounds = rounds_of(layout, base, limits);
  if (rounds.repeat == 0) check_limit("number of blocks", layout.block_count(), limits.max_list);
  if (rounds.stride < 0) {
    throw Error(EOPNOTSUPP,
                "stride " + std::to_string(rounds.stride) + ", the card takes none below 0");
  }
  check_limit("number of rounds", rounds.repeat, CardLimits::max_repeat);
  std::vector<mlx5dv_mr_interleaved> items;
  for (const ibv_sge& block : rounds.blocks) {
    items.push_back(entry(block.addr, block.length, static_cast<std::uint64_t>(rounds.stride),
                          rounds.repeat, lkey));
  }
  return interleaved(std::move(items), rounds.repeat, limits);
}

}  // namespace weft::hca::mlx5
