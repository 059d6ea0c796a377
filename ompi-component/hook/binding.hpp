// Binding: a message buffer of a non-contiguous datatype as one address and a number of bytes.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <utility>

#include "hca/layout.hpp"
#include "ompi-component/hook/counters.hpp"
#include "ompi-component/ompi.hpp"

namespace weft::ompi {

/// True if the elements of the datatype are plain bytes, one behind the other from the buffer's
/// address on. The common case: a few loads from a cache line that the pml reads next anyway.
///
/// The flags and a lower bound of 0 are what pml/ucx goes by, but they are not enough: they stay on
/// a dense block that was resized to other bounds than its own, which pml/ucx then takes from the
/// wrong place (pml/ob1 does not), and on a struct whose bounds were moved by a member without
/// bytes.
inline bool is_plain(const ompi_datatype_t* type) noexcept {
  constexpr unsigned dense = OPAL_DATATYPE_FLAG_CONTIGUOUS | OPAL_DATATYPE_FLAG_NO_GAPS;
  const opal_datatype_t& t = type->super;
  return (t.flags & dense) == dense && t.lb == 0 && t.true_lb == 0 &&
         t.ub == static_cast<std::ptrdiff_t>(t.size);
}

class Binding {
 public:
  Binding() = default;
  /// Binds the buffer to a window. A result that is false means: take Open MPI's own path (the
  /// reason has been counted). A message that fits into `room`, which must outlive the call of the
  /// pml, needs no window: it is gathered into it now, or is received there (see deliver()).
  static Binding make(Direction direction, const void* buffer, std::size_t count,
                      ompi_datatype_t* type, std::span<std::byte> room = {}) noexcept;

  Binding(Binding&& other) noexcept
      : layout_(std::move(other.layout_)),
        address_(std::exchange(other.address_, nullptr)),
        window_(std::exchange(other.window_, nullptr)),
        scatter_to_(std::exchange(other.scatter_to_, std::nullopt)) {}
  Binding& operator=(Binding&& other) noexcept {
    Binding old(std::move(*this));
    layout_ = std::move(other.layout_);
    address_ = std::exchange(other.address_, nullptr);
    window_ = std::exchange(other.window_, nullptr);
    scatter_to_ = std::exchange(other.scatter_to_, std::nullopt);
    return *this;
  }
  ~Binding() { release(); }

  explicit operator bool() const noexcept { return layout_ != nullptr; }

  /// What to hand to the pml as (address, bytes, MPI_BYTE).
  [[nodiscard]] void* address() const noexcept { return address_; }
  [[nodiscard]] std::uint64_t bytes() const noexcept { return layout_->size(); }
  [[nodiscard]] hca::LayoutKind kind() const noexcept { return layout_->kind(); }

  /// The first `bytes` of the message have been received: those that lie in the caller's `room` go
  /// to where they belong.
  void deliver(std::uint64_t bytes) const noexcept {
    if (scatter_to_)
      layout_->scatter(*scatter_to_, 0, {static_cast<const std::byte*>(address_), bytes});
  }

  void release() noexcept;

 private:
  // Keeps the layout when the datatype is freed while a request is pending.
  hca::LayoutPtr layout_;
  void* address_ = nullptr;
  // Null where the bytes lie in one piece: then `address_` is the memory itself.
  void* window_ = nullptr;
  // The buffer of a message that is received elsewhere. (MPI_BOTTOM is null.)
  std::optional<std::byte*> scatter_to_;
};

/// Packed bytes up to which a send gathers, and a receive that blocks scatters, by itself, as
/// IBV_SEND_INLINE does: cheaper than a window, which UCP sends on a longer way.
inline constexpr std::size_t max_inline = 4096;

/// Counts a message that takes Open MPI's own path (one without bytes is not worth it).
void count_fallback(Direction direction, Fallback reason, const ompi_datatype_t& type,
                    std::size_t count) noexcept;

/// Counts a message that was offloaded.
inline void count_offloaded(Direction direction, const Binding& binding,
                            std::uint64_t bytes) noexcept {
  counters.of(direction, binding.kind()).add(bytes);
}

}  // namespace weft::ompi
