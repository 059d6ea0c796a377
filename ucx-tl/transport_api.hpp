// What the transport library offers to the Open MPI hook, found by dlsym("weft_transport_api").
#pragma once

#include <cstdint>

#include "hca/layout.hpp"

namespace weft::ucx {

/// All functions are thread-safe.
struct TransportApi {
  /// Also of hca::Layout, whose objects pass between the two.
  static constexpr std::uint32_t current_version = 3;
  std::uint32_t version;
  /// True once an interface of weft_cp and one of weft are open in this process: until then (and
  /// when UCX_TLS leaves one of them out) no window may be handed to UCX.
  bool (*active)() noexcept;
  /// Binds (buffer, layout) to a window: its address stands for `layout.size()` packed bytes. Null
  /// when no window is left or the layout is larger than a window. Layout and buffer must outlive
  /// the binding.
  void* (*bind)(void* buffer, const hca::Layout& layout) noexcept;
  /// Ends a binding.
  void (*release)(void* window) noexcept;
  /// Largest packed size a window can stand for.
  std::uint64_t (*max_window_size)() noexcept;
  /// A line about why the transport is not active, for people.
  const char* (*why_inactive)() noexcept;
};

}  // namespace weft::ucx

extern "C" const weft::ucx::TransportApi* weft_transport_api() noexcept;
