// Active messages.
#include <ucs/debug/log_def.h>

#include <algorithm>
#include <cstring>

#include "ucx-tl/weft_ep.hpp"
#include "ucx-tl/window_copy.hpp"

namespace weft::ucx::wire {

using hca::emu::WireLimits;

ucs_status_t ep_am_short(uct_ep_h uct_ep, std::uint8_t id, std::uint64_t header,
                         const void* payload, unsigned length) {
  Ep* ep = ep_of(uct_ep);
  if (ep->blocked) [[unlikely]] {
    return UCS_ERR_NO_RESOURCE;
  }
  if (ep->link->am_short(id, header, payload, length)) [[likely]] {
    return UCS_OK;
  }
  return why_no_room(ep);
}

ucs_status_t ep_am_short_iov(uct_ep_h uct_ep, std::uint8_t id, const uct_iov_t* iov,
                             std::size_t iovcnt) {
  Ep* ep = ep_of(uct_ep);
  if (ep->blocked) [[unlikely]] {
    return UCS_ERR_NO_RESOURCE;
  }
  std::byte* room = ep->link->am_reserve(WireLimits::max_short);
  if (room == nullptr) [[unlikely]] {
    return why_no_room(ep);
  }
  std::size_t length = 0;
  for (std::size_t i = 0; i < iovcnt; ++i) {
    std::memcpy(room + length, iov[i].buffer, iov[i].length);
    length += iov[i].length;
  }
  ep->link->am_commit(id, length);
  return UCS_OK;
}

ssize_t ep_am_bcopy(uct_ep_h uct_ep, std::uint8_t id, uct_pack_callback_t pack, void* arg,
                    unsigned) {
  Ep* ep = ep_of(uct_ep);
  if (ep->blocked) [[unlikely]] {
    return UCS_ERR_NO_RESOURCE;
  }
  std::byte* room = ep->link->am_reserve(WireLimits::max_bcopy);
  if (room == nullptr) [[unlikely]] {
    return why_no_room(ep);
  }
  const std::size_t length = pack(room, arg);
  ep->link->am_commit(id, length);
  return static_cast<ssize_t>(length);
}

// The bytes go straight from the window or buffer into the slot that the peer reads: that is one
// copy, as many as a bcopy of host memory has, and the buffer is free again at once.
ucs_status_t ep_am_zcopy(uct_ep_h uct_ep, std::uint8_t id, const void* header,
                         unsigned header_length, const uct_iov_t* iov, std::size_t iovcnt, unsigned,
                         uct_completion_t*) {
  Ep* ep = ep_of(uct_ep);
  if (ep->blocked) [[unlikely]] {
    return UCS_ERR_NO_RESOURCE;
  }
  std::size_t total = header_length;
  for (std::size_t i = 0; i < iovcnt; ++i) total += iov[i].length * iov[i].count;
  if (total > WireLimits::max_zcopy) [[unlikely]] {
    ucs_error("weft: an active message of %zu bytes is longer than %zu", total,
              WireLimits::max_zcopy);
    return UCS_ERR_INVALID_PARAM;
  }
  std::byte* room = ep->link->am_reserve(total);
  if (room == nullptr) [[unlikely]] {
    return why_no_room(ep);
  }
  std::memcpy(room, header, header_length);
  std::size_t length = header_length;
  for (std::size_t i = 0; i < iovcnt; ++i) {
    const std::size_t bytes = iov[i].length * iov[i].count;
    if (!copy_bytes(room + length, iov[i].buffer, bytes)) [[unlikely]] {
      ep->link->am_abandon();
      ucs_error("weft: window at %p is not bound or has less than %zu bytes", iov[i].buffer, bytes);
      return UCS_ERR_INVALID_ADDR;
    }
    length += bytes;
  }
  ep->link->am_commit(id, length);
  return UCS_OK;
}

}  // namespace weft::ucx::wire
