#include <sys/random.h>
#include <ucs/sys/stubs.h>

#include <climits>
#include <cstring>
#include <new>

#include "ucx-tl/activity.hpp"
#include "ucx-tl/weft_cp.hpp"

namespace weft::ucx::cp {
namespace {

ucs_config_field_t config_table[] = {
    {"", "", nullptr, offsetof(Config, super), UCS_CONFIG_TYPE_TABLE(abi::uct_iface_config_table)},
    {"BW", "10000MBs", "Bandwidth that UCX counts with for copies between windows and host memory",
     offsetof(Config, bandwidth), UCS_CONFIG_TYPE_BW},
    {nullptr, nullptr, nullptr, 0, {}},
};

Iface* self_of(uct_iface_h iface) {
  return reinterpret_cast<Iface*>(iface);
}

ucs_status_t query(uct_iface_h iface, uct_iface_attr_t* attr) {
  abi::uct_base_iface_query(self_of(iface), attr);
  attr->iface_addr_len = sizeof(Iface::id);
  attr->cap.flags = UCT_IFACE_FLAG_CONNECT_TO_IFACE | UCT_IFACE_FLAG_PUT_SHORT |
                    UCT_IFACE_FLAG_GET_SHORT | UCT_IFACE_FLAG_PUT_ZCOPY | UCT_IFACE_FLAG_GET_ZCOPY |
                    UCT_IFACE_FLAG_PENDING;
  attr->cap.put.max_short = UINT_MAX;
  attr->cap.put.max_zcopy = SIZE_MAX;
  attr->cap.put.opt_zcopy_align = 1;
  attr->cap.put.align_mtu = 1;
  attr->cap.put.max_iov = 8;
  attr->cap.get = {};
  attr->cap.get.max_short = UINT_MAX;
  attr->cap.get.max_zcopy = SIZE_MAX;
  attr->cap.get.opt_zcopy_align = 1;
  attr->cap.get.align_mtu = 1;
  attr->cap.get.max_iov = 8;
  attr->cap.am.opt_zcopy_align = 1;
  attr->cap.am.align_mtu = 1;
  attr->cap.am.max_iov = 1;
  attr->latency = {.c = 10e-9, .m = 0};
  attr->bandwidth = {.dedicated = 0, .shared = self_of(iface)->bandwidth};
  attr->overhead = 0;
  return UCS_OK;
}

ucs_status_t get_address(uct_iface_h iface, uct_iface_addr_t* address) {
  std::memcpy(address, &self_of(iface)->id, sizeof(Iface::id));
  return UCS_OK;
}

int is_reachable(const uct_iface_h iface, const uct_device_addr_t*,
                 const uct_iface_addr_t* address) {
  return address != nullptr && std::memcmp(address, &self_of(iface)->id, sizeof(Iface::id)) == 0;
}

void close(uct_iface_h iface) {
  activity().copy_ifaces.fetch_sub(1);
  abi::cleanup_base_iface(self_of(iface));
  delete self_of(iface);
}

uct_iface_ops_t make_ops() {
  uct_iface_ops_t ops{};
  ops.ep_put_short = ep_put_short;
  ops.ep_get_short = ep_get_short;
  ops.ep_put_zcopy = ep_put_zcopy;
  ops.ep_get_zcopy = ep_get_zcopy;
  // Nothing is ever out of resources here.
  ops.ep_pending_add = [](uct_ep_h, uct_pending_req_t*, unsigned) { return UCS_ERR_BUSY; };
  ops.ep_pending_purge = [](uct_ep_h, uct_pending_purge_callback_t, void*) {};
  ops.ep_flush = abi::uct_base_ep_flush;
  ops.ep_fence = abi::uct_base_ep_fence;
  ops.ep_create = ep_create;
  ops.ep_destroy = ep_destroy;
  ops.iface_flush = abi::uct_base_iface_flush;
  ops.iface_fence = abi::uct_base_iface_fence;
  ops.iface_progress_enable = [](uct_iface_h, unsigned) {};
  ops.iface_progress_disable = [](uct_iface_h, unsigned) {};
  ops.iface_progress = [](uct_iface_h) { return 0u; };
  ops.iface_close = close;
  ops.iface_query = query;
  ops.iface_get_device_address = [](uct_iface_h, uct_device_addr_t*) { return UCS_OK; };
  ops.iface_get_address = get_address;
  ops.iface_is_reachable = is_reachable;
  return ops;
}

abi::IfaceInternalOps internal_ops = {
    .estimate_perf = abi::uct_base_iface_estimate_perf,
    .vfs_refresh = [](uct_iface_h) {},
    .ep_query = [](uct_ep_h, uct_ep_attr_t*) { return UCS_ERR_UNSUPPORTED; },
    .ep_invalidate = [](uct_ep_h, unsigned) { return UCS_ERR_UNSUPPORTED; },
};

ucs_status_t open(uct_md_h md, uct_worker_h worker, const uct_iface_params_t* params,
                  const uct_iface_config_t* config, uct_iface_h* iface) {
  static uct_iface_ops_t ops = make_ops();
  auto* self = new (std::nothrow) Iface{};
  if (self == nullptr) return UCS_ERR_NO_MEMORY;
  const ucs_status_t status =
      abi::init_base_iface(self, &ops, &internal_ops, md, worker, params, config);
  if (status != UCS_OK) {
    delete self;
    return status;
  }
  if (getrandom(&self->id, sizeof self->id, 0) != sizeof self->id) {
    abi::cleanup_base_iface(self);
    delete self;
    return UCS_ERR_IO_ERROR;
  }
  self->bandwidth = reinterpret_cast<const Config*>(config)->bandwidth;
  activity().copy_ifaces.fetch_add(1);
  *iface = &self->super;
  return UCS_OK;
}

ucs_status_t query_devices(uct_md_h md, abi::DeviceResource** devices, unsigned* count) {
  return abi::uct_single_device_resource(md, name, UCT_DEVICE_TYPE_ACC, UCS_SYS_DEVICE_ID_UNKNOWN,
                                         devices, count);
}

}  // namespace

abi::Transport transport = {
    .name = "weft_cp",
    .query_devices = query_devices,
    .iface_open = open,
    .config = {.name = "weft_cp transport",
               .prefix = "WEFT_CP_",
               .table = config_table,
               .size = sizeof(Config),
               .list = {}},
    .list = {},
};

}  // namespace weft::ucx::cp
