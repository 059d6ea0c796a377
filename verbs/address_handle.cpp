#include "verbs/address_handle.hpp"

#include <cerrno>
#include <memory>

#include "verbs/context.hpp"
#include "verbs/log.hpp"
#include "verbs/protection_domain.hpp"

namespace weft::verbs {

ibv_ah* create_ah(ibv_pd* pd, ibv_ah_attr* attr) {
  return guarded_pointer("ibv_create_ah", [&]() -> ibv_ah* {
    check_address(*attr);
    auto ah = std::make_unique<AddressHandle>();
    ah->context = pd->context;
    ah->pd = pd;
    ah->handle = 0;
    ah->reachable = names_us(Context::of(pd->context), *attr);
    ++ProtectionDomain::of(pd).users;
    return ah.release();
  });
}

int destroy_ah(ibv_ah* which) {
  auto& ah = AddressHandle::of(which);
  --ProtectionDomain::of(ah.pd).users;
  delete &ah;
  return 0;
}

int init_ah_from_wc(ibv_context*, std::uint8_t port, const ibv_wc* wc, const ibv_grh* grh,
                    ibv_ah_attr* attr) {
  *attr = {};
  attr->dlid = wc->slid;
  attr->sl = wc->sl;
  attr->src_path_bits = wc->dlid_path_bits;
  attr->port_num = port;
  if ((wc->wc_flags & IBV_WC_GRH) != 0 && grh != nullptr) {
    attr->is_global = 1;
    attr->grh.dgid = grh->sgid;
    attr->grh.hop_limit = 0xff;
  }
  return 0;
}

}  // namespace weft::verbs
