#include "verbs/protection_domain.hpp"

#include <cerrno>

#include "verbs/context.hpp"
#include "verbs/log.hpp"

namespace weft::verbs {

namespace {

std::unique_ptr<ProtectionDomain> make(ibv_context* context) {
  auto pd = std::make_unique<ProtectionDomain>();
  pd->context = context;
  Context::of(context).retain();
  return pd;
}

}  // namespace

ibv_pd* alloc_pd(ibv_context* context) {
  return guarded_pointer("ibv_alloc_pd", [&]() -> ibv_pd* {
    auto core = std::make_shared<hca::emu::ProtectionDomain>(*Context::of(context).core);
    auto pd = make(context);
    pd->core = std::move(core);
    pd->handle = pd->core->number();
    return pd.release();
  });
}

int dealloc_pd(ibv_pd* which) {
  auto& pd = ProtectionDomain::of(which);
  return guarded("ibv_dealloc_pd", [&] {
    if (pd.users != 0) refuse(EBUSY, std::to_string(pd.users) + " objects are in the domain");
    if (pd.parent_of != nullptr) --pd.parent_of->users;
    if (pd.thread_domain != nullptr) --static_cast<ThreadDomain*>(pd.thread_domain)->users;
    auto& owner = Context::of(pd.context);
    delete &pd;
    owner.release();
  });
}

ibv_pd* alloc_parent_domain(ibv_context* context, ibv_parent_domain_init_attr* attr) {
  return guarded_pointer("ibv_alloc_parent_domain", [&]() -> ibv_pd* {
    constexpr std::uint32_t known =
        IBV_PARENT_DOMAIN_INIT_ATTR_ALLOCATORS | IBV_PARENT_DOMAIN_INIT_ATTR_PD_CONTEXT;
    if ((attr->comp_mask & ~known) != 0) {
      refuse(EOPNOTSUPP, "comp_mask " + std::to_string(attr->comp_mask) + ", known are " +
                             std::to_string(known));
    }
    if (attr->pd == nullptr) refuse(EINVAL, "a parent domain needs a PD");
    auto& from = ProtectionDomain::of(attr->pd);
    auto pd = make(context);
    pd->core = from.core;
    pd->handle = from.handle;
    pd->parent_of = &from;
    pd->thread_domain = attr->td;
    ++from.users;
    if (attr->td != nullptr) ++static_cast<ThreadDomain*>(attr->td)->users;
    return pd.release();
  });
}

ibv_td* alloc_td(ibv_context* context, ibv_td_init_attr* attr) {
  return guarded_pointer("ibv_alloc_td", [&]() -> ibv_td* {
    if (attr->comp_mask != 0) refuse(EOPNOTSUPP, "unknown comp_mask");
    auto td = std::make_unique<ThreadDomain>();
    td->context = context;
    Context::of(context).retain();
    return td.release();
  });
}

int dealloc_td(ibv_td* which) {
  auto* td = static_cast<ThreadDomain*>(which);
  return guarded("ibv_dealloc_td", [&] {
    if (td->users != 0) refuse(EBUSY, "parent domains use the thread domain");
    auto& owner = Context::of(td->context);
    delete td;
    owner.release();
  });
}

}  // namespace weft::verbs
