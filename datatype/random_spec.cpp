#include <algorithm>

#include "datatype/type_map.hpp"

namespace weft::datatype {

namespace {

class Generator {
 public:
  Generator(std::mt19937_64& random, const RandomSpecLimits& limits)
      : random_(random), limits_(limits) {}

  /// A type of at most `bytes` packed bytes, except that one primitive is always allowed.
  Spec make(int depth, std::uint64_t bytes) {
    Spec s;
    if (depth == 0 || bytes <= 1 || chance(0.1)) {
      const auto all = primitives();
      s.primitive = all[static_cast<std::size_t>(in(0, static_cast<std::int64_t>(all.size()) - 1))];
      return s;
    }
    s.kind = static_cast<Spec::Kind>(in(1, static_cast<std::int64_t>(Spec::Kind::dup)));
    // How many copies the constructor makes of what is below it.
    const std::int64_t copies =
        in(1, std::min<std::int64_t>(static_cast<std::int64_t>(bytes), chance(0.2) ? 60 : 6));
    if (s.kind == Spec::Kind::structure) {
      for (std::int64_t i = in(0, 4); i > 0; --i) {
        s.types.push_back(make(depth - 1, bytes / 4));
        s.blocklengths.push_back(in(0, 2));
      }
      displacements(s, s.types.size(), [&](std::size_t i) {
        return s.blocklengths[i] * std::max<std::int64_t>(expand(s.types[i]).extent(), 1);
      });
      return s;
    }
    s.types.push_back(make(depth - 1, bytes / static_cast<std::uint64_t>(copies)));
    const std::int64_t extent = expand(s.types[0]).extent();
    fill(s, copies, extent);
    return s;
  }

 private:
  std::int64_t in(std::int64_t low, std::int64_t high) {
    return std::uniform_int_distribution<std::int64_t>(low, high)(random_);
  }
  bool chance(double p) { return std::bernoulli_distribution(p)(random_); }
  /// Mostly one and more, sometimes none.
  std::int64_t some(std::int64_t most) {
    return chance(0.05) ? 0 : in(1, std::max<std::int64_t>(most, 1));
  }

  /// Places `n` parts: mostly one after another with gaps, sometimes shuffled, sometimes anywhere.
  template <typename Width>
  void displacements(Spec& s, std::size_t n, Width width) {
    std::int64_t at = in(-3, 3);
    const bool regular = chance(0.2);
    const std::int64_t gap = in(0, 4);
    for (std::size_t i = 0; i < n; ++i) {
      s.displacements.push_back(chance(0.03) ? in(-20, 20) : at);
      at += width(i) + (regular ? gap : in(0, 4));
    }
    if (chance(0.3)) std::shuffle(s.displacements.begin(), s.displacements.end(), random_);
  }

  void fill(Spec& s, std::int64_t copies, std::int64_t extent) {
    const std::int64_t block = some(copies);
    const std::int64_t count = std::max<std::int64_t>(block == 0 ? 2 : copies / block, 0);
    const bool in_bytes = s.kind == Spec::Kind::hvector || s.kind == Spec::Kind::hindexed ||
                          s.kind == Spec::Kind::hindexed_block;
    const std::int64_t unit = in_bytes ? std::max<std::int64_t>(extent, 1) : 1;
    switch (s.kind) {
      case Spec::Kind::contiguous:
        s.count = some(copies);
        break;
      case Spec::Kind::vector:
      case Spec::Kind::hvector:
        s.count = count;
        s.blocklength = block;
        s.stride = block * unit + in(chance(0.1) ? -9 : 0, 5);
        if (chance(0.15)) s.stride = -s.stride;
        break;
      case Spec::Kind::indexed:
      case Spec::Kind::hindexed:
        for (std::int64_t left = copies; left > 0;
             left -= std::max<std::int64_t>(s.blocklengths.back(), 1)) {
          s.blocklengths.push_back(chance(0.5) ? 1 : some(std::min<std::int64_t>(left, 3)));
        }
        displacements(s, s.blocklengths.size(),
                      [&](std::size_t i) { return s.blocklengths[i] * unit; });
        break;
      case Spec::Kind::indexed_block:
      case Spec::Kind::hindexed_block:
        s.blocklength = block;
        displacements(s, static_cast<std::size_t>(count),
                      [&](std::size_t) { return block * unit; });
        break;
      case Spec::Kind::subarray:
        s.order = chance(0.5) ? Order::c : Order::fortran;
        for (std::int64_t d = in(1, 3), left = copies; d > 0; --d) {
          s.blocklengths.push_back(in(1, std::max<std::int64_t>(left, 1)));
          left /= s.blocklengths.back();
          s.displacements.push_back(in(0, 2));
          s.sizes.push_back(s.displacements.back() + s.blocklengths.back() + in(0, 2));
        }
        break;
      case Spec::Kind::darray:
        darray(s, copies);
        break;
      case Spec::Kind::resized:
        s.blocklength = chance(0.5) ? 0 : in(-10, 10);
        s.stride = chance(0.8) ? extent + in(0, 9) : in(-20, 20);
        break;
      default:
        break;
    }
  }

  void darray(Spec& s, std::int64_t copies) {
    s.order = chance(0.5) ? Order::c : Order::fortran;
    std::int64_t processes = 1;
    for (std::int64_t d = in(1, 3), left = copies; d > 0; --d) {
      GridDimension g{};
      g.size = in(1, std::max<std::int64_t>(left, 1) * 2);
      left /= g.size;
      g.distribution = static_cast<Distribution>(in(0, 2));
      g.processes = g.distribution == Distribution::none ? 1 : in(1, 3);
      g.argument = default_distribution_argument;
      if (g.distribution == Distribution::cyclic && chance(0.6)) g.argument = in(1, 4);
      if (g.distribution == Distribution::block && chance(0.3)) {
        g.argument = (g.size + g.processes - 1) / g.processes + in(0, 1);
      }
      processes *= g.processes;
      s.grid.push_back(g);
    }
    s.count = in(0, processes - 1);
  }

  std::mt19937_64& random_;
  const RandomSpecLimits& limits_;
};

}  // namespace

Spec random_spec(std::mt19937_64& random, const RandomSpecLimits& limits) {
  for (;;) {
    Generator generator(random, limits);
    Spec s = generator.make(std::uniform_int_distribution<int>(0, limits.max_depth)(random),
                            limits.max_bytes);
    const TypeMap map = expand(s);
    if (map.true_ub() - map.true_lb() <= limits.max_span) return s;
  }
}

}  // namespace weft::datatype
