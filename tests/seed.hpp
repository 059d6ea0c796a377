// The seed of randomized tests: new with every run, printed when a test fails, and taken from
// WEFT_TEST_SEED to repeat one.
#pragma once

#include <gtest/gtest.h>

#include <cstdint>
#include <cstdlib>
#include <random>
#include <string>

namespace weft::test {

inline std::uint64_t seed() {
  static const std::uint64_t value = [] {
    const char* text = std::getenv("WEFT_TEST_SEED");
    return text != nullptr ? std::strtoull(text, nullptr, 0)
                           : std::uint64_t{std::random_device{}()};
  }();
  return value;
}

/// For SCOPED_TRACE.
inline std::string seed_note(std::uint64_t round) {
  return "WEFT_TEST_SEED=" + std::to_string(seed()) + ", round " + std::to_string(round);
}

/// A generator of its own for each round of each test.
class Random {
 public:
  explicit Random(std::uint64_t round) : engine_(seed() * 1000003 + round) {}
  /// Uniform in [low, high].
  std::int64_t in(std::int64_t low, std::int64_t high) {
    return std::uniform_int_distribution<std::int64_t>(low, high)(engine_);
  }
  bool chance(double p) { return std::bernoulli_distribution(p)(engine_); }
  std::mt19937_64& engine() { return engine_; }

 private:
  std::mt19937_64 engine_;
};

}  // namespace weft::test
