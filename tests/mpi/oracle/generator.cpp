#include "tests/mpi/oracle/generator.hpp"

#include <algorithm>
#include <cstdlib>

namespace weft::oracle {
namespace {

/// First and last byte that `length` copies of `type` in a row reach, seen from the first copy.
std::ptrdiff_t lowest(const BuiltType& type, std::int64_t length) {
  std::ptrdiff_t last = length > 0 ? (length - 1) * type.extent() : 0;
  return type.map().true_lb() + std::min<std::ptrdiff_t>(0, last);
}
std::int64_t reach(const BuiltType& type, std::int64_t length) {
  if (length == 0) return 0;
  return type.map().true_extent() + std::abs((length - 1) * type.extent());
}

/// A stride or extent of exactly -1 byte is left out: Open MPI's constructors take this number to
/// mean "the natural extent" (opal_datatype_add), so that even its description of the type is
/// wrong.
std::int64_t expressible(std::int64_t bytes) {
  return bytes == -1 ? -2 : bytes;
}

std::vector<int> to_int(std::span<const std::int64_t> numbers) {
  return {numbers.begin(), numbers.end()};
}

}  // namespace

Message Generator::message(const Signature& signature) {
  constexpr int tries = 6;
  for (int attempt = 0;; ++attempt) {
    tight_ = attempt >= tries;
    gap_style_ = rng_.between(0, 3);
    Message message;
    const int depth = static_cast<int>(rng_.between(0, 4));
    if (signature.units == 0 && rng_.one_in(2)) {
      message.type = units(signature.unit, rng_.between(1, 20), depth);
      message.count = 0;
    } else {
      std::int64_t count = rng_.one_in(2) || signature.units == 0
                               ? 1
                               : signature.units / rng_.divisor(signature.units);
      message.type = units(signature.unit, signature.units / count, depth);
      if (count > 1) message.type = steppable(std::move(message.type));
      message.count = static_cast<int>(count);
    }
    message.map.repeat(message.type.map(), 0, message.count, message.type.extent());

    const std::int64_t size = signature.size();
    constexpr std::int64_t mib = 1 << 20;
    const bool wide = message.map.true_extent() > std::min(24 * size + 65536, 4 * size + 24 * mib);
    const bool wrong = !may_overlap_ && message.map.overlaps();
    if (!wrong && (tight_ || !wide)) return message;
  }
}

BuiltType Generator::units(const Unit& unit, std::int64_t n, int depth) {
  if (n == 0) return nothing();
  if (n > 1 && depth > 0 && rng_.one_in(5)) return parts(unit, n, depth - 1);
  if (depth > 0 && rng_.one_in(12)) return dup(units(unit, n, depth - 1));
  if (depth > 0 && rng_.one_in(8)) return any_extent(units(unit, n, depth - 1));
  if (n == 1) return single(unit, depth);
  std::int64_t inner = depth > 0 ? rng_.divisor(n) : 1;
  if (inner == n) inner = 1;
  return copies(units(unit, inner, depth - 1), n / inner);
}

BuiltType Generator::nothing() {
  BuiltType old = basic_type(static_cast<int>(rng_.between(0, basic_types() - 1)));
  const std::vector<int> zeros(3, 0), at{4, -2, 9};
  const std::vector<MPI_Aint> places{-12, 40, 7};
  switch (rng_.between(0, 7)) {
    case 0:
      return contiguous(0, old);
    case 1:
      return vector(0, 3, 7, old);
    case 2:
      return vector(5, 0, -2, old);
    case 3:
      return indexed({}, {}, old);
    case 4:
      return indexed(zeros, at, old);
    case 5:
      return hindexed(zeros, places, old);
    case 6:
      return hindexed_block(4, {}, old);
    default:
      return structure({}, {}, {});
  }
}

BuiltType Generator::single(const Unit& unit, int depth) {
  if (is_pair(unit) && rng_.one_in(2)) return pair_type(unit);
  if (unit.size() == 1) {
    if (unit[0].count == 1) return basic_type(unit[0].basic);
    return units({{unit[0].basic, 1}}, unit[0].count, std::max(0, depth - 1));
  }
  std::vector<BuiltType> members;
  std::vector<int> lengths;
  for (const Item& item : unit) {
    bool plain = rng_.one_in(2);
    members.push_back(plain ? basic_type(item.basic)
                            : units({{item.basic, 1}}, item.count, std::max(0, depth - 1)));
    lengths.push_back(plain ? item.count : 1);
  }
  std::vector<const BuiltType*> pointers;
  std::vector<std::int64_t> sizes;
  for (std::size_t i = 0; i < members.size(); ++i) {
    pointers.push_back(&members[i]);
    sizes.push_back(reach(members[i], lengths[i]));
  }
  std::vector<std::int64_t> at = places(sizes);
  std::vector<MPI_Aint> displacements;
  for (std::size_t i = 0; i < members.size(); ++i) {
    displacements.push_back(at[i] - lowest(members[i], lengths[i]));
  }
  return structure(lengths, displacements, pointers);
}

BuiltType Generator::parts(const Unit& unit, std::int64_t n, int depth) {
  int count = static_cast<int>(rng_.between(2, std::min<std::int64_t>(n, 5)));
  std::vector<BuiltType> members;
  for (std::int64_t part : rng_.partition(n, count)) members.push_back(units(unit, part, depth));
  if (rng_.one_in(4)) members.insert(members.begin() + rng_.between(0, count), nothing());
  std::vector<int> lengths(members.size(), 1);
  std::vector<const BuiltType*> pointers;
  std::vector<std::int64_t> sizes;
  for (const BuiltType& member : members) {
    pointers.push_back(&member);
    sizes.push_back(reach(member, 1));
  }
  std::vector<std::int64_t> at = places(sizes);
  std::vector<MPI_Aint> displacements;
  for (std::size_t i = 0; i < members.size(); ++i) {
    displacements.push_back(at[i] - lowest(members[i], 1));
  }
  return structure(lengths, displacements, pointers);
}

BuiltType Generator::copies(BuiltType old, std::int64_t n) {
  const std::int64_t kind = rng_.between(0, 10);
  const bool bytewise = kind == 2 || kind == 4 || kind == 6;
  // Single elements placed by the byte are right with any extent.
  const bool one_by_one = bytewise && rng_.one_in(3);
  BuiltType inner = one_by_one ? any_extent(std::move(old)) : steppable(std::move(old));
  switch (kind) {
    case 1: {
      std::int64_t length = rng_.divisor(n), stride = length + gap(length);
      if (may_overlap_ && rng_.one_in(6)) stride = rng_.between(0, length);
      if (rng_.one_in(3) && stride * inner.extent() != 1) stride = -stride;
      return vector(n / length, length, stride, inner);
    }
    case 2: {
      std::int64_t length = one_by_one ? 1 : rng_.divisor(n), bytes = reach(inner, length);
      std::int64_t stride = bytes + gap(bytes);
      if (may_overlap_ && rng_.one_in(6)) stride = rng_.between(0, bytes);
      if (rng_.one_in(3)) stride = expressible(-stride);
      return hvector(n / length, length, stride, inner);
    }
    case 3: {
      std::vector<int> lengths = block_lengths(n);
      std::vector<std::int64_t> sizes(lengths.begin(), lengths.end());
      return indexed(lengths, to_int(places(sizes)), inner);
    }
    case 5: {
      std::int64_t length = rng_.divisor(n);
      std::vector<std::int64_t> sizes(n / length, length);
      return indexed_block(static_cast<int>(length), to_int(places(sizes)), inner);
    }
    case 4:
    case 6: {
      std::int64_t length = one_by_one ? 1 : rng_.divisor(n);
      std::vector<int> lengths(n / length, static_cast<int>(length));
      if (kind == 4 && !one_by_one) lengths = block_lengths(n);
      std::vector<std::int64_t> sizes;
      for (int one : lengths) sizes.push_back(reach(inner, one));
      std::vector<std::int64_t> at = places(sizes);
      std::vector<MPI_Aint> displacements;
      for (std::size_t i = 0; i < at.size(); ++i) {
        displacements.push_back(at[i] - lowest(inner, lengths[i]));
      }
      if (kind == 4) return hindexed(lengths, displacements, inner);
      return hindexed_block(static_cast<int>(length), displacements, inner);
    }
    case 7:
      return copies_in_subarray(inner, n);
    case 8:
      return copies_in_darray(inner, n);
    case 9:
      return copies_interleaved(inner, n);
    default:
      return contiguous(static_cast<int>(n), inner);
  }
}

BuiltType Generator::copies_in_subarray(const BuiltType& inner, std::int64_t n) {
  const int dimensions = static_cast<int>(rng_.between(1, 4));
  std::vector<int> subsizes = factorise(n, dimensions), sizes(dimensions), starts(dimensions);
  std::int64_t all = 1;
  for (int d = 0; d < dimensions; ++d) {
    int before = 0, after = 0;
    // The array may be at most four times its part: four dimensions with gaps grow fast.
    if (rng_.one_in(2) && all < 2) {
      before = static_cast<int>(rng_.between(0, std::max(1, subsizes[d] / 2)));
      after = static_cast<int>(rng_.between(0, std::max(1, subsizes[d] / 2)));
      all *= 2;
    }
    starts[d] = before;
    sizes[d] = before + subsizes[d] + after;
  }
  return subarray(sizes, subsizes, starts, rng_.one_in(2) ? MPI_ORDER_C : MPI_ORDER_FORTRAN, inner);
}

Distribution Generator::random_distribution(int mine) {
  const int processes = static_cast<int>(rng_.between(1, 4));
  const int coordinate = static_cast<int>(rng_.between(0, processes - 1));
  Distribution d{mine, MPI_DISTRIBUTE_NONE, MPI_DISTRIBUTE_DFLT_DARG, 1, 0};
  switch (rng_.between(0, 3)) {
    case 0:
      return d;
    case 1:  // Every process holds as much.
      d.kind = MPI_DISTRIBUTE_BLOCK;
      d.global = mine * processes;
      if (rng_.one_in(2)) d.argument = mine;
      break;
    default: {
      d.kind = MPI_DISTRIBUTE_CYCLIC;
      const int block = static_cast<int>(rng_.log_scaled(mine));
      if (block > 1 || rng_.one_in(2)) d.argument = block;
      const int full = (mine - 1) / block, rest = mine - full * block;
      // The array ends with this process's last block, or somewhere in the others' after it when
      // that block is whole.
      d.global = (full * processes + coordinate) * block + rest;
      if (rest == block) d.global += static_cast<int>(rng_.between(0, (processes - 1) * block));
    }
  }
  d.processes = processes;
  d.coordinate = coordinate;
  return d;
}

BuiltType Generator::copies_in_darray(const BuiltType& inner, std::int64_t n) {
  const int dimensions = static_cast<int>(rng_.between(1, 3));
  std::vector<Distribution> distributions;
  std::int64_t widening = 1;
  for (int mine : factorise(n, dimensions)) {
    Distribution d = random_distribution(mine);
    if (widening * d.processes > 4) {
      d = {mine, MPI_DISTRIBUTE_NONE, MPI_DISTRIBUTE_DFLT_DARG, 1, 0};
    }
    widening *= d.processes;
    distributions.push_back(d);
  }
  return darray(distributions, rng_.one_in(2) ? MPI_ORDER_C : MPI_ORDER_FORTRAN, inner);
}

BuiltType Generator::copies_interleaved(const BuiltType& inner, std::int64_t n) {
  const std::int64_t rows = rng_.divisor(n), columns = n / rows;
  const std::int64_t stride = columns + gap(columns);
  BuiltType column = vector(static_cast<int>(rows), 1, static_cast<int>(stride), inner);
  return contiguous(static_cast<int>(columns), resized(column, inner.lb(), inner.extent()));
}

BuiltType Generator::steppable(BuiltType type) {
  const std::int64_t needed = type.map().true_extent();
  if (std::abs(type.extent()) >= needed && !rng_.one_in(6)) return type;
  std::int64_t extent = needed + gap(needed);
  if (rng_.one_in(4)) extent = expressible(-extent);
  return resized(type, rng_.one_in(2) ? type.lb() : rng_.between(-30, 30), extent);
}

BuiltType Generator::any_extent(BuiltType type) {
  const std::int64_t needed = type.map().true_extent();
  std::int64_t extent = 0;
  switch (rng_.between(0, 3)) {
    case 0:
      break;
    case 1:
      extent = rng_.between(0, needed);
      break;
    case 2:
      extent = expressible(-rng_.between(0, 2 * needed));
      break;
    default:
      extent = needed + rng_.between(0, 40);
      break;
  }
  return resized(type, rng_.between(-50, 50), extent);
}

std::vector<int> Generator::factorise(std::int64_t n, int factors) {
  std::vector<int> result(factors, 1);
  for (int i = 0; i + 1 < factors; ++i) {
    std::int64_t factor = rng_.divisor(n);
    result[i] = static_cast<int>(factor);
    n /= factor;
  }
  result[factors - 1] = static_cast<int>(n);
  return result;
}

std::vector<int> Generator::block_lengths(std::int64_t n) {
  std::vector<int> lengths;
  const std::int64_t longest = rng_.log_scaled(n);
  while (n > 0) {
    std::int64_t length = std::min(n, rng_.between(rng_.one_in(8) ? 0 : 1, longest));
    lengths.push_back(static_cast<int>(length));
    n -= length;
  }
  return lengths;
}

std::vector<std::int64_t> Generator::places(std::span<const std::int64_t> sizes) {
  const int n = static_cast<int>(sizes.size());
  std::vector<int> order(n);
  switch (rng_.between(0, 2)) {
    case 0:
      order = rng_.permutation(n);
      break;
    case 1:
      for (int i = 0; i < n; ++i) order[i] = n - 1 - i;
      break;
    default:
      for (int i = 0; i < n; ++i) order[i] = i;
  }
  std::vector<std::int64_t> at(n);
  const bool overlapping = may_overlap_ && rng_.one_in(6);
  const bool regular = rng_.one_in(3);
  std::int64_t next = rng_.one_in(2) ? 0 : rng_.between(-40, 40);
  for (int i : order) {
    at[i] = next;
    next += overlapping ? rng_.between(0, sizes[i]) : sizes[i];
    if (!regular) next += gap(sizes[i]);
    if (regular) next += gap_style_;
  }
  return at;
}

std::int64_t Generator::gap(std::int64_t size) {
  if (tight_) return 0;
  switch (gap_style_) {
    case 0:
      return 0;
    case 1:
      return 1;
    case 2:
      return rng_.between(0, 5);
    default:
      return rng_.between(0, size + 3);
  }
}

}  // namespace weft::oracle
