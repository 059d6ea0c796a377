// Protection domains, parent domains, thread domains.
#pragma once

#include <infiniband/verbs.h>

#include <atomic>
#include <memory>

#include "hca/emu/protection_domain.hpp"

namespace weft::verbs {

struct ProtectionDomain : ibv_pd {
  static ProtectionDomain& of(ibv_pd* pd) noexcept { return *static_cast<ProtectionDomain*>(pd); }

  std::shared_ptr<hca::emu::ProtectionDomain> core;
  ProtectionDomain* parent_of = nullptr;  ///< of a parent domain: the PD it was made from
  ibv_td* thread_domain = nullptr;
  std::atomic<int> users{0};  ///< MRs, MWs, QPs, SRQs, AHs and parent domains in it
};

struct ThreadDomain : ibv_td {
  std::atomic<int> users{0};
};

ibv_pd* alloc_pd(ibv_context* context);
int dealloc_pd(ibv_pd* pd);
ibv_pd* alloc_parent_domain(ibv_context* context, ibv_parent_domain_init_attr* attr);
ibv_td* alloc_td(ibv_context* context, ibv_td_init_attr* attr);
int dealloc_td(ibv_td* td);

}  // namespace weft::verbs
