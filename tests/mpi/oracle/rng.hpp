// The random numbers of the tests: the same on every machine and in every rank.
#pragma once

#include <cstdint>
#include <vector>

namespace weft::oracle {

/// splitmix64. Not std::mt19937 with the standard's distributions, because those may differ between
/// libraries and a printed seed must mean the same run everywhere.
class Rng {
 public:
  explicit Rng(std::uint64_t seed) : state_(seed) {}

  /// A generator of its own for part `index` of what this one's seed stands for.
  static Rng child(std::uint64_t seed, std::uint64_t index) {
    return Rng(Rng(seed ^ (index * 0xd1342543de82ef95ull)).next());
  }

  std::uint64_t next() {
    std::uint64_t z = (state_ += 0x9e3779b97f4a7c15ull);
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ull;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebull;
    return z ^ (z >> 31);
  }
  /// Uniform in [low, high].
  std::int64_t between(std::int64_t low, std::int64_t high) {
    return low + static_cast<std::int64_t>(next() % static_cast<std::uint64_t>(high - low + 1));
  }
  /// True once in `n` calls on average.
  bool one_in(int n) { return next() % static_cast<std::uint64_t>(n) == 0; }
  /// In [1, high], every order of magnitude equally likely.
  std::int64_t log_scaled(std::int64_t high);
  /// A divisor of `n`, all equally likely.
  std::int64_t divisor(std::int64_t n);
  /// `n` as a sum of `parts` positive numbers; n >= parts.
  std::vector<std::int64_t> partition(std::int64_t n, int parts);
  /// 0 .. n-1 in random order.
  std::vector<int> permutation(int n);

 private:
  std::uint64_t state_;
};

}  // namespace weft::oracle
