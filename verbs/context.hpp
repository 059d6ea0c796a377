// Devices and their contexts: what ibv_get_device_list() shows and ibv_open_device() returns.
#pragma once

#include <infiniband/verbs.h>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <unordered_map>
#include <vector>

#include "hca/emu/context.hpp"
#include "verbs/event_queue.hpp"
#include "verbs/limits.hpp"

namespace weft::verbs {

constexpr std::uint8_t only_port = 1;
constexpr std::uint16_t only_lid = 1;
constexpr std::uint16_t only_pkey = 0xffff;

/// The emulated device. Providers of libibverbs keep a private part behind ibv_device: there is
/// room for who looks there.
struct Device : ibv_device {
  Device();
  std::byte padding[1024]{};
};

/// The device of this process, named by WEFT_DEVICE (default weft0).
Device& device();

struct MemoryWindow;
struct SharedReceiveQueue;

/// An open of the device. Its verbs_context ends in the ibv_context that programs hold.
struct Context : verbs_context {
  /// Throws hca::Error.
  Context();
  ~Context();

  static Context& of(ibv_context* context) noexcept {
    return *static_cast<Context*>(reinterpret_cast<verbs_context*>(
        reinterpret_cast<char*>(context) - offsetof(verbs_context, context)));
  }

  /// The link to the context that has a QP; null when nobody is there.
  std::shared_ptr<hca::emu::Link> link_to(std::uint32_t qp_num);
  /// Queues an asynchronous event.
  void raise(const ibv_async_event& event) { async_events.push(event); }

  std::unique_ptr<hca::emu::Context> core;
  EventQueue<ibv_async_event> async_events;
  std::vector<const MemoryWindow*> windows;  ///< all of them; under the lock of the core's domain

  /// What is created in the context keeps it: programs close it with objects left and destroy those
  /// later, or never.
  void retain() noexcept { ++users_; }
  void release() noexcept {
    if (--users_ == 0) delete this;
  }

 private:
  std::atomic<int> users_{1};  ///< who opened it, and its objects
  std::mutex links_mutex_;
  std::unordered_map<std::uint32_t, std::shared_ptr<hca::emu::Link>> links_;
};

inline bool is_ours(const ibv_device* which) noexcept {
  return which == &device();
}
inline bool is_ours(const ibv_context* context) noexcept {
  return context != nullptr && is_ours(context->device);
}

/// The program's `ibv_*` calls that go through pointers in the context.
void set_operations(Context& context);

/// Whether an address vector names this device's port, the only one that can be reached.
bool names_us(const Context& context, const ibv_ah_attr& attr) noexcept;
/// Throws hca::Error EINVAL for what no port of this device can have.
void check_address(const ibv_ah_attr& attr);

ibv_gid gid_of(const Context& context) noexcept;

int query_device(ibv_context* context, ibv_device_attr* attr);
int query_device_ex(ibv_context* context, const ibv_query_device_ex_input* input,
                    ibv_device_attr_ex* attr, std::size_t size);
int query_port(ibv_context* context, std::uint8_t port, ibv_port_attr* attr, std::size_t size);
int query_rt_values(ibv_context* context, ibv_values_ex* values);
int query_gid_entry(ibv_context* context, std::uint32_t port, std::uint32_t index,
                    ibv_gid_entry* entry, std::uint32_t flags, std::size_t size);

}  // namespace weft::verbs
