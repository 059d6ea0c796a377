// What the transport library offers to the Open MPI hook, found by dlsym("weft_transport_api").
#pragma once

#include <ucs/memory/memory_type.h>

#include <cstdint>

#include "hca/layout.hpp"

namespace weft::ucx {

/// All functions are thread-safe.
struct TransportApi {
  /// Also of hca::Layout, whose objects pass between the two.
  static constexpr std::uint32_t current_version = 6;
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
  /// Where the windows lie. Constant once the transport is active.
  struct Addresses {
    std::uintptr_t start;
    std::uint64_t length;
  };
  Addresses (*window_addresses)() noexcept;
  /// What UCP is to be told that a window is (UCP_OP_ATTR_FIELD_MEMORY_TYPE).
  ucs_memory_type_t window_memory_type;
  /// The same where its first `bytes` are sent and UCP begins its rendezvous where it wants to
  /// (UCX_RNDV_THRESH=auto): decides in which pieces short messages go.
  ucs_memory_type_t (*memory_type_for_send)(const void* window, std::uint64_t bytes) noexcept;
  /// Enters the windows in UCX's memory type cache, for callers of UCP that do not tell it. From
  /// then on UCP looks every buffer up there, and sends no message in the shortest way.
  void (*announce)() noexcept;
  /// There are more processes than cores: from now on who waits in UCX's progress gives its core
  /// away after a while (hca/emu/turns). Not for a worker that several threads use, since the one
  /// that waits holds its lock.
  void (*take_turns)() noexcept;
};

}  // namespace weft::ucx

extern "C" const weft::ucx::TransportApi* weft_transport_api() noexcept;
