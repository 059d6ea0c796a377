#include "tests/mpi/oracle/rng.hpp"

#include <algorithm>
#include <bit>
#include <numeric>

namespace weft::oracle {

std::int64_t Rng::log_scaled(std::int64_t high) {
  int bits = std::bit_width(static_cast<std::uint64_t>(high));
  std::int64_t limit = std::int64_t{1} << between(1, bits);
  return between(std::max<std::int64_t>(1, limit / 2), std::min(limit, high));
}

std::int64_t Rng::divisor(std::int64_t n) {
  std::vector<std::int64_t> all;
  for (std::int64_t d = 1; d * d <= n; ++d) {
    if (n % d != 0) continue;
    all.push_back(d);
    if (d != n / d) all.push_back(n / d);
  }
  return all[next() % all.size()];
}

std::vector<std::int64_t> Rng::partition(std::int64_t n, int parts) {
  std::vector<std::int64_t> cuts{0, n - parts};
  for (int i = 1; i < parts; ++i) cuts.push_back(between(0, n - parts));
  std::sort(cuts.begin(), cuts.end());
  std::vector<std::int64_t> sizes;
  for (std::size_t i = 1; i < cuts.size(); ++i) sizes.push_back(cuts[i] - cuts[i - 1] + 1);
  return sizes;
}

std::vector<int> Rng::permutation(int n) {
  std::vector<int> order(n);
  std::iota(order.begin(), order.end(), 0);
  for (int i = n - 1; i > 0; --i) std::swap(order[i], order[between(0, i)]);
  return order;
}

}  // namespace weft::oracle
