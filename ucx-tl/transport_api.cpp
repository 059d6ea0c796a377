#include "ucx-tl/transport_api.hpp"

#include "hca/peer_distance.hpp"
#include "ucx-tl/activity.hpp"
#include "ucx-tl/window.hpp"
#include "ucx-tl/window_memory_type.hpp"

namespace {

using weft::hca::Layout;
using weft::ucx::activity;
using weft::ucx::WindowArena;
using weft::ucx::windows;

constexpr weft::ucx::TransportApi api = {
    .version = weft::ucx::TransportApi::current_version,
    .active = []() noexcept { return activity().both_open(); },
    .bind = [](void* buffer,
               const Layout& layout) noexcept { return windows().bind(buffer, layout); },
    .release = [](void* window) noexcept { windows().release(window); },
    .max_window_size = []() noexcept { return WindowArena::max_window; },
    .why_inactive = []() noexcept { return activity().why_not(); },
    .window_addresses = []() noexcept -> weft::ucx::TransportApi::Addresses {
      return {reinterpret_cast<std::uintptr_t>(windows().address()), windows().length()};
    },
    .window_memory_type = weft::ucx::window_memory_type,
    .memory_type_for_send =
        [](const void* window, std::uint64_t bytes) noexcept {
          const weft::ucx::Resolved bound = windows().resolve(window);
          return bound ? weft::ucx::memory_type_for_send(*bound.layout, bytes)
                       : weft::ucx::window_memory_type;
        },
    .announce = []() noexcept { windows().announce(); },
    .take_turns =
        []() noexcept {
          activity().takes_turns.store(true, std::memory_order_relaxed);
          weft::hca::peer_distance().stop_looking();
        },
};

}  // namespace

extern "C" __attribute__((visibility("default"))) const weft::ucx::TransportApi*
weft_transport_api() noexcept {
  return &api;
}
