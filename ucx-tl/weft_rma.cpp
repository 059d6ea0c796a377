// Put and get.
#include <ucs/debug/log_def.h>

#include <atomic>
#include <cstring>

#include "hca/emu/transfer.hpp"
#include "ucx-tl/weft_ep.hpp"
#include "ucx-tl/weft_status.hpp"
#include "ucx-tl/window.hpp"

namespace weft::ucx::wire {

using hca::WcStatus;
using hca::emu::LocalMemory;
using hca::emu::Operation;
using hca::emu::RemoteMemory;
using hca::emu::WireLimits;

namespace {

RemoteMemory remote_of(std::uint64_t addr, uct_rkey_t rkey) noexcept {
  return {.addr = addr, .rkey = static_cast<std::uint32_t>(rkey)};
}

/// A naturally aligned word is never seen in part.
void copy_word_or_bytes(std::byte* to, const void* from, unsigned length) noexcept {
  if (length == 8 && reinterpret_cast<std::uintptr_t>(to) % 8 == 0) {
    std::uint64_t word;
    std::memcpy(&word, from, 8);
    std::atomic_ref(*reinterpret_cast<std::uint64_t*>(to)).store(word, std::memory_order_release);
  } else {
    std::atomic_thread_fence(std::memory_order_release);
    std::memcpy(to, from, length);
  }
}

/// Before each operation: a dead link would complete it on the spot, before it is counted.
ucs_status_t may_post(Ep* ep) noexcept {
  if (ep->blocked) [[unlikely]] {
    return UCS_ERR_NO_RESOURCE;
  }
  return ep->link->alive() ? UCS_OK : why_no_room(ep);
}

WireOperation* begin(Ep* ep, uct_completion_t* comp, Operation::Done done) {
  WireOperation* op = ep->iface->operations.acquire();
  op->ep = ep;
  op->comp = comp;
  op->staging = nullptr;
  op->done = done;
  return op;
}

/// Counts the operation as under way; or gives it back and says why it is not.
ucs_status_t end(Ep* ep, WireOperation* op, bool posted) {
  if (posted) [[likely]] {
    op->span = ep->flushes.start();
    return UCS_INPROGRESS;
  }
  if (op->staging != nullptr) ep->iface->operations.put_back_staging(op->staging);
  ep->iface->operations.put_back(op);
  return why_no_room(ep);
}

void plain_done(Operation* self, WcStatus status) {
  operation_done(static_cast<WireOperation*>(self), status_of(status));
}

void get_bcopy_done(Operation* self, WcStatus status) {
  auto* op = static_cast<WireOperation*>(self);
  if (status == WcStatus::success) op->unpack(op->unpack_arg, op->staging, op->length);
  operation_done(op, status_of(status));
}

/// One entry at most: what the interface announces as max_iov.
bool local_of(const uct_iov_t* iov, std::size_t iovcnt, LocalMemory* local, std::size_t* length) {
  *length = iovcnt == 0 ? 0 : iov->length * iov->count;
  if (*length == 0) return true;
  if (iovcnt > 1) {
    ucs_error("weft: %zu buffers in one put or get, 1 is the limit", iovcnt);
    return false;
  }
  if (windows().contains(iov->buffer)) {
    const Resolved window = windows().resolve(iov->buffer);
    if (!window || window.offset + *length > window.layout->size()) {
      ucs_error("weft: window at %p is not bound or has less than %zu bytes", iov->buffer, *length);
      return false;
    }
    *local = {.base = window.base, .layout = window.layout, .offset = window.offset};
  } else {
    *local = {.base = static_cast<std::byte*>(iov->buffer), .layout = nullptr, .offset = 0};
  }
  return true;
}

}  // namespace

ucs_status_t ep_put_short(uct_ep_h uct_ep, const void* buffer, unsigned length,
                          std::uint64_t remote_addr, uct_rkey_t rkey) {
  Ep* ep = ep_of(uct_ep);
  if (const ucs_status_t status = may_post(ep); status != UCS_OK) [[unlikely]] {
    return status;
  }
  if (length == 0) return UCS_OK;
  if (std::byte* at = ep->shared.at(*ep->link, remote_addr, length, rkey)) {
    copy_word_or_bytes(at, buffer, length);
    return UCS_OK;
  }
  WireOperation* op = begin(ep, nullptr, plain_done);
  const ucs_status_t status =
      end(ep, op, ep->link->write_short(op, buffer, length, remote_of(remote_addr, rkey)));
  return status == UCS_INPROGRESS ? UCS_OK : status;
}

bool post_stalled(Ep* ep) {
  WireOperation* op = ep->stalled;
  const LocalMemory local{.base = op->staging, .layout = nullptr, .offset = 0};
  if (!ep->link->alive()) {
    ep->stalled = nullptr;
    operation_done(op, UCS_ERR_ENDPOINT_TIMEOUT);
    return true;
  }
  if (!ep->link->write(op, local, op->remote, op->length)) return false;
  ep->stalled = nullptr;
  return true;
}

// The callback may be called only when nothing can fail afterwards, and the length is known only
// then: what finds no room once it is packed waits in the endpoint, before all pending requests.
ssize_t ep_put_bcopy(uct_ep_h uct_ep, uct_pack_callback_t pack, void* arg,
                     std::uint64_t remote_addr, uct_rkey_t rkey) {
  Ep* ep = ep_of(uct_ep);
  if (const ucs_status_t status = may_post(ep); status != UCS_OK) [[unlikely]] {
    return status;
  }
  if (ep->link->outstanding() >= WireLimits::max_unacked) return UCS_ERR_NO_RESOURCE;
  std::byte* staging = ep->iface->operations.acquire_staging();
  if (staging == nullptr) return UCS_ERR_NO_RESOURCE;
  WireOperation* op = begin(ep, nullptr, plain_done);
  op->staging = staging;
  op->remote = remote_of(remote_addr, rkey);
  op->length = pack(staging, arg);
  const auto length = static_cast<ssize_t>(op->length);
  if (std::byte* at = ep->shared.at(*ep->link, remote_addr, op->length, rkey)) {
    std::memcpy(at, staging, op->length);
    ep->iface->operations.put_back_staging(staging);
    ep->iface->operations.put_back(op);
    return length;
  }
  op->span = ep->flushes.start();
  ep->stalled = op;
  if (!post_stalled(ep)) wait_for_turn(ep);
  return length;
}

ucs_status_t ep_put_zcopy(uct_ep_h uct_ep, const uct_iov_t* iov, std::size_t iovcnt,
                          std::uint64_t remote_addr, uct_rkey_t rkey, uct_completion_t* comp) {
  Ep* ep = ep_of(uct_ep);
  if (const ucs_status_t status = may_post(ep); status != UCS_OK) [[unlikely]] {
    return status;
  }
  LocalMemory local;
  std::size_t length;
  if (!local_of(iov, iovcnt, &local, &length)) return UCS_ERR_INVALID_PARAM;
  if (length == 0) return UCS_OK;
  ep->iface->puts.count(length);
  if (std::byte* at = ep->shared.at(*ep->link, remote_addr, length, rkey)) {
    hca::emu::gather(local, 0, {at, length});
    return UCS_OK;
  }
  WireOperation* op = begin(ep, comp, plain_done);
  return end(ep, op, ep->link->write(op, local, remote_of(remote_addr, rkey), length));
}

ucs_status_t ep_get_bcopy(uct_ep_h uct_ep, uct_unpack_callback_t unpack, void* arg,
                          std::size_t length, std::uint64_t remote_addr, uct_rkey_t rkey,
                          uct_completion_t* comp) {
  Ep* ep = ep_of(uct_ep);
  if (const ucs_status_t status = may_post(ep); status != UCS_OK) [[unlikely]] {
    return status;
  }
  if (length == 0) return UCS_OK;
  if (const std::byte* at = ep->shared.at(*ep->link, remote_addr, length, rkey)) {
    unpack(arg, at, length);
    return UCS_OK;
  }
  std::byte* staging = ep->iface->operations.acquire_staging();
  if (staging == nullptr) return UCS_ERR_NO_RESOURCE;
  WireOperation* op = begin(ep, comp, get_bcopy_done);
  op->staging = staging;
  op->unpack = unpack;
  op->unpack_arg = arg;
  const LocalMemory local{.base = staging, .layout = nullptr, .offset = 0};
  return end(ep, op, ep->link->read(op, local, remote_of(remote_addr, rkey), length));
}

ucs_status_t ep_get_zcopy(uct_ep_h uct_ep, const uct_iov_t* iov, std::size_t iovcnt,
                          std::uint64_t remote_addr, uct_rkey_t rkey, uct_completion_t* comp) {
  Ep* ep = ep_of(uct_ep);
  if (const ucs_status_t status = may_post(ep); status != UCS_OK) [[unlikely]] {
    return status;
  }
  LocalMemory local;
  std::size_t length;
  if (!local_of(iov, iovcnt, &local, &length)) return UCS_ERR_INVALID_PARAM;
  if (length == 0) return UCS_OK;
  ep->iface->gets.count(length);
  if (const std::byte* at = ep->shared.at(*ep->link, remote_addr, length, rkey)) {
    hca::emu::scatter(local, 0, {at, length});
    return UCS_OK;
  }
  WireOperation* op = begin(ep, comp, plain_done);
  return end(ep, op, ep->link->read(op, local, remote_of(remote_addr, rkey), length));
}

}  // namespace weft::ucx::wire
