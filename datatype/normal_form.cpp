#include "datatype/normal_form.hpp"

#include <algorithm>
#include <cassert>
#include <iterator>
#include <utility>

#include "hca/layout_detail.hpp"

namespace weft::datatype {

using hca::detail::checked_offset;
using hca::detail::checked_size;
using hca::detail::multiply;
using hca::detail::Wide;

namespace {

/// In a list, shorter runs than this stay single pieces.
constexpr std::uint64_t min_run = 3;
/// Groups of up to this many pieces are found when they repeat.
constexpr std::size_t max_period = 16;
/// What takes more items to describe is repeated as it is, also where two iterations meet in one
/// block: to merge it would take two more lists as long, for one block less in so many.
constexpr std::size_t long_list = 300;
/// A list is searched for runs of runs to this depth.
constexpr int max_passes = 16;
std::int64_t add(std::int64_t a, std::int64_t b) {
  return checked_offset(static_cast<Wide>(a) + b);
}

std::int64_t times(std::uint64_t n, std::int64_t stride) {
  const Wide span = static_cast<Wide>(multiply(1, n)) * stride;  // 63 + 63 bits fit
  return checked_offset(span);
}

std::uint64_t mix(std::uint64_t h, std::uint64_t value) noexcept {
  h ^= value + 0x9e3779b97f4a7c15u + (h << 6) + (h >> 2);
  return h * 0xff51afd7ed558ccdu;
}

std::uint64_t shape_hash(const Piece& p) noexcept {
  return p.term ? p.term->hash : mix(1, p.length);
}

/// The last block of a piece, at its place.
Piece last_block(const Piece& p) {
  if (p.is_block()) return p;
  Piece b = p.term->last_block;
  b.offset = add(b.offset, p.offset);
  return b;
}

std::int64_t end_of_last_block(const Piece& p) {
  const Piece b = last_block(p);
  return checked_offset(static_cast<Wide>(b.offset) + b.length);
}

/// A loop as it is, without any rule but that one round is no loop.
Piece raw_loop(const Piece& body, std::uint64_t count, std::int64_t stride) {
  if (count == 1) return body;
  auto term = std::make_shared<Term>();
  term->items = {body};
  term->items[0].offset = 0;
  term->count = count;
  term->stride = stride;
  term->blocks = multiply(body.blocks(), count);
  const std::int64_t span = times(count - 1, stride);
  const std::int64_t lower = add(body.lower(), -body.offset);
  const std::int64_t upper = add(body.upper(), -body.offset);
  term->lower = add(lower, std::min<std::int64_t>(span, 0));
  term->upper = add(upper, std::max<std::int64_t>(span, 0));
  term->last_block = last_block(term->items[0]);
  term->last_block.offset = add(term->last_block.offset, span);
  term->hash = mix(mix(mix(2, count), static_cast<std::uint64_t>(stride)), shape_hash(body));
  Piece p{body.offset, multiply(body.length, count), std::move(term)};
  add(p.offset, p.term->lower);
  add(p.offset, p.term->upper);
  return p;
}

/// A list as it is, of one or more pieces.
Piece raw_list(std::vector<Piece> items) {
  assert(!items.empty());
  if (items.size() == 1) return std::move(items[0]);
  auto term = std::make_shared<Term>();
  const std::int64_t origin = items[0].offset;
  term->lower = INT64_MAX;
  term->upper = INT64_MIN;
  term->hash = 3;
  Wide size = 0;
  Wide blocks = 0;
  for (Piece& item : items) {
    item = moved(std::move(item), -origin);
    size += item.length;
    blocks += item.blocks();
    term->lower = std::min(term->lower, item.lower());
    term->upper = std::max(term->upper, item.upper());
    term->hash = mix(mix(term->hash, static_cast<std::uint64_t>(item.offset)), shape_hash(item));
  }
  term->blocks = checked_size(blocks);
  term->last_block = last_block(items.back());
  term->items = std::move(items);
  return {origin, checked_size(size), std::move(term)};
}

/// Appends the items of a list, or the piece itself.
void append_flat(std::vector<Piece>& out, const Piece& p) {
  if (p.empty()) return;
  if (!p.is_list()) {
    out.push_back(p);
    return;
  }
  for (const Piece& item : p.term->items) out.push_back(moved(item, p.offset));
}

/// The first block of a piece and what comes after it, in order.
Piece split_first(const Piece& p, std::vector<Piece>& rest) {
  if (p.is_block()) return p;
  const Term& t = *p.term;
  Piece first = split_first(moved(t.items[0], p.offset), rest);
  if (p.is_loop()) {
    append_flat(rest, moved(raw_loop(t.items[0], t.count - 1, t.stride), add(p.offset, t.stride)));
  } else {
    for (std::size_t i = 1; i < t.items.size(); ++i) rest.push_back(moved(t.items[i], p.offset));
  }
  return first;
}

/// The last block of a piece; what comes before it is appended to `rest`, in order.
Piece split_last(const Piece& p, std::vector<Piece>& rest) {
  if (p.is_block()) return p;
  const Term& t = *p.term;
  if (p.is_loop()) {
    append_flat(rest, moved(raw_loop(t.items[0], t.count - 1, t.stride), p.offset));
    return split_last(moved(t.items[0], add(p.offset, times(t.count - 1, t.stride))), rest);
  }
  for (std::size_t i = 0; i + 1 < t.items.size(); ++i) rest.push_back(moved(t.items[i], p.offset));
  return split_last(moved(t.items.back(), p.offset), rest);
}

/// Loops around each other, up to a block or a list.
int loop_depth(const Piece& p) {
  int depth = 0;
  for (const Piece* q = &p; q->is_loop(); q = &q->term->items[0]) ++depth;
  return depth;
}

/// How many blocks a description names.
std::size_t items_in(const Piece& p) {
  if (p.is_block()) return 1;
  std::size_t sum = 0;
  for (const Piece& item : p.term->items) sum += items_in(item);
  return sum;
}

/// Whether a loop is shorter than a run, and better a list.
bool is_written_out(const Piece& body, std::uint64_t count) {
  return count < min_run && (!body.is_list() || multiply(body.blocks(), count) <= canonical_blocks);
}

/// Step 1 of list(): no empty pieces, no lists in lists, no loops shorter than a run.
void flatten(const Piece& p, std::vector<Piece>& out) {
  if (p.empty()) return;
  if (p.is_list()) {
    for (const Piece& item : p.term->items) flatten(moved(item, p.offset), out);
    return;
  }
  if (p.is_loop() && is_written_out(p.term->items[0], p.term->count)) {
    for (std::uint64_t i = 0; i < p.term->count; ++i) {
      flatten(moved(p.term->items[0], add(p.offset, times(i, p.term->stride))), out);
    }
    return;
  }
  out.push_back(p);
}

/// Step 2: a block that continues the block before it becomes part of it.
std::vector<Piece> merge_adjacent(std::vector<Piece> in) {
  std::vector<Piece> out;
  out.reserve(in.size());
  for (Piece& p : in) {
    if (out.empty() || end_of_last_block(out.back()) != p.offset) {
      out.push_back(std::move(p));
      continue;
    }
    const Piece before = std::move(out.back());
    out.pop_back();
    Piece merged = split_last(before, out);
    std::vector<Piece> rest;
    merged.length = checked_size(static_cast<Wide>(merged.length) + split_first(p, rest).length);
    out.push_back(std::move(merged));
    out.insert(out.end(), std::make_move_iterator(rest.begin()),
               std::make_move_iterator(rest.end()));
  }
  return out;
}

/// Equal pieces in a row while step 3 collects them: `count` times `body`, `step` apart.
struct Run {
  Piece body;  // at the place of the first
  std::uint64_t count;
  std::int64_t step;
};

/// A piece as a run: loops deeper than `depth` are so many of their bodies, others are one.
Run run_of(const Piece& p, int depth) {
  if (loop_depth(p) <= depth) return {p, 1, 0};
  return {moved(p.term->items[0], p.offset), p.term->count, p.term->stride};
}

/// Step 3: runs become loops. Greedy from the left and by single pieces, whatever loops the
/// description was written in, so that it comes to the same result for all of them.
std::vector<Piece> collect_runs(const std::vector<Piece>& in, int depth) {
  std::vector<Piece> out;
  out.reserve(in.size());
  Run run{};
  const auto flush = [&] {
    if (run.count == 0) return;
    if (is_written_out(run.body, run.count)) {
      for (std::uint64_t i = 0; i < run.count; ++i) {
        append_flat(out, moved(run.body, times(i, run.step)));
      }
    } else {
      out.push_back(raw_loop(run.body, run.count, run.step));
    }
    run.count = 0;
  };
  for (const Piece& p : in) {
    Run next = run_of(p, depth);
    while (next.count != 0) {
      if (run.count == 0 || !same_shape(run.body, next.body)) {
        flush();
        run = std::exchange(next, Run{});
        continue;
      }
      const std::int64_t step = run.count == 1 ? add(next.body.offset, -run.body.offset) : run.step;
      const bool continues =
          static_cast<Wide>(run.body.offset) + static_cast<Wide>(run.count) * step ==
          next.body.offset;
      if (continues && (next.count == 1 || next.step == step)) {
        run.step = step;
        run.count = checked_size(static_cast<Wide>(run.count) + next.count);
        next.count = 0;
      } else if (continues && run.count > 1) {
        // The run takes the first of the loop that follows.
        ++run.count;
        --next.count;
        next.body = moved(next.body, next.step);
      } else if (run.count == 2 && is_written_out(run.body, 2)) {
        // Too short so far; its second piece may begin a longer one.
        out.push_back(run.body);
        run = {moved(run.body, run.step), 1, 0};
      } else {
        flush();
      }
    }
  }
  flush();
  return out;
}

/// Whether the pieces at i + period and on repeat the pieces at i and on, `step` bytes further.
bool repeats(const std::vector<Piece>& in, std::size_t i, std::size_t period, std::int64_t step) {
  for (std::size_t k = 0; k < period; ++k) {
    const Piece& a = in[i + k];
    const Piece& b = in[i + period + k];
    if (static_cast<Wide>(a.offset) + step != b.offset || !same_shape(a, b)) return false;
  }
  return true;
}

/// Step 4: groups of pieces that come again and again become a loop over a list.
std::vector<Piece> collect_groups(std::vector<Piece> in) {
  std::vector<Piece> out;
  out.reserve(in.size());
  std::size_t i = 0;
  while (i < in.size()) {
    std::size_t period = 2;
    std::size_t rounds = 1;
    for (; period <= max_period && i + min_run * period <= in.size(); ++period) {
      // Nearly every candidate fails at its first two pieces.
      const Wide distance = static_cast<Wide>(in[i + period].offset) - in[i].offset;
      if (static_cast<Wide>(in[i + period + 1].offset) - in[i + 1].offset != distance) continue;
      const std::int64_t step = checked_offset(distance);
      rounds = 1;
      while (i + (rounds + 1) * period <= in.size() &&
             repeats(in, i + (rounds - 1) * period, period, step)) {
        ++rounds;
      }
      if (rounds >= min_run) {
        const auto first = in.begin() + static_cast<std::ptrdiff_t>(i);
        const Piece body = list({first, first + static_cast<std::ptrdiff_t>(period)});
        out.push_back(raw_loop(body, rounds, step));
        i += rounds * period;
        break;
      }
      rounds = 1;
    }
    if (rounds < min_run) out.push_back(std::move(in[i++]));
  }
  return out;
}

/// Steps 3 and 4 until nothing changes: the form of a list whose adjacent blocks are merged.
Piece collect(std::vector<Piece> items) {
  std::size_t before = items.size() + 1;
  for (int pass = 0; pass < max_passes && items.size() < before; ++pass) {
    before = items.size();
    // Splitting and collecting may have left loops shorter than a run.
    std::vector<Piece> flat;
    flat.reserve(items.size());
    for (const Piece& p : items) flatten(p, flat);
    items = std::move(flat);
    int deepest = 0;
    for (const Piece& p : items) deepest = std::max(deepest, loop_depth(p));
    for (int depth = 0; depth <= deepest; ++depth) items = collect_runs(items, depth);
    items = collect_groups(std::move(items));
  }
  // Two equal pieces are a loop when there is nothing else.
  if (items.size() == 2 && same_shape(items[0], items[1])) {
    return raw_loop(items[0], 2, add(items[1].offset, -items[0].offset));
  }
  return raw_list(std::move(items));
}

}  // namespace

bool Piece::is_loop() const noexcept {
  return term && term->count != 0;
}
bool Piece::is_list() const noexcept {
  return term && term->count == 0;
}
std::uint64_t Piece::blocks() const noexcept {
  if (empty()) return 0;
  return term ? term->blocks : 1;
}
std::int64_t Piece::lower() const noexcept {
  return term ? offset + term->lower : offset;
}
std::int64_t Piece::upper() const noexcept {
  return term ? offset + term->upper : offset + static_cast<std::int64_t>(length);
}

bool same_shape(const Piece& a, const Piece& b) noexcept {
  if (a.length != b.length) return false;
  if (a.term == b.term) return true;
  if (!a.term || !b.term) return false;
  const Term& x = *a.term;
  const Term& y = *b.term;
  return x.hash == y.hash && x.count == y.count && x.stride == y.stride &&
         x.items.size() == y.items.size() &&
         std::equal(x.items.begin(), x.items.end(), y.items.begin(),
                    [](const Piece& p, const Piece& q) {
                      return p.offset == q.offset && same_shape(p, q);
                    });
}

Piece block(std::uint64_t length, std::int64_t offset) {
  if (length == 0) return {};
  checked_offset(offset);
  checked_offset(static_cast<Wide>(offset) + checked_size(length));
  return {offset, length, nullptr};
}

Piece moved(Piece piece, std::int64_t by) {
  if (by == 0 || piece.empty()) return piece;
  piece.offset = add(piece.offset, by);
  add(piece.offset, piece.term ? piece.term->lower : 0);
  checked_offset(static_cast<Wide>(piece.offset) +
                 (piece.term ? piece.term->upper : static_cast<Wide>(piece.length)));
  return piece;
}

namespace {

template <class Block>
void append(const Piece& p, std::vector<Block>& out) {
  if (p.empty()) return;
  if (p.is_block()) {
    out.push_back({p.offset, p.length});
  } else if (p.is_list()) {
    for (const Piece& item : p.term->items) append(moved(item, p.offset), out);
  } else {
    for (std::uint64_t i = 0; i < p.term->count; ++i) {
      append(moved(p.term->items[0], add(p.offset, times(i, p.term->stride))), out);
    }
  }
}

}  // namespace

void append_blocks(const Piece& p, std::vector<Piece>& out) {
  append(p, out);
}
void append_blocks(const Piece& p, std::vector<hca::Block>& out) {
  append(p, out);
}

Piece loop(const Piece& body, std::uint64_t count, std::int64_t stride) {
  if (count == 0 || body.empty()) return {};
  if (count == 1) return body;
  if (body.is_block()) {
    const bool gapless = stride >= 0 && static_cast<std::uint64_t>(stride) == body.length;
    return gapless ? block(multiply(body.length, count), body.offset)
                   : raw_loop(body, count, stride);
  }
  if (multiply(body.blocks(), count) <= canonical_blocks) {
    std::vector<Piece> all;
    for (std::uint64_t i = 0; i < count; ++i) all.push_back(moved(body, times(i, stride)));
    return list(all);
  }
  // The inner loop tiles the outer one.
  if (body.is_loop() && static_cast<Wide>(body.term->count) * body.term->stride == stride) {
    const Piece inner = moved(body.term->items[0], body.offset);
    return raw_loop(inner, multiply(body.term->count, count), body.term->stride);
  }
  // Two iterations meet in one block: first block, loop over the rest with the merged block at its
  // end, rest of the last iteration.
  if (end_of_last_block(body) == add(body.offset, stride) && items_in(body) <= long_list) {
    std::vector<Piece> rest;
    const Piece first = split_first(body, rest);
    std::vector<Piece> rotated = rest;
    rotated.push_back(moved(first, stride));
    std::vector<Piece> all{first, loop(list(rotated), count - 1, stride)};
    const std::int64_t to_last = times(count - 1, stride);
    for (const Piece& p : rest) all.push_back(moved(p, to_last));
    return list(all);
  }
  return raw_loop(body, count, stride);
}

Piece list(std::vector<Piece> pieces) {
  std::vector<Piece> items;
  items.reserve(pieces.size());
  Wide blocks = 0;
  for (const Piece& p : pieces) {
    flatten(p, items);
    blocks += p.blocks();
  }
  if (items.empty()) return {};
  std::vector<Piece>().swap(pieces);  // a long description is not needed twice
  if (blocks <= canonical_blocks) {
    std::vector<Piece> written;
    written.reserve(static_cast<std::size_t>(blocks));
    for (const Piece& p : items) append_blocks(p, written);
    items = std::move(written);
  }
  return collect(merge_adjacent(std::move(items)));
}

}  // namespace weft::datatype
