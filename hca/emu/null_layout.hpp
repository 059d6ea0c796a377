// The null MR's memory: reads as zeros, forgets what is written.
#pragma once

#include <algorithm>
#include <limits>

#include "hca/layout.hpp"

namespace weft::hca::emu {

class NullLayout final : public Layout {
 public:
  NullLayout() : Layout(LayoutKind::nested, std::numeric_limits<std::uint64_t>::max(), 0, 0, 1) {}
  void gather(const std::byte*, std::uint64_t, std::span<std::byte> out) const override {
    std::fill(out.begin(), out.end(), std::byte{0});
  }
  void scatter(std::byte*, std::uint64_t, std::span<const std::byte>) const override {}
  [[nodiscard]] bool equals(const Layout& other) const noexcept override { return this == &other; }
  [[nodiscard]] std::string describe() const override { return "null"; }
  [[nodiscard]] std::size_t footprint() const noexcept override { return sizeof(*this); }
};

}  // namespace weft::hca::emu
