// What the interface can do, and what UCX is to think of its speed.
#include <climits>

#include "ucx-tl/weft_ep.hpp"
#include "ucx-tl/weft_iface.hpp"

namespace weft::ucx::wire {

using hca::emu::WireLimits;

ucs_status_t iface_query(uct_iface_h uct_iface, uct_iface_attr_t* attr) {
  Iface* iface = iface_of(uct_iface);
  abi::uct_base_iface_query(iface, attr);
  attr->device_addr_len = sizeof(hca::emu::Address::host);
  attr->iface_addr_len = sizeof(hca::emu::Address);
  attr->cap.flags = UCT_IFACE_FLAG_CONNECT_TO_IFACE | UCT_IFACE_FLAG_CB_SYNC |
                    UCT_IFACE_FLAG_PENDING | UCT_IFACE_FLAG_AM_SHORT | UCT_IFACE_FLAG_AM_BCOPY |
                    UCT_IFACE_FLAG_AM_ZCOPY | UCT_IFACE_FLAG_PUT_SHORT | UCT_IFACE_FLAG_PUT_BCOPY |
                    UCT_IFACE_FLAG_PUT_ZCOPY | UCT_IFACE_FLAG_GET_BCOPY | UCT_IFACE_FLAG_GET_ZCOPY |
                    UCT_IFACE_FLAG_ATOMIC_CPU | UCT_IFACE_FLAG_ERRHANDLE_PEER_FAILURE |
                    UCT_IFACE_FLAG_EP_CHECK;
  attr->cap.event_flags =
      UCT_IFACE_FLAG_EVENT_SEND_COMP | UCT_IFACE_FLAG_EVENT_RECV | UCT_IFACE_FLAG_EVENT_FD;

  attr->cap.am.max_short = WireLimits::max_short;
  attr->cap.am.max_bcopy = WireLimits::max_bcopy;
  attr->cap.am.max_zcopy = WireLimits::max_zcopy;
  attr->cap.am.max_hdr = 256;
  attr->cap.am.max_iov = 16;
  attr->cap.am.opt_zcopy_align = 1;
  attr->cap.am.align_mtu = 1;

  attr->cap.put.max_short = WireLimits::max_write_short;
  attr->cap.put.max_bcopy = OperationPool::staging_bytes;
  attr->cap.put.max_zcopy = SIZE_MAX;
  attr->cap.put.max_iov = 1;
  attr->cap.put.opt_zcopy_align = 1;
  attr->cap.put.align_mtu = 1;

  attr->cap.get.max_bcopy = OperationPool::staging_bytes;
  attr->cap.get.max_zcopy = SIZE_MAX;
  attr->cap.get.max_iov = 1;
  attr->cap.get.opt_zcopy_align = 1;
  attr->cap.get.align_mtu = 1;

  attr->cap.atomic32.op_flags = attr->cap.atomic64.op_flags = atomic_post_ops;
  attr->cap.atomic32.fop_flags = attr->cap.atomic64.fop_flags = atomic_fetch_ops;

  attr->latency = {.c = iface->latency, .m = 0};
  attr->bandwidth = {.dedicated = iface->bandwidth, .shared = 0};
  attr->overhead = iface->overhead;
  return UCS_OK;
}

}  // namespace weft::ucx::wire
