#include "verbs/memory_window.hpp"

#include <algorithm>
#include <cerrno>
#include <memory>
#include <mutex>
#include <vector>

#include "hca/emu/domain.hpp"
#include "verbs/context.hpp"
#include "verbs/log.hpp"
#include "verbs/memory_region.hpp"
#include "verbs/protection_domain.hpp"
#include "verbs/queue_pair.hpp"

namespace weft::verbs {

namespace {

using hca::WcStatus;

hca::emu::Domain& domain_of(ibv_context* context) {
  return Context::of(context).core->domain();
}

/// Binds under the engine's lock; `qp` is the QP's index for type 2, 0 for type 1.
WcStatus bind(MemoryWindow& mw, std::uint32_t rkey, const ibv_mw_bind_info& info,
              hca::Access rights, std::uint16_t qp) {
  hca::emu::Domain& domain = domain_of(mw.context);
  const bool bound = domain.find(mw.key) != nullptr;
  if (qp != 0 && bound) return WcStatus::mw_bind_err;  // type 2 is invalidated first
  if (bound) domain.unbind(mw.key);
  mw.on = nullptr;
  if (info.length == 0) {
    mw.key = rkey;
    return WcStatus::success;
  }
  auto& mr = MemoryRegion::of(info.mr);
  const hca::emu::Region* under = domain.find(mr.core->lkey());
  if (under == nullptr || info.addr < under->addr || info.length > under->length ||
      info.addr - under->addr > under->length - info.length) {
    return WcStatus::mw_bind_err;
  }
  const std::uint64_t offset = info.addr - under->addr;
  hca::emu::Region region = *under;
  region.addr = (info.mw_access_flags & IBV_ACCESS_ZERO_BASED) != 0 ? 0 : info.addr;
  region.length = info.length;
  if (under->layout != nullptr) {
    region.layout = hca::Layout::slice(under->layout, offset, info.length);
  } else {
    region.base = under->base + offset;
  }
  region.access = rights;
  region.qp = qp;
  region.remote_only = true;
  domain.bind(rkey, std::move(region));
  mw.key = rkey;
  mw.on = &mr;
  return WcStatus::success;
}

hca::Access check_bind(const QueuePair& qp, const MemoryWindow& mw, const ibv_mw_bind_info& info) {
  if (mw.pd != qp.qp_base.pd) refuse(EINVAL, "window and QP are of two PDs");
  constexpr unsigned known = IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ |
                             IBV_ACCESS_REMOTE_ATOMIC | IBV_ACCESS_ZERO_BASED;
  if ((info.mw_access_flags & ~known) != 0) {
    refuse(EINVAL, "mw_access_flags " + std::to_string(info.mw_access_flags) + ", known are " +
                       std::to_string(known));
  }
  if (info.length == 0) return hca::Access::none;
  if (info.mr == nullptr || info.mr->pd != mw.pd) {
    refuse(EINVAL, "a window is bound to a region of its own PD");
  }
  const auto& mr = MemoryRegion::of(info.mr);
  if ((mr.access & IBV_ACCESS_MW_BIND) == 0) {
    refuse(EINVAL, "the region was registered without IBV_ACCESS_MW_BIND");
  }
  constexpr unsigned writes = IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_ATOMIC;
  if ((info.mw_access_flags & writes) != 0 && (mr.access & IBV_ACCESS_LOCAL_WRITE) == 0) {
    refuse(EINVAL, "a window that is written needs a region with local write");
  }
  return access_of((info.mw_access_flags & ~static_cast<unsigned>(IBV_ACCESS_ZERO_BASED)) |
                   IBV_ACCESS_LOCAL_WRITE) &
         (hca::Access::remote_write | hca::Access::remote_read | hca::Access::remote_atomic);
}

std::uint16_t index_of(const QueuePair& qp) {
  return static_cast<std::uint16_t>(qp.qp_base.qp_num & ((1u << hca::emu::qp_index_bits) - 1));
}

}  // namespace

ibv_mw* alloc_mw(ibv_pd* pd, ibv_mw_type type) {
  return guarded_pointer("ibv_alloc_mw", [&]() -> ibv_mw* {
    if (type != IBV_MW_TYPE_1 && type != IBV_MW_TYPE_2) {
      refuse(EINVAL, "window type " + std::to_string(type) + " is neither 1 nor 2");
    }
    auto mw = std::make_unique<MemoryWindow>();
    mw->context = pd->context;
    mw->pd = pd;
    mw->type = type;
    mw->key = domain_of(pd->context).reserve_key();
    mw->rkey = mw->key;
    mw->handle = mw->key;
    auto& owner = Context::of(pd->context);
    const std::scoped_lock guard(owner.core->domain().lock());
    owner.windows.push_back(mw.get());
    ++ProtectionDomain::of(pd).users;
    return mw.release();
  });
}

int dealloc_mw(ibv_mw* which) {
  auto& mw = MemoryWindow::of(which);
  {
    auto& owner = Context::of(mw.context);
    const std::scoped_lock guard(owner.core->domain().lock());
    std::erase(owner.windows, &mw);
  }
  domain_of(mw.context).release_key(mw.key);
  --ProtectionDomain::of(mw.pd).users;
  delete &mw;
  return 0;
}

int windows_on(const MemoryRegion& mr) {
  const auto& windows = Context::of(mr.context).windows;
  const hca::emu::Domain& domain = domain_of(mr.context);
  return static_cast<int>(std::count_if(
      windows.begin(), windows.end(),
      [&](const MemoryWindow* mw) { return mw->on == &mr && domain.find(mw->key) != nullptr; }));
}

int bind_mw(ibv_qp* which, ibv_mw* mw_of_type_1, ibv_mw_bind* bind_request) {
  auto& qp = QueuePair::of(which);
  auto& mw = MemoryWindow::of(mw_of_type_1);
  return guarded("ibv_bind_mw", [&] {
    const ibv_mw_bind_info info = bind_request->bind_info;
    const hca::Access rights = check_bind(qp, mw, info);
    const std::uint32_t rkey = ibv_inc_rkey(mw.rkey);
    hca::emu::SendWr wr;
    wr.wr_id = bind_request->wr_id;
    wr.opcode = hca::emu::WrOpcode::bind_mw;
    wr.signaled = qp.init.sq_sig_all != 0 || (bind_request->send_flags & IBV_SEND_SIGNALED) != 0;
    wr.fence = (bind_request->send_flags & IBV_SEND_FENCE) != 0;
    wr.work = [&mw, rkey, info, rights] { return bind(mw, rkey, info, rights, 0); };
    qp.core->post_send(wr);
    mw.rkey = rkey;
  });
}

std::function<WcStatus()> binding(QueuePair& qp, ibv_mw* which, std::uint32_t rkey,
                                  const ibv_mw_bind_info& info) {
  if (which == nullptr || which->type != IBV_MW_TYPE_2) {
    refuse(EINVAL, "a work request binds windows of type 2");
  }
  auto& mw = MemoryWindow::of(which);
  if (rkey >> 8 != mw.key >> 8) {
    refuse(EINVAL, "key " + std::to_string(rkey) +
                       " is none of the window's: only the last 8 bits "
                       "of " +
                       std::to_string(mw.key) + " may change");
  }
  const hca::Access rights = check_bind(qp, mw, info);
  return [&mw, rkey, info, rights, index = index_of(qp)] {
    return bind(mw, rkey, info, rights, index);
  };
}

std::function<WcStatus()> invalidation(QueuePair& qp, std::uint32_t rkey) {
  return [&qp, rkey, index = index_of(qp)] {
    hca::emu::Domain& domain = domain_of(qp.qp_base.context);
    const hca::emu::Region* region = domain.find(rkey);
    if (region == nullptr || region->qp != index) return WcStatus::loc_qp_op_err;
    domain.unbind(rkey);
    return WcStatus::success;
  };
}

}  // namespace weft::verbs
