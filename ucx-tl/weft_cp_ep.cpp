#include <ucs/debug/log_def.h>

#include <cinttypes>
#include <new>

#include "ucx-tl/weft_cp.hpp"
#include "ucx-tl/window_copy.hpp"

namespace weft::ucx::cp {
namespace {

[[gnu::cold, gnu::noinline]] ucs_status_t no_such_window(const void* to, const void* from,
                                                         std::size_t length) {
  ucs_error("weft_cp: cannot copy %zu bytes from %p to %p: a window is not bound or too small",
            length, from, to);
  return UCS_ERR_INVALID_ADDR;
}

ucs_status_t checked_copy(void* to, const void* from, std::size_t length) {
  if (copy_bytes(to, from, length)) [[likely]] {
    return UCS_OK;
  }
  return no_such_window(to, from, length);
}

void* pointer(std::uint64_t address) {
  return reinterpret_cast<void*>(address);
}

}  // namespace

ucs_status_t ep_create(const uct_ep_params_t* params, uct_ep_h* ep) {
  auto* self = new (std::nothrow) Ep;
  if (self == nullptr) return UCS_ERR_NO_MEMORY;
  const ucs_status_t status =
      abi::init_base_ep(self, reinterpret_cast<abi::BaseIface*>(params->iface));
  if (status != UCS_OK) {
    delete self;
    return status;
  }
  *ep = &self->super;
  return UCS_OK;
}

void ep_destroy(uct_ep_h ep) {
  auto* self = reinterpret_cast<Ep*>(ep);
  abi::cleanup_base_ep(self);
  delete self;
}

ucs_status_t ep_put_short(uct_ep_h, const void* buffer, unsigned length, std::uint64_t remote_addr,
                          uct_rkey_t) {
  return checked_copy(pointer(remote_addr), buffer, length);
}

ucs_status_t ep_get_short(uct_ep_h, void* buffer, unsigned length, std::uint64_t remote_addr,
                          uct_rkey_t) {
  return checked_copy(buffer, pointer(remote_addr), length);
}

ucs_status_t ep_put_zcopy(uct_ep_h, const uct_iov_t* iov, std::size_t iovcnt,
                          std::uint64_t remote_addr, uct_rkey_t, uct_completion_t*) {
  for (std::size_t i = 0; i < iovcnt; ++i) {
    const std::size_t length = iov[i].length * iov[i].count;
    const ucs_status_t status = checked_copy(pointer(remote_addr), iov[i].buffer, length);
    if (status != UCS_OK) return status;
    remote_addr += length;
  }
  return UCS_OK;
}

ucs_status_t ep_get_zcopy(uct_ep_h, const uct_iov_t* iov, std::size_t iovcnt,
                          std::uint64_t remote_addr, uct_rkey_t, uct_completion_t*) {
  for (std::size_t i = 0; i < iovcnt; ++i) {
    const std::size_t length = iov[i].length * iov[i].count;
    const ucs_status_t status = checked_copy(iov[i].buffer, pointer(remote_addr), length);
    if (status != UCS_OK) return status;
    remote_addr += length;
  }
  return UCS_OK;
}

}  // namespace weft::ucx::cp
