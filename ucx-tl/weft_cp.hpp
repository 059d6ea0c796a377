// weft_cp: copies between windows and host memory inside a process, as UCX's cuda_copy does for its
// devices. UCX's eager protocols reach the bytes of a window through it. It needs no remote key,
// which keeps UCX from registering memory on every message.
#pragma once

#include "ucx-tl/abi/uct_1_13.h"

namespace weft::ucx::cp {

inline constexpr char name[] = "weft_cp";
static_assert(sizeof name <= UCT_TL_NAME_MAX);

struct Config {
  uct_iface_config super;
  double bandwidth;
};

struct Iface : abi::BaseIface {
  std::uint64_t id;  ///< its address: random, so that only the own process is reachable
  double bandwidth;
};

struct Ep : abi::BaseEp {};

// weft_cp_md.cpp
extern uct_component component;

// weft_cp_iface.cpp
extern abi::Transport transport;

// weft_cp_ep.cpp
ucs_status_t ep_create(const uct_ep_params_t* params, uct_ep_h* ep);
void ep_destroy(uct_ep_h ep);
ucs_status_t ep_put_short(uct_ep_h ep, const void* buffer, unsigned length,
                          std::uint64_t remote_addr, uct_rkey_t rkey);
ucs_status_t ep_get_short(uct_ep_h ep, void* buffer, unsigned length, std::uint64_t remote_addr,
                          uct_rkey_t rkey);
ucs_status_t ep_put_zcopy(uct_ep_h ep, const uct_iov_t* iov, std::size_t iovcnt,
                          std::uint64_t remote_addr, uct_rkey_t rkey, uct_completion_t* comp);
ucs_status_t ep_get_zcopy(uct_ep_h ep, const uct_iov_t* iov, std::size_t iovcnt,
                          std::uint64_t remote_addr, uct_rkey_t rkey, uct_completion_t* comp);

}  // namespace weft::ucx::cp
