// Memory of exactly the bytes that a layout touches, for checks byte by byte.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <random>
#include <vector>

#include "hca/layout.hpp"

namespace weft::test {

class Memory {
 public:
  /// For offsets from `lower` up to `upper`.
  Memory(std::int64_t lower, std::int64_t upper)
      : lower_(lower),
        size_(static_cast<std::size_t>(upper - lower)),
        bytes_(std::make_unique<std::byte[]>(size_)) {}
  explicit Memory(const hca::Layout& layout) : Memory(layout.lower(), layout.upper()) {}

  /// What offsets count from; it may point outside.
  [[nodiscard]] std::byte* base() const {
    return reinterpret_cast<std::byte*>(reinterpret_cast<std::uintptr_t>(bytes_.get()) -
                                        static_cast<std::uintptr_t>(lower_));
  }
  std::byte& operator[](std::int64_t offset) {
    return bytes_[static_cast<std::size_t>(offset - lower_)];
  }
  void fill(std::mt19937_64& random) {
    for (std::size_t i = 0; i < size_; ++i) bytes_[i] = static_cast<std::byte>(random());
  }
  [[nodiscard]] std::vector<std::byte> image() const {
    std::vector<std::byte> copy(size_);
    std::copy_n(bytes_.get(), size_, copy.begin());
    return copy;
  }
  [[nodiscard]] std::int64_t lower() const { return lower_; }

 private:
  std::int64_t lower_;
  std::size_t size_;
  std::unique_ptr<std::byte[]> bytes_;
};

}  // namespace weft::test
