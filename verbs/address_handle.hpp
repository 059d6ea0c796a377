// Address handles: where a datagram goes.
#pragma once

#include <infiniband/verbs.h>

#include <cstdint>

namespace weft::verbs {

struct AddressHandle : ibv_ah {
  static AddressHandle& of(ibv_ah* ah) noexcept { return *static_cast<AddressHandle*>(ah); }

  bool reachable = false;  ///< it names this device's port
};

ibv_ah* create_ah(ibv_pd* pd, ibv_ah_attr* attr);
int destroy_ah(ibv_ah* ah);
/// The attributes for an answer to a received datagram. Returns an errno value.
int init_ah_from_wc(ibv_context* context, std::uint8_t port, const ibv_wc* wc, const ibv_grh* grh,
                    ibv_ah_attr* attr);

}  // namespace weft::verbs
