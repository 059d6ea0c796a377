#include "datatype/type_map.hpp"

#include <algorithm>

namespace weft::datatype {

namespace {

void append(TypeMap& to, const TypeMap& from, std::int64_t at) {
  for (const TypeMap::Entry& e : from.entries) {
    to.entries.push_back({e.displacement + at, e.size, e.alignment});
  }
  for (const std::int64_t lb : from.lb_markers) to.lb_markers.push_back(lb + at);
  for (const std::int64_t ub : from.ub_markers) to.ub_markers.push_back(ub + at);
}

/// `count` copies one extent apart.
void append_copies(TypeMap& to, const TypeMap& from, std::int64_t count, std::int64_t at) {
  for (std::int64_t i = 0; i < count; ++i) append(to, from, at + i * from.extent());
}

/// The entries of `from` for each element of an array that `selected` picks; markers at the array's
/// bounds. The array is walked in memory order.
template <typename Selected>
TypeMap array(const std::vector<std::int64_t>& sizes, Order order, const TypeMap& from,
              Selected selected) {
  TypeMap map;
  const std::size_t dims = sizes.size();
  std::int64_t elements = 1;
  for (const std::int64_t size : sizes) elements *= size;
  for (std::int64_t element = 0; element < elements; ++element) {
    std::vector<std::int64_t> index(dims);
    std::int64_t left = element;
    for (std::size_t i = 0; i < dims; ++i) {
      const std::size_t d = order == Order::c ? dims - 1 - i : i;
      index[d] = left % sizes[d];
      left /= sizes[d];
    }
    if (selected(index)) append(map, from, element * from.extent());
  }
  map.lb_markers = {0};
  map.ub_markers = {elements * from.extent()};
  return map;
}

TypeMap subarray(const Spec& s, const TypeMap& from) {
  return array(s.sizes, s.order, from, [&](const std::vector<std::int64_t>& index) {
    for (std::size_t d = 0; d < index.size(); ++d) {
      if (index[d] < s.displacements[d] || index[d] >= s.displacements[d] + s.blocklengths[d]) {
        return false;
      }
    }
    return true;
  });
}

TypeMap darray(const Spec& s, const TypeMap& from) {
  std::vector<std::int64_t> sizes;
  for (const GridDimension& d : s.grid) sizes.push_back(d.size);
  return array(sizes, s.order, from, [&](const std::vector<std::int64_t>& index) {
    // The rank that owns the element, from its coordinates in the row-major process grid.
    std::int64_t owner = 0;
    for (std::size_t d = 0; d < index.size(); ++d) {
      const GridDimension& g = s.grid[d];
      std::int64_t width = g.argument;
      if (g.distribution == Distribution::none) width = g.size;
      if (g.argument == default_distribution_argument) {
        if (g.distribution == Distribution::block) width = (g.size + g.processes - 1) / g.processes;
        if (g.distribution == Distribution::cyclic) width = 1;
      }
      owner = owner * g.processes + index[d] / width % g.processes;
    }
    return owner == s.count;
  });
}

}  // namespace

std::uint64_t TypeMap::size() const {
  std::uint64_t sum = 0;
  for (const Entry& e : entries) sum += e.size;
  return sum;
}

std::int64_t TypeMap::lb() const {
  if (!lb_markers.empty()) return *std::min_element(lb_markers.begin(), lb_markers.end());
  return true_lb();
}

std::int64_t TypeMap::ub() const {
  if (!ub_markers.empty()) return *std::max_element(ub_markers.begin(), ub_markers.end());
  std::int64_t extent = true_ub() - lb();
  std::int64_t strictest = 1;
  for (const Entry& e : entries) {
    strictest = std::max(strictest, static_cast<std::int64_t>(e.alignment));
  }
  while (extent % strictest != 0) ++extent;
  return lb() + extent;
}

std::int64_t TypeMap::true_lb() const {
  if (entries.empty()) return 0;
  std::int64_t low = INT64_MAX;
  for (const Entry& e : entries) low = std::min(low, e.displacement);
  return low;
}

std::int64_t TypeMap::true_ub() const {
  if (entries.empty()) return 0;
  std::int64_t high = INT64_MIN;
  for (const Entry& e : entries) {
    high = std::max(high, e.displacement + static_cast<std::int64_t>(e.size));
  }
  return high;
}

TypeMap TypeMap::repeated(std::int64_t count) const {
  TypeMap map;
  append_copies(map, *this, count, 0);
  return map;
}

std::vector<std::int64_t> TypeMap::bytes() const {
  std::vector<std::int64_t> all;
  for (const Entry& e : entries) {
    for (std::uint64_t i = 0; i < e.size; ++i) {
      all.push_back(e.displacement + static_cast<std::int64_t>(i));
    }
  }
  return all;
}

TypeMap expand(const Spec& s) {
  std::vector<TypeMap> types;
  for (const Spec& type : s.types) types.push_back(expand(type));
  TypeMap map;
  switch (s.kind) {
    case Spec::Kind::primitive:
      if (s.primitive.size != 0) map.entries = {{0, s.primitive.size, s.primitive.alignment}};
      break;
    case Spec::Kind::contiguous:
      append_copies(map, types[0], s.count, 0);
      break;
    case Spec::Kind::vector:
      for (std::int64_t i = 0; i < s.count; ++i) {
        append_copies(map, types[0], s.blocklength, i * s.stride * types[0].extent());
      }
      break;
    case Spec::Kind::hvector:
      for (std::int64_t i = 0; i < s.count; ++i) {
        append_copies(map, types[0], s.blocklength, i * s.stride);
      }
      break;
    case Spec::Kind::indexed:
    case Spec::Kind::hindexed:
      for (std::size_t i = 0; i < s.displacements.size(); ++i) {
        const std::int64_t unit = s.kind == Spec::Kind::indexed ? types[0].extent() : 1;
        append_copies(map, types[0], s.blocklengths[i], s.displacements[i] * unit);
      }
      break;
    case Spec::Kind::indexed_block:
    case Spec::Kind::hindexed_block:
      for (const std::int64_t at : s.displacements) {
        const std::int64_t unit = s.kind == Spec::Kind::indexed_block ? types[0].extent() : 1;
        append_copies(map, types[0], s.blocklength, at * unit);
      }
      break;
    case Spec::Kind::structure:
      for (std::size_t i = 0; i < types.size(); ++i) {
        append_copies(map, types[i], s.blocklengths[i], s.displacements[i]);
      }
      break;
    case Spec::Kind::subarray:
      map = subarray(s, types[0]);
      break;
    case Spec::Kind::darray:
      map = darray(s, types[0]);
      break;
    case Spec::Kind::resized:
      map.entries = types[0].entries;
      map.lb_markers = {s.blocklength};
      map.ub_markers = {s.blocklength + s.stride};
      break;
    case Spec::Kind::dup:
      map = types[0];
      break;
  }
  return map;
}

}  // namespace weft::datatype
