#include "ucx-tl/window_layout.hpp"

#include <cstring>

#include "ucx-tl/window.hpp"
#include "ucx-tl/window_copy.hpp"

namespace weft::ucx {
namespace {

class WindowLayout final : public hca::Layout {
 public:
  WindowLayout() noexcept
      : Layout(hca::LayoutKind::nested, WindowArena::max_window, 0,
               static_cast<std::int64_t>(WindowArena::max_window), 1) {}

  void gather(const std::byte* base, std::uint64_t offset,
              std::span<std::byte> out) const override {
    if (!copy_bytes(out.data(), base + offset, out.size())) std::memset(out.data(), 0, out.size());
  }
  void scatter(std::byte* base, std::uint64_t offset,
               std::span<const std::byte> in) const override {
    copy_bytes(base + offset, in.data(), in.size());
  }
  [[nodiscard]] std::uint64_t mean_block(const std::byte* base) const noexcept override {
    const Resolved window = windows().resolve(base);
    return window ? window.layout->mean_block(window.base) : 0;
  }
  [[nodiscard]] bool equals(const Layout& other) const noexcept override { return this == &other; }
  [[nodiscard]] std::string describe() const override { return "window"; }
  [[nodiscard]] std::size_t footprint() const noexcept override { return sizeof *this; }
};

}  // namespace

const hca::Layout& window_layout() noexcept {
  // Regions may outlive static destructors. Without these few bytes nothing goes on.
  static const auto* layout = new WindowLayout;  // NOLINT(bugprone-unhandled-exception-at-new)
  return *layout;
}

}  // namespace weft::ucx
