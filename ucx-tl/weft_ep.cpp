// Endpoints: creation and end, pending requests, flush and fence, failure.
#include "ucx-tl/weft_ep.hpp"

#include <ucs/debug/log_def.h>

#include <algorithm>
#include <cstring>
#include <utility>

#include "ucx-tl/weft_status.hpp"

namespace weft::ucx::wire {

namespace {

/// Keeps an endpoint from being deleted while a callback of UCX's runs that may destroy it.
class Pin {
 public:
  explicit Pin(Ep* ep) noexcept : ep_(ep) { ++ep->pins; }
  ~Pin() {
    --ep_->pins;
    bury(ep_);
  }
  Pin(const Pin&) = delete;
  Pin& operator=(const Pin&) = delete;

  /// Deletes a destroyed endpoint once nothing points to it.
  static void bury(Ep* ep) {
    if (!ep->is_zombie || ep->pins != 0 || ep->flushes.outstanding() != 0) return;
    std::erase(ep->iface->zombies, ep);
    delete ep;
  }

 private:
  Ep* ep_;
};

}  // namespace

ucs_status_t ep_create(const uct_ep_params_t* params, uct_ep_h* ep) {
  constexpr std::uint64_t needed = UCT_EP_PARAM_FIELD_DEV_ADDR | UCT_EP_PARAM_FIELD_IFACE_ADDR;
  if ((params->field_mask & needed) != needed) {
    ucs_error("weft: an endpoint needs the peer's device and interface address");
    return UCS_ERR_INVALID_PARAM;
  }
  Iface* iface = iface_of(params->iface);
  hca::emu::Address peer;
  std::memcpy(&peer, params->iface_addr, sizeof peer);
  auto self = std::make_unique<Ep>();
  self->iface = iface;
  try {
    self->link_owner = iface->context->connect(peer);
  } catch (const hca::Error& error) {
    ucs_diag("weft: cannot connect to process %u: %s", peer.pid, error.what());
    return status_of(error);
  }
  self->link = self->link_owner.get();
  const ucs_status_t status = abi::init_base_ep(self.get(), iface);
  if (status != UCS_OK) return status;
  iface->eps.push_back(self.get());
  *ep = &self.release()->super;
  return UCS_OK;
}

void ep_destroy(uct_ep_h uct_ep) {
  Ep* ep = ep_of(uct_ep);
  Iface* iface = ep->iface;
  std::erase(iface->eps, ep);
  std::erase(iface->waiting, ep);
  std::erase(iface->failed, ep);
  abi::cleanup_base_ep(ep);
  ep->is_zombie = true;
  ep->blocked = true;
  iface->zombies.push_back(ep);
  if (ep->stalled != nullptr) operation_done(std::exchange(ep->stalled, nullptr), UCS_ERR_CANCELED);
  Pin::bury(ep);
}

// ---- pending requests ---------------------------------------------------------------------------

void wait_for_turn(Ep* ep) {
  ep->blocked = true;
  std::vector<Ep*>& waiting = ep->iface->waiting;
  if (std::find(waiting.begin(), waiting.end(), ep) == waiting.end()) waiting.push_back(ep);
}

// There may be room again by now, but the next progress finds that out as well.
ucs_status_t ep_pending_add(uct_ep_h uct_ep, uct_pending_req_t* request, unsigned) {
  Ep* ep = ep_of(uct_ep);
  ep->pending.push_back(request);
  wait_for_turn(ep);
  return UCS_OK;
}

void ep_pending_purge(uct_ep_h uct_ep, uct_pending_purge_callback_t callback, void* arg) {
  Ep* ep = ep_of(uct_ep);
  const Pin pin(ep);
  while (!ep->pending.empty()) callback(ep->pending.pop_front(), arg);
  if (ep->stalled != nullptr || ep->is_zombie) return;
  ep->blocked = false;
  std::erase(ep->iface->waiting, ep);
}

namespace {

/// True when nothing of the endpoint waits any more.
bool dispatch(Ep* ep, unsigned* events) {
  const Pin pin(ep);
  if (ep->stalled != nullptr && !post_stalled(ep)) return false;
  while (!ep->pending.empty()) {
    uct_pending_req_t* request = ep->pending.pop_front();
    ep->blocked = false;  // it is their turn
    const ucs_status_t status = request->func(request);
    if (ep->is_zombie) return true;
    if (status == UCS_OK) {
      ++*events;
    } else {
      ep->pending.push_front(request);
      ep->blocked = true;
      if (UCS_STATUS_IS_ERR(status)) return false;  // UCS_INPROGRESS: part of it went, go on
    }
    if (ep->stalled != nullptr) {
      ep->blocked = true;
      return false;
    }
  }
  ep->blocked = false;
  return true;
}

}  // namespace

unsigned dispatch_pending(Iface* iface) {
  unsigned events = 0;
  // Callbacks may add and remove endpoints: work on a copy, and on those still in the list.
  const std::vector<Ep*> turn = iface->waiting;
  for (Ep* ep : turn) {
    const auto here = std::find(iface->waiting.begin(), iface->waiting.end(), ep);
    if (here == iface->waiting.end()) continue;
    if (dispatch(ep, &events)) std::erase(iface->waiting, ep);
  }
  return events;
}

// ---- flush, fence -------------------------------------------------------------------------------

ucs_status_t ep_flush(uct_ep_h uct_ep, unsigned, uct_completion_t* comp) {
  Ep* ep = ep_of(uct_ep);
  if (!ep->pending.empty() && ep->blocked) return UCS_ERR_NO_RESOURCE;
  if (ep->flushes.outstanding() == 0) return UCS_OK;
  if (comp != nullptr) ep->flushes.add(comp);
  return UCS_INPROGRESS;
}

ucs_status_t ep_fence(uct_ep_h uct_ep, unsigned) {
  ep_of(uct_ep)->link->fence();
  return UCS_OK;
}

void operation_done(WireOperation* op, ucs_status_t status) {
  Ep* ep = op->ep;
  uct_completion_t* comp = op->comp;
  OperationPool& pool = ep->iface->operations;
  if (op->staging != nullptr) pool.put_back_staging(op->staging);
  const bool flush_due = ep->flushes.finish(op->span);
  pool.put_back(op);
  if (status != UCS_OK) [[unlikely]] {
    if (status == UCS_ERR_ENDPOINT_TIMEOUT) {
      fail(ep);
    } else if (comp == nullptr && status != UCS_ERR_CANCELED) {
      ucs_error("weft: a put or atomic to process %u failed: %s", ep->link->peer().pid,
                ucs_status_string(status));
      fail(ep);
    }
  }
  if (comp == nullptr && !flush_due && !ep->is_zombie) [[likely]] {
    return;
  }
  const Pin pin(ep);
  if (comp != nullptr) complete(comp, status);
  if (flush_due) {
    while (uct_completion_t* due = ep->flushes.ready()) complete(due, UCS_OK);
  }
}

// ---- failure ------------------------------------------------------------------------------------

void fail(Ep* ep) noexcept {
  if (ep->is_failed || ep->is_zombie) return;
  ep->is_failed = true;
  ep->iface->failed.push_back(ep);
}

[[gnu::cold]] ucs_status_t why_no_room(Ep* ep) noexcept {
  if (ep->link->alive()) return UCS_ERR_NO_RESOURCE;
  fail(ep);
  return UCS_ERR_ENDPOINT_TIMEOUT;
}

ucs_status_t ep_check(uct_ep_h uct_ep, unsigned, uct_completion_t*) {
  Ep* ep = ep_of(uct_ep);
  if (!ep->link->alive() || !ep->link->check_alive()) fail(ep);
  return UCS_OK;
}

unsigned report_failures(Iface* iface) {
  unsigned events = 0;
  while (!iface->failed.empty()) {
    Ep* ep = iface->failed.back();
    iface->failed.pop_back();
    ucs_diag("weft: process %u is gone", ep->link->peer().pid);
    // An answer other than UCS_OK only says that nobody asked for error handling: its operations
    // have completed with an error, which is all that can be done.
    abi::uct_iface_handle_ep_err(&iface->super, &ep->super, UCS_ERR_ENDPOINT_TIMEOUT);
    ++events;
  }
  return events;
}

}  // namespace weft::ucx::wire
