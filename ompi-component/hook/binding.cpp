#include "ompi-component/hook/binding.hpp"

#include <new>

#include "hca/status.hpp"
#include "ompi-component/hook/hook.hpp"
#include "ompi-component/hook/layouts.hpp"
#include "ompi-component/hook/log.hpp"
#include "ompi-component/hook/params.hpp"

namespace weft::ompi {
namespace {

hca::LayoutPtr layout_or_fallback(ompi_datatype_t* type, std::size_t count,
                                  Fallback& reason) noexcept {
  try {
    return layout_of(type, count);
  } catch (const hca::Error&) {
    reason = Fallback::limits;
  } catch (...) {
    reason = Fallback::no_memory;
  }
  return nullptr;
}

}  // namespace

void count_fallback(Direction direction, Fallback reason, const ompi_datatype_t& type,
                    std::size_t count) noexcept {
  const std::uint64_t bytes = type.super.size * count;
  if (bytes == 0) return;
  counters.of(direction, reason).add(bytes);
  if (params.verbose < 2) [[likely]]
    return;
  try {
    tell(2, "{} of {} x {} ({} bytes) not offloaded: {}", to_string(direction), count,
         name_or_unnamed(type.name), bytes, explain(reason));
  } catch (...) {
    // Nothing depends on the remark.
  }
}

Binding Binding::make(Direction direction, const void* buffer, std::size_t count,
                      ompi_datatype_t* type, std::span<std::byte> room) noexcept {
  std::uint64_t bytes = 0;
  // A message without bytes has nothing to gather, and one of more than 2^64 nothing to say.
  if (__builtin_mul_overflow(type->super.size, count, &bytes) || bytes == 0) return {};

  const auto fall_back = [&](Fallback reason) noexcept {
    count_fallback(direction, reason, *type, count);
    return Binding{};
  };
  if (!hook.offloads) [[unlikely]]
    return fall_back(hook.inactive_as);

  Fallback reason{};
  Binding binding;
  binding.layout_ = layout_or_fallback(type, count, reason);
  if (!binding) [[unlikely]]
    return fall_back(reason);

  const hca::Layout& layout = *binding.layout_;
  std::byte* base = static_cast<std::byte*>(const_cast<void*>(buffer));
  if (layout.is_contiguous()) {  // needs no window, whatever its size
    binding.address_ = base + layout.lower();
    return binding;
  }
  if (bytes < params.min_size) return fall_back(Fallback::min_size);
  if (bytes <= room.size()) {
    binding.address_ = room.data();
    if (direction == Direction::send)
      layout.gather(base, 0, room.first(bytes));
    else
      binding.scatter_to_ = base;
    return binding;
  }
  if (bytes > hook.max_window) [[unlikely]]
    return fall_back(Fallback::limits);
  binding.window_ = hook.transport->bind(base, layout);
  if (binding.window_ == nullptr) [[unlikely]]
    return fall_back(Fallback::no_window);
  binding.address_ = binding.window_;
  return binding;
}

void Binding::release() noexcept {
  if (window_ != nullptr) hook.transport->release(std::exchange(window_, nullptr));
  layout_.reset();
}

}  // namespace weft::ompi
