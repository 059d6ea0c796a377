// Endpoint of weft: a link to one other context.
//
// Every call that sends has the same shape: nothing may pass a request that waits already; then the
// link is tried; then, out of line, it is found out why there was no room.
#pragma once

#include <memory>

#include "hca/emu/link.hpp"
#include "ucx-tl/flush_tracker.hpp"
#include "ucx-tl/pending_queue.hpp"
#include "ucx-tl/shared_access.hpp"
#include "ucx-tl/weft_iface.hpp"

namespace weft::ucx::wire {

struct Ep : abi::BaseEp {
  hca::emu::Link* link = nullptr;
  bool blocked = false;  ///< requests are pending, and it is not their turn
  bool is_failed = false;
  bool is_zombie = false;
  std::uint32_t pins = 0;  ///< calls on the stack that go on to use this object
  Iface* iface = nullptr;
  FlushTracker flushes;
  PendingQueue pending;
  WireOperation* stalled = nullptr;  ///< a put_bcopy, packed, that found no room
  std::shared_ptr<hca::emu::Link> link_owner;
  SharedAccess shared;
};

inline Ep* ep_of(uct_ep_h ep) {
  return static_cast<Ep*>(reinterpret_cast<abi::BaseEp*>(ep));
}

// weft_ep.cpp
ucs_status_t ep_create(const uct_ep_params_t* params, uct_ep_h* ep);
void ep_destroy(uct_ep_h ep);
ucs_status_t ep_pending_add(uct_ep_h ep, uct_pending_req_t* request, unsigned flags);
void ep_pending_purge(uct_ep_h ep, uct_pending_purge_callback_t callback, void* arg);
ucs_status_t ep_flush(uct_ep_h ep, unsigned flags, uct_completion_t* comp);
ucs_status_t ep_fence(uct_ep_h ep, unsigned flags);
ucs_status_t ep_check(uct_ep_h ep, unsigned flags, uct_completion_t* comp);
/// Why a link took nothing: UCS_ERR_NO_RESOURCE, or the peer is dead.
ucs_status_t why_no_room(Ep* ep) noexcept;
/// Enters the endpoint among those whose requests wait for progress.
void wait_for_turn(Ep* ep);
/// Has UCX told, from the next progress, that the endpoint failed.
void fail(Ep* ep) noexcept;
/// Posts the stalled put_bcopy; false when there is no room still. (weft_rma.cpp)
bool post_stalled(Ep* ep);
/// Retries pending requests, in order, as far as there is room.
unsigned dispatch_pending(Iface* iface);
/// Tells UCX of failed endpoints.
unsigned report_failures(Iface* iface);
/// An operation of the endpoint is complete: counts it and completes what waited for it.
void operation_done(WireOperation* op, ucs_status_t status);

// weft_am.cpp
ucs_status_t ep_am_short(uct_ep_h ep, std::uint8_t id, std::uint64_t header, const void* payload,
                         unsigned length);
ucs_status_t ep_am_short_iov(uct_ep_h ep, std::uint8_t id, const uct_iov_t* iov,
                             std::size_t iovcnt);
ssize_t ep_am_bcopy(uct_ep_h ep, std::uint8_t id, uct_pack_callback_t pack, void* arg,
                    unsigned flags);
ucs_status_t ep_am_zcopy(uct_ep_h ep, std::uint8_t id, const void* header, unsigned header_length,
                         const uct_iov_t* iov, std::size_t iovcnt, unsigned flags,
                         uct_completion_t* comp);

// weft_rma.cpp
ucs_status_t ep_put_short(uct_ep_h ep, const void* buffer, unsigned length,
                          std::uint64_t remote_addr, uct_rkey_t rkey);
ssize_t ep_put_bcopy(uct_ep_h ep, uct_pack_callback_t pack, void* arg, std::uint64_t remote_addr,
                     uct_rkey_t rkey);
ucs_status_t ep_put_zcopy(uct_ep_h ep, const uct_iov_t* iov, std::size_t iovcnt,
                          std::uint64_t remote_addr, uct_rkey_t rkey, uct_completion_t* comp);
ucs_status_t ep_get_bcopy(uct_ep_h ep, uct_unpack_callback_t unpack, void* arg, std::size_t length,
                          std::uint64_t remote_addr, uct_rkey_t rkey, uct_completion_t* comp);
ucs_status_t ep_get_zcopy(uct_ep_h ep, const uct_iov_t* iov, std::size_t iovcnt,
                          std::uint64_t remote_addr, uct_rkey_t rkey, uct_completion_t* comp);

// weft_atomic.cpp
inline constexpr std::uint64_t atomic_post_ops =
    UCS_BIT(UCT_ATOMIC_OP_ADD) | UCS_BIT(UCT_ATOMIC_OP_AND) | UCS_BIT(UCT_ATOMIC_OP_OR) |
    UCS_BIT(UCT_ATOMIC_OP_XOR);
inline constexpr std::uint64_t atomic_fetch_ops =
    atomic_post_ops | UCS_BIT(UCT_ATOMIC_OP_SWAP) | UCS_BIT(UCT_ATOMIC_OP_CSWAP);
ucs_status_t ep_atomic32_post(uct_ep_h ep, unsigned code, std::uint32_t value,
                              std::uint64_t remote_addr, uct_rkey_t rkey);
ucs_status_t ep_atomic64_post(uct_ep_h ep, unsigned code, std::uint64_t value,
                              std::uint64_t remote_addr, uct_rkey_t rkey);
ucs_status_t ep_atomic32_fetch(uct_ep_h ep, unsigned code, std::uint32_t value,
                               std::uint32_t* result, std::uint64_t remote_addr, uct_rkey_t rkey,
                               uct_completion_t* comp);
ucs_status_t ep_atomic64_fetch(uct_ep_h ep, unsigned code, std::uint64_t value,
                               std::uint64_t* result, std::uint64_t remote_addr, uct_rkey_t rkey,
                               uct_completion_t* comp);
ucs_status_t ep_atomic_cswap32(uct_ep_h ep, std::uint32_t compare, std::uint32_t swap,
                               std::uint64_t remote_addr, uct_rkey_t rkey, std::uint32_t* result,
                               uct_completion_t* comp);
ucs_status_t ep_atomic_cswap64(uct_ep_h ep, std::uint64_t compare, std::uint64_t swap,
                               std::uint64_t remote_addr, uct_rkey_t rkey, std::uint64_t* result,
                               uct_completion_t* comp);

}  // namespace weft::ucx::wire
