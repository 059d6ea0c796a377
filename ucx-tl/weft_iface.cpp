#include "ucx-tl/weft_iface.hpp"

#include <ucs/debug/log_def.h>

#include <cinttypes>
#include <cstring>
#include <utility>

#include "hca/emu/device_file.hpp"
#include "hca/emu/topology.hpp"
#include "ucx-tl/activity.hpp"
#include "ucx-tl/weft_ep.hpp"
#include "ucx-tl/weft_md.hpp"
#include "ucx-tl/weft_status.hpp"

namespace weft::ucx::wire {
namespace {

ucs_config_field_t config_table[] = {
    {"", "", nullptr, offsetof(IfaceConfig, super),
     UCS_CONFIG_TYPE_TABLE(abi::uct_iface_config_table)},
    // Less than four times that of cma (11 GB/s), and UCX would split large messages over both.
    {"BW", "50000MBs", "Bandwidth that UCX counts with", offsetof(IfaceConfig, bandwidth),
     UCS_CONFIG_TYPE_BW},
    // The lane for active messages goes to the transport with the lowest latency plus overhead.
    {"LATENCY", "10ns", "Latency that UCX counts with", offsetof(IfaceConfig, latency),
     UCS_CONFIG_TYPE_TIME},
    {"OVERHEAD", "1ns", "Overhead of a call that UCX counts with", offsetof(IfaceConfig, overhead),
     UCS_CONFIG_TYPE_TIME},
    {nullptr, nullptr, nullptr, 0, {}},
};

// ---- progress -----------------------------------------------------------------------------------

unsigned look(Iface* iface) {
  unsigned events = iface->context->progress();
  if (!iface->waiting.empty()) [[unlikely]] {
    events += dispatch_pending(iface);
  }
  if (!iface->failed.empty()) [[unlikely]] {
    events += report_failures(iface);
  }
  return events;
}

unsigned progress(uct_iface_h uct_iface) {
  Iface* iface = iface_of(uct_iface);
  const unsigned events = look(iface);
  if (events != 0 || !activity().takes_turns.load(std::memory_order_relaxed)) return events;
  return iface->turns.wait(*iface->context, [iface] { return look(iface); });
}

void take_message(void* arg, std::uint8_t id, std::byte* data, std::size_t length) {
  const abi::AmEntry& entry = static_cast<Iface*>(arg)->am[id & (UCT_AM_ID_MAX - 1)];
  entry.cb(entry.arg, data, length, 0);
}

void link_failed(void* arg, hca::emu::Link& link) {
  for (Ep* ep : static_cast<Iface*>(arg)->eps) {
    if (ep->link == &link) fail(ep);
  }
}

// ---- events -------------------------------------------------------------------------------------

ucs_status_t event_fd_get(uct_iface_h iface, int* fd) {
  try {
    *fd = iface_of(iface)->context->event_fd();
    return UCS_OK;
  } catch (const hca::Error& error) {
    ucs_error("weft: no event descriptor: %s", error.what());
    return status_of(error);
  }
}

ucs_status_t event_arm(uct_iface_h uct_iface, unsigned) {
  Iface* iface = iface_of(uct_iface);
  // Requests that wait for room are retried by progress: nobody rings when there is room.
  if (!iface->waiting.empty() || !iface->failed.empty()) return UCS_ERR_BUSY;
  return iface->context->arm() ? UCS_OK : UCS_ERR_BUSY;
}

// ---- flush, fence -------------------------------------------------------------------------------

ucs_status_t flush(uct_iface_h iface, unsigned, uct_completion_t* comp) {
  if (comp != nullptr) return UCS_ERR_UNSUPPORTED;
  for (const Ep* ep : iface_of(iface)->eps) {
    if (ep->flushes.outstanding() != 0) return UCS_INPROGRESS;
  }
  return UCS_OK;
}

ucs_status_t fence(uct_iface_h iface, unsigned) {
  for (const Ep* ep : iface_of(iface)->eps) ep->link->fence();
  return UCS_OK;
}

// ---- addresses ----------------------------------------------------------------------------------

ucs_status_t get_device_address(uct_iface_h iface, uct_device_addr_t* address) {
  const std::uint64_t host = iface_of(iface)->context->address().host;
  std::memcpy(address, &host, sizeof host);
  return UCS_OK;
}

ucs_status_t get_address(uct_iface_h iface, uct_iface_addr_t* address) {
  const hca::emu::Address& self = iface_of(iface)->context->address();
  std::memcpy(address, &self, sizeof self);
  return UCS_OK;
}

int is_reachable(const uct_iface_h iface, const uct_device_addr_t* device,
                 const uct_iface_addr_t* address) {
  const hca::emu::Context& context = *iface_of(iface)->context;
  if (device != nullptr) {
    std::uint64_t host;
    std::memcpy(&host, device, sizeof host);
    if (host != context.address().host) return 0;
  }
  if (address == nullptr) return 1;
  hca::emu::Address peer;
  std::memcpy(&peer, address, sizeof peer);
  return context.reachable(peer);
}

// ---- opening and closing ------------------------------------------------------------------------

void close(uct_iface_h uct_iface) {
  Iface* iface = iface_of(uct_iface);
  activity().wire_ifaces.fetch_sub(1);
  ucs_info("weft: zero copy: %" PRIu64 " gets of %" PRIu64 " bytes, %" PRIu64 " puts of %" PRIu64
           " bytes",
           iface->gets.calls, iface->gets.bytes, iface->puts.calls, iface->puts.bytes);
  abi::uct_base_iface_progress_disable(uct_iface, UCT_PROGRESS_SEND | UCT_PROGRESS_RECV);
  iface->context->set_failure_handler(nullptr, nullptr);
  for (Ep* ep : iface->zombies) delete ep;
  abi::cleanup_base_iface(iface);
  delete iface;
}

uct_iface_ops_t make_ops() {
  uct_iface_ops_t ops{};
  ops.ep_put_short = ep_put_short;
  ops.ep_put_bcopy = ep_put_bcopy;
  ops.ep_put_zcopy = ep_put_zcopy;
  ops.ep_get_bcopy = ep_get_bcopy;
  ops.ep_get_zcopy = ep_get_zcopy;
  ops.ep_am_short = ep_am_short;
  ops.ep_am_short_iov = ep_am_short_iov;
  ops.ep_am_bcopy = ep_am_bcopy;
  ops.ep_am_zcopy = ep_am_zcopy;
  ops.ep_atomic_cswap64 = ep_atomic_cswap64;
  ops.ep_atomic_cswap32 = ep_atomic_cswap32;
  ops.ep_atomic32_post = ep_atomic32_post;
  ops.ep_atomic64_post = ep_atomic64_post;
  ops.ep_atomic32_fetch = ep_atomic32_fetch;
  ops.ep_atomic64_fetch = ep_atomic64_fetch;
  ops.ep_pending_add = ep_pending_add;
  ops.ep_pending_purge = ep_pending_purge;
  ops.ep_flush = ep_flush;
  ops.ep_fence = ep_fence;
  ops.ep_check = ep_check;
  ops.ep_create = ep_create;
  ops.ep_destroy = ep_destroy;
  ops.iface_flush = flush;
  ops.iface_fence = fence;
  ops.iface_progress_enable = abi::uct_base_iface_progress_enable;
  ops.iface_progress_disable = abi::uct_base_iface_progress_disable;
  ops.iface_progress = progress;
  ops.iface_event_fd_get = event_fd_get;
  ops.iface_event_arm = event_arm;
  ops.iface_close = close;
  ops.iface_query = iface_query;
  ops.iface_get_device_address = get_device_address;
  ops.iface_get_address = get_address;
  ops.iface_is_reachable = is_reachable;
  return ops;
}

abi::IfaceInternalOps internal_ops = {
    .estimate_perf = abi::uct_base_iface_estimate_perf,
    .vfs_refresh = [](uct_iface_h) {},
    .ep_query = [](uct_ep_h, uct_ep_attr_t*) { return UCS_ERR_UNSUPPORTED; },
    .ep_invalidate =
        [](uct_ep_h ep, unsigned) {
          fail(ep_of(ep));
          return UCS_OK;
        },
};

ucs_status_t open(uct_md_h uct_md, uct_worker_h worker, const uct_iface_params_t* params,
                  const uct_iface_config_t* config, uct_iface_h* iface) {
  static uct_iface_ops_t ops = make_ops();
  if ((params->field_mask & UCT_IFACE_PARAM_FIELD_OPEN_MODE) == 0 ||
      (params->open_mode & UCT_IFACE_OPEN_MODE_DEVICE) == 0) {
    return UCS_ERR_UNSUPPORTED;
  }
  const auto* md = static_cast<const Md*>(uct_md);
  auto self = std::make_unique<Iface>();
  try {
    self->context = hca::emu::Context::open({.device = md->device,
                                             .domain = md->domain,
                                             .purpose = "ucx",
                                             .eager_helper = md->async,
                                             .largest_piece = hca::emu::largest_piece(),
                                             .place_rings = hca::emu::place_near});
  } catch (const hca::Error& error) {
    activity().note(std::string("the device cannot be opened: ") + error.what());
    ucs_error("weft: cannot open %s: %s", md->device.c_str(), error.what());
    return status_of(error);
  }
  const ucs_status_t status =
      abi::init_base_iface(self.get(), &ops, &internal_ops, uct_md, worker, params, config);
  if (status != UCS_OK) return status;
  const auto* settings = reinterpret_cast<const IfaceConfig*>(config);
  self->bandwidth = settings->bandwidth;
  self->latency = settings->latency;
  self->overhead = settings->overhead;
  self->context->set_am_handler(take_message, self.get());
  self->context->set_failure_handler(link_failed, self.get());
  activity().wire_ifaces.fetch_add(1);
  *iface = &self.release()->super;
  return UCS_OK;
}

/// No device is listed that could not be opened: UCX takes a failure later for a fatal one.
ucs_status_t query_devices(uct_md_h uct_md, abi::DeviceResource** devices, unsigned* count) {
  const auto* md = static_cast<const Md*>(uct_md);
  try {
    const hca::emu::DeviceFile probe(md->device);
  } catch (const hca::Error& error) {
    activity().note(std::string("the device cannot be opened: ") + error.what());
    ucs_diag("weft: cannot open %s: %s", md->device.c_str(), error.what());
    *devices = nullptr;
    *count = 0;
    return UCS_OK;
  }
  return abi::uct_single_device_resource(uct_md, md->device.c_str(), UCT_DEVICE_TYPE_SHM,
                                         UCS_SYS_DEVICE_ID_UNKNOWN, devices, count);
}

}  // namespace

abi::Transport transport = {
    .name = "weft",
    .query_devices = query_devices,
    .iface_open = open,
    .config = {.name = "weft transport",
               .prefix = "WEFT_",
               .table = config_table,
               .size = sizeof(IfaceConfig),
               .list = {}},
    .list = {},
};

}  // namespace weft::ucx::wire
