// The calls that libibverbs exports, in front of it: what is about the emulated device is answered
// here, everything else goes to the real library. A preloaded library satisfies references to any
// version of a symbol.
#include <infiniband/verbs.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <new>

#include "verbs/address_handle.hpp"
#include "verbs/card_layouts.hpp"
#include "verbs/completion_queue.hpp"
#include "verbs/context.hpp"
#include "verbs/log.hpp"
#include "verbs/memory_region.hpp"
#include "verbs/protection_domain.hpp"
#include "verbs/queue_pair.hpp"
#include "verbs/real_verbs.hpp"
#include "verbs/shared_receive_queue.hpp"
#include "verbs/work_request.hpp"

// The header hides these behind inline functions.
#undef ibv_query_port
#undef ibv_reg_mr
#undef ibv_reg_mr_iova

#define WEFT_EXPORT extern "C" __attribute__((visibility("default")))

using weft::verbs::is_ours;
using weft::verbs::Real;

// A call on an object that knows its context: ours, or the real one with the same arguments.
#define WEFT_FORWARD(object_context, ours, name, failed, ...)           \
  do {                                                                  \
    if (is_ours(object_context)) return weft::verbs::ours(__VA_ARGS__); \
    static const Real<decltype(name)> real(#name);                      \
    return real.or_else(failed, __VA_ARGS__);                           \
  } while (false)

// ---- devices -----------------------------------------------------------------------------------

namespace {

/// A device list as handed out, with the real library's behind it.
struct DeviceList {
  ibv_device** real;
  ibv_device* shown[];
};

}  // namespace

WEFT_EXPORT ibv_device** ibv_get_device_list(int* num_devices) {
  static const Real<ibv_device**(int*)> real("ibv_get_device_list");
  int count = 0;
  ibv_device** others = real.or_else(static_cast<ibv_device**>(nullptr), &count);
  if (others == nullptr) count = 0;  // no device of the machine's, or no way to look: only ours
  const std::size_t shown = static_cast<std::size_t>(count) + 2;  // ours, and the null at the end
  auto* list = static_cast<DeviceList*>(std::malloc(sizeof(DeviceList) + shown * sizeof(void*)));
  if (list == nullptr) {
    errno = ENOMEM;
    return nullptr;
  }
  list->real = others;
  // Real devices come first: programs that take the first one keep the one they had.
  for (int i = 0; i < count; ++i) list->shown[i] = others[i];
  list->shown[count] = &weft::verbs::device();
  list->shown[count + 1] = nullptr;
  if (num_devices != nullptr) *num_devices = count + 1;
  errno = 0;
  return list->shown;
}

WEFT_EXPORT void ibv_free_device_list(ibv_device** shown) {
  if (shown == nullptr) return;
  auto* list =
      reinterpret_cast<DeviceList*>(reinterpret_cast<char*>(shown) - offsetof(DeviceList, shown));
  static const Real<void(ibv_device**)> real("ibv_free_device_list");
  if (list->real != nullptr) real.call(list->real);
  std::free(list);
}

WEFT_EXPORT const char* ibv_get_device_name(ibv_device* device) {
  return device->name;
}

WEFT_EXPORT int ibv_get_device_index(ibv_device* device) {
  if (is_ours(device)) return -1;
  static const Real<decltype(ibv_get_device_index)> real("ibv_get_device_index");
  return real.or_else(-1, device);
}

WEFT_EXPORT __be64 ibv_get_device_guid(ibv_device* device) {
  static const Real<decltype(ibv_get_device_guid)> real("ibv_get_device_guid");
  if (!is_ours(device)) return real.or_else(__be64{0}, device);
  __be64 guid = 0;
  weft::verbs::guarded("ibv_get_device_guid", [&] {
    const weft::verbs::Context context;
    guid = weft::verbs::gid_of(context).global.interface_id;
  });
  return guid;
}

WEFT_EXPORT ibv_context* ibv_open_device(ibv_device* device) {
  if (is_ours(device)) {
    return weft::verbs::guarded_pointer("ibv_open_device",
                                        [] { return &(new weft::verbs::Context)->context; });
  }
  static const Real<decltype(ibv_open_device)> real("ibv_open_device");
  return real.or_else(static_cast<ibv_context*>(nullptr), device);
}

WEFT_EXPORT int ibv_close_device(ibv_context* context) {
  if (is_ours(context)) {
    weft::verbs::Context::of(context).release();
    return 0;
  }
  static const Real<decltype(ibv_close_device)> real("ibv_close_device");
  return real.or_else(-1, context);
}

WEFT_EXPORT ibv_context* ibv_import_device(int cmd_fd) {
  static const Real<decltype(ibv_import_device)> real("ibv_import_device");
  return real.or_else(static_cast<ibv_context*>(nullptr), cmd_fd);
}

// Objects of the emulated device cannot be shared by descriptor.
WEFT_EXPORT ibv_pd* ibv_import_pd(ibv_context* context, std::uint32_t handle) {
  static const Real<decltype(ibv_import_pd)> real("ibv_import_pd");
  if (!is_ours(context)) return real.or_else(static_cast<ibv_pd*>(nullptr), context, handle);
  errno = EOPNOTSUPP;
  return nullptr;
}

WEFT_EXPORT void ibv_unimport_pd(ibv_pd* pd) {
  static const Real<decltype(ibv_unimport_pd)> real("ibv_unimport_pd");
  if (!is_ours(pd->context)) real.call(pd);
}

WEFT_EXPORT ibv_mr* ibv_import_mr(ibv_pd* pd, std::uint32_t handle) {
  static const Real<decltype(ibv_import_mr)> real("ibv_import_mr");
  if (!is_ours(pd->context)) return real.or_else(static_cast<ibv_mr*>(nullptr), pd, handle);
  errno = EOPNOTSUPP;
  return nullptr;
}

WEFT_EXPORT void ibv_unimport_mr(ibv_mr* mr) {
  static const Real<decltype(ibv_unimport_mr)> real("ibv_unimport_mr");
  if (!is_ours(mr->context)) real.call(mr);
}

WEFT_EXPORT ibv_dm* ibv_import_dm(ibv_context* context, std::uint32_t handle) {
  static const Real<decltype(ibv_import_dm)> real("ibv_import_dm");
  if (!is_ours(context)) return real.or_else(static_cast<ibv_dm*>(nullptr), context, handle);
  errno = EOPNOTSUPP;
  return nullptr;
}

WEFT_EXPORT void ibv_unimport_dm(ibv_dm* dm) {
  static const Real<decltype(ibv_unimport_dm)> real("ibv_unimport_dm");
  if (!is_ours(dm->context)) real.call(dm);
}

// ---- events ------------------------------------------------------------------------------------

namespace {

weft::verbs::UnacknowledgedEvents* affiliated(const ibv_async_event& event) {
  // By type: a program hands back its own copy of the event.
  if (event.event_type == IBV_EVENT_CQ_ERR) {
    return &weft::verbs::CompletionQueue::of(event.element.cq).async_events;
  }
  if (event.event_type == IBV_EVENT_SRQ_LIMIT_REACHED || event.event_type == IBV_EVENT_SRQ_ERR) {
    return &weft::verbs::SharedReceiveQueue::of(event.element.srq).async_events;
  }
  if (weft::verbs::is_of_qp(event.event_type)) {
    return &weft::verbs::QueuePair::of(event.element.qp).async_events;
  }
  return nullptr;
}

bool is_ours(const ibv_async_event& event) {
  if (event.event_type == IBV_EVENT_CQ_ERR) return is_ours(event.element.cq->context);
  if (event.event_type == IBV_EVENT_SRQ_LIMIT_REACHED || event.event_type == IBV_EVENT_SRQ_ERR) {
    return is_ours(event.element.srq->context);
  }
  return weft::verbs::is_of_qp(event.event_type) && is_ours(event.element.qp->context);
}

}  // namespace

WEFT_EXPORT int ibv_get_async_event(ibv_context* context, ibv_async_event* event) {
  static const Real<decltype(ibv_get_async_event)> real("ibv_get_async_event");
  if (!is_ours(context)) return real.or_else(-1, context, event);
  const auto taken = weft::verbs::Context::of(context).async_events.take(
      [](const ibv_async_event& next) { affiliated(next)->handed_out(); });
  if (!taken) return -1;
  *event = *taken;
  return 0;
}

WEFT_EXPORT void ibv_ack_async_event(ibv_async_event* event) {
  static const Real<decltype(ibv_ack_async_event)> real("ibv_ack_async_event");
  if (is_ours(*event)) {
    affiliated(*event)->acknowledged(1);
  } else {
    real.call(event);
  }
}

// ---- queries -----------------------------------------------------------------------------------

WEFT_EXPORT int ibv_query_device(ibv_context* context, ibv_device_attr* attr) {
  WEFT_FORWARD(context, query_device, ibv_query_device, ENOSYS, context, attr);
}

WEFT_EXPORT int ibv_query_port(ibv_context* context, std::uint8_t port,
                               _compat_ibv_port_attr* attr) {
  if (is_ours(context)) {
    // Programs of before IBVERBS 1.1's last change of the struct: it ended before link_layer's
    // successors.
    return weft::verbs::query_port(context, port, reinterpret_cast<ibv_port_attr*>(attr),
                                   offsetof(ibv_port_attr, port_cap_flags2));
  }
  static const Real<decltype(ibv_query_port)> real("ibv_query_port");
  return real.or_else(ENOSYS, context, port, attr);
}

WEFT_EXPORT int ibv_query_gid(ibv_context* context, std::uint8_t port, int index, ibv_gid* gid) {
  static const Real<decltype(ibv_query_gid)> real("ibv_query_gid");
  if (!is_ours(context)) return real.or_else(-1, context, port, index, gid);
  if (port != weft::verbs::only_port || index != 0) {
    errno = EINVAL;
    return -1;
  }
  *gid = weft::verbs::gid_of(weft::verbs::Context::of(context));
  return 0;
}

WEFT_EXPORT int ibv_query_gid_type(ibv_context* context, std::uint8_t port, unsigned index,
                                   int* type) {
  static const Real<int(ibv_context*, std::uint8_t, unsigned, int*)> real("ibv_query_gid_type");
  if (!is_ours(context)) return real.or_else(-1, context, port, index, type);
  if (port != weft::verbs::only_port || index != 0) {
    errno = EINVAL;
    return -1;
  }
  *type = 0;  // IB, or RoCE v1
  return 0;
}

WEFT_EXPORT int _ibv_query_gid_ex(ibv_context* context, std::uint32_t port, std::uint32_t index,
                                  ibv_gid_entry* entry, std::uint32_t flags, std::size_t size) {
  WEFT_FORWARD(context, query_gid_entry, _ibv_query_gid_ex, ENOSYS, context, port, index, entry,
               flags, size);
}

WEFT_EXPORT ssize_t _ibv_query_gid_table(ibv_context* context, ibv_gid_entry* entries,
                                         std::size_t max_entries, std::uint32_t flags,
                                         std::size_t size) {
  static const Real<decltype(_ibv_query_gid_table)> real("_ibv_query_gid_table");
  if (!is_ours(context)) {
    return real.or_else(ssize_t{-ENOSYS}, context, entries, max_entries, flags, size);
  }
  if (max_entries == 0) return -EINVAL;
  const int code =
      weft::verbs::query_gid_entry(context, weft::verbs::only_port, 0, entries, flags, size);
  return code == 0 ? 1 : -code;
}

WEFT_EXPORT int ibv_query_pkey(ibv_context* context, std::uint8_t port, int index, __be16* pkey) {
  static const Real<decltype(ibv_query_pkey)> real("ibv_query_pkey");
  if (!is_ours(context)) return real.or_else(-1, context, port, index, pkey);
  if (port != weft::verbs::only_port || index != 0) {
    errno = EINVAL;
    return -1;
  }
  *pkey = weft::verbs::only_pkey;
  return 0;
}

WEFT_EXPORT int ibv_get_pkey_index(ibv_context* context, std::uint8_t port, __be16 pkey) {
  static const Real<decltype(ibv_get_pkey_index)> real("ibv_get_pkey_index");
  if (!is_ours(context)) return real.or_else(-1, context, port, pkey);
  return port == weft::verbs::only_port && pkey == weft::verbs::only_pkey ? 0 : -1;
}

// ---- protection domains and memory -------------------------------------------------------------

WEFT_EXPORT ibv_pd* ibv_alloc_pd(ibv_context* context) {
  WEFT_FORWARD(context, alloc_pd, ibv_alloc_pd, static_cast<ibv_pd*>(nullptr), context);
}

WEFT_EXPORT int ibv_dealloc_pd(ibv_pd* pd) {
  WEFT_FORWARD(pd->context, dealloc_pd, ibv_dealloc_pd, ENOSYS, pd);
}

WEFT_EXPORT ibv_mr* ibv_reg_mr_iova2(ibv_pd* pd, void* addr, std::size_t length, std::uint64_t iova,
                                     unsigned access) {
  WEFT_FORWARD(pd->context, reg_mr, ibv_reg_mr_iova2, static_cast<ibv_mr*>(nullptr), pd, addr,
               length, iova, access);
}

WEFT_EXPORT ibv_mr* ibv_reg_mr_iova(ibv_pd* pd, void* addr, std::size_t length, std::uint64_t iova,
                                    int access) {
  if (is_ours(pd->context)) {
    return weft::verbs::reg_mr(pd, addr, length, iova, static_cast<unsigned>(access));
  }
  static const Real<ibv_mr*(ibv_pd*, void*, std::size_t, std::uint64_t, int)> real(
      "ibv_reg_mr_iova");
  return real.or_else(static_cast<ibv_mr*>(nullptr), pd, addr, length, iova, access);
}

WEFT_EXPORT ibv_mr* ibv_reg_mr(ibv_pd* pd, void* addr, std::size_t length, int access) {
  if (is_ours(pd->context)) {
    return weft::verbs::reg_mr(pd, addr, length, reinterpret_cast<std::uint64_t>(addr),
                               static_cast<unsigned>(access));
  }
  // An empty MR, which no card's driver registers, is the carrier of a layout.
  const auto rights = static_cast<unsigned>(access);
  if (addr == nullptr && length == 0 && (rights & IBV_ACCESS_ZERO_BASED) != 0 &&
      weft::verbs::has_card_layouts(pd->context)) {
    return weft::verbs::reg_card_carrier(pd, rights);
  }
  static const Real<ibv_mr*(ibv_pd*, void*, std::size_t, int)> real("ibv_reg_mr");
  return real.or_else(static_cast<ibv_mr*>(nullptr), pd, addr, length, access);
}

WEFT_EXPORT ibv_mr* ibv_reg_dmabuf_mr(ibv_pd* pd, std::uint64_t offset, std::size_t length,
                                      std::uint64_t iova, int fd, int access) {
  static const Real<decltype(ibv_reg_dmabuf_mr)> real("ibv_reg_dmabuf_mr");
  if (!is_ours(pd->context)) {
    return real.or_else(static_cast<ibv_mr*>(nullptr), pd, offset, length, iova, fd, access);
  }
  errno = EOPNOTSUPP;
  return nullptr;
}

WEFT_EXPORT int ibv_rereg_mr(ibv_mr* mr, int flags, ibv_pd* pd, void* addr, std::size_t length,
                             int access) {
  if (weft::verbs::is_card_carrier(mr)) {
    weft::verbs::log_refusal("ibv_rereg_mr", EINVAL, "the MR is the carrier of a layout");
    errno = EINVAL;
    return IBV_REREG_MR_ERR_INPUT;
  }
  WEFT_FORWARD(mr->context, rereg_mr, ibv_rereg_mr, int{IBV_REREG_MR_ERR_CMD}, mr, flags, pd, addr,
               length, access);
}

WEFT_EXPORT int ibv_dereg_mr(ibv_mr* mr) {
  if (weft::verbs::is_card_carrier(mr)) return weft::verbs::dereg_card_carrier(mr);
  WEFT_FORWARD(mr->context, dereg_mr, ibv_dereg_mr, ENOSYS, mr);
}

// ---- completion queues -------------------------------------------------------------------------

WEFT_EXPORT ibv_comp_channel* ibv_create_comp_channel(ibv_context* context) {
  WEFT_FORWARD(context, create_comp_channel, ibv_create_comp_channel,
               static_cast<ibv_comp_channel*>(nullptr), context);
}

WEFT_EXPORT int ibv_destroy_comp_channel(ibv_comp_channel* channel) {
  WEFT_FORWARD(channel->context, destroy_comp_channel, ibv_destroy_comp_channel, ENOSYS, channel);
}

WEFT_EXPORT ibv_cq* ibv_create_cq(ibv_context* context, int entries, void* cq_context,
                                  ibv_comp_channel* channel, int vector) {
  WEFT_FORWARD(context, create_cq, ibv_create_cq, static_cast<ibv_cq*>(nullptr), context, entries,
               cq_context, channel, vector);
}

WEFT_EXPORT int ibv_resize_cq(ibv_cq* cq, int entries) {
  WEFT_FORWARD(cq->context, resize_cq, ibv_resize_cq, ENOSYS, cq, entries);
}

WEFT_EXPORT int ibv_destroy_cq(ibv_cq* cq) {
  WEFT_FORWARD(cq->context, destroy_cq, ibv_destroy_cq, ENOSYS, cq);
}

WEFT_EXPORT int ibv_get_cq_event(ibv_comp_channel* channel, ibv_cq** cq, void** cq_context) {
  WEFT_FORWARD(channel->context, get_cq_event, ibv_get_cq_event, -1, channel, cq, cq_context);
}

WEFT_EXPORT void ibv_ack_cq_events(ibv_cq* cq, unsigned count) {
  static const Real<decltype(ibv_ack_cq_events)> real("ibv_ack_cq_events");
  if (is_ours(cq->context)) {
    weft::verbs::ack_cq_events(cq, count);
  } else {
    real.call(cq, count);
  }
}

// ---- shared receive queues ---------------------------------------------------------------------

WEFT_EXPORT ibv_srq* ibv_create_srq(ibv_pd* pd, ibv_srq_init_attr* attr) {
  WEFT_FORWARD(pd->context, create_srq, ibv_create_srq, static_cast<ibv_srq*>(nullptr), pd, attr);
}

WEFT_EXPORT int ibv_modify_srq(ibv_srq* srq, ibv_srq_attr* attr, int mask) {
  WEFT_FORWARD(srq->context, modify_srq, ibv_modify_srq, ENOSYS, srq, attr, mask);
}

WEFT_EXPORT int ibv_query_srq(ibv_srq* srq, ibv_srq_attr* attr) {
  WEFT_FORWARD(srq->context, query_srq, ibv_query_srq, ENOSYS, srq, attr);
}

WEFT_EXPORT int ibv_destroy_srq(ibv_srq* srq) {
  WEFT_FORWARD(srq->context, destroy_srq, ibv_destroy_srq, ENOSYS, srq);
}

// ---- queue pairs -------------------------------------------------------------------------------

WEFT_EXPORT ibv_qp* ibv_create_qp(ibv_pd* pd, ibv_qp_init_attr* attr) {
  WEFT_FORWARD(pd->context, create_qp, ibv_create_qp, static_cast<ibv_qp*>(nullptr), pd, attr);
}

WEFT_EXPORT ibv_qp_ex* ibv_qp_to_qp_ex(ibv_qp* qp) {
  static const Real<decltype(ibv_qp_to_qp_ex)> real("ibv_qp_to_qp_ex");
  if (!is_ours(qp->context)) return real.or_else(static_cast<ibv_qp_ex*>(nullptr), qp);
  auto& ours = weft::verbs::QueuePair::of(qp);
  return ours.builder ? &ours : nullptr;
}

WEFT_EXPORT int ibv_modify_qp(ibv_qp* qp, ibv_qp_attr* attr, int mask) {
  WEFT_FORWARD(qp->context, modify_qp, ibv_modify_qp, ENOSYS, qp, attr, mask);
}

WEFT_EXPORT int ibv_query_qp(ibv_qp* qp, ibv_qp_attr* attr, int mask, ibv_qp_init_attr* init) {
  WEFT_FORWARD(qp->context, query_qp, ibv_query_qp, ENOSYS, qp, attr, mask, init);
}

WEFT_EXPORT int ibv_destroy_qp(ibv_qp* qp) {
  WEFT_FORWARD(qp->context, destroy_qp, ibv_destroy_qp, ENOSYS, qp);
}

WEFT_EXPORT int ibv_query_qp_data_in_order(ibv_qp* qp, ibv_wr_opcode opcode, std::uint32_t flags) {
  static const Real<decltype(ibv_query_qp_data_in_order)> real("ibv_query_qp_data_in_order");
  if (!is_ours(qp->context)) return real.or_else(0, qp, opcode, flags);
  return 0;  // within one piece memcpy() has its own order
}

// Enhanced connection establishment: the device has no options to agree on.
WEFT_EXPORT int ibv_query_ece(ibv_qp* qp, ibv_ece* ece) {
  static const Real<decltype(ibv_query_ece)> real("ibv_query_ece");
  if (!is_ours(qp->context)) return real.or_else(ENOSYS, qp, ece);
  *ece = {};
  return 0;
}

WEFT_EXPORT int ibv_set_ece(ibv_qp* qp, ibv_ece* ece) {
  static const Real<decltype(ibv_set_ece)> real("ibv_set_ece");
  if (!is_ours(qp->context)) return real.or_else(ENOSYS, qp, ece);
  return ece->vendor_id == 0 ? 0 : EOPNOTSUPP;
}

// ---- addresses and multicast -------------------------------------------------------------------

WEFT_EXPORT ibv_ah* ibv_create_ah(ibv_pd* pd, ibv_ah_attr* attr) {
  WEFT_FORWARD(pd->context, create_ah, ibv_create_ah, static_cast<ibv_ah*>(nullptr), pd, attr);
}

WEFT_EXPORT int ibv_init_ah_from_wc(ibv_context* context, std::uint8_t port, ibv_wc* wc,
                                    ibv_grh* grh, ibv_ah_attr* attr) {
  WEFT_FORWARD(context, init_ah_from_wc, ibv_init_ah_from_wc, ENOSYS, context, port, wc, grh, attr);
}

WEFT_EXPORT ibv_ah* ibv_create_ah_from_wc(ibv_pd* pd, ibv_wc* wc, ibv_grh* grh, std::uint8_t port) {
  static const Real<decltype(ibv_create_ah_from_wc)> real("ibv_create_ah_from_wc");
  if (!is_ours(pd->context)) {
    return real.or_else(static_cast<ibv_ah*>(nullptr), pd, wc, grh, port);
  }
  ibv_ah_attr attr;
  weft::verbs::init_ah_from_wc(pd->context, port, wc, grh, &attr);
  return weft::verbs::create_ah(pd, &attr);
}

WEFT_EXPORT int ibv_destroy_ah(ibv_ah* ah) {
  WEFT_FORWARD(ah->context, destroy_ah, ibv_destroy_ah, ENOSYS, ah);
}

WEFT_EXPORT int ibv_attach_mcast(ibv_qp* qp, const ibv_gid* gid, std::uint16_t lid) {
  static const Real<decltype(ibv_attach_mcast)> real("ibv_attach_mcast");
  return is_ours(qp->context) ? EOPNOTSUPP : real.or_else(ENOSYS, qp, gid, lid);
}

WEFT_EXPORT int ibv_detach_mcast(ibv_qp* qp, const ibv_gid* gid, std::uint16_t lid) {
  static const Real<decltype(ibv_detach_mcast)> real("ibv_detach_mcast");
  return is_ours(qp->context) ? EOPNOTSUPP : real.or_else(ENOSYS, qp, gid, lid);
}
