// The work request that makes a layout valid.
#include <cerrno>
#include <mutex>

#include "verbs/layout.hpp"
#include "verbs/log.hpp"
#include "verbs/memory_region.hpp"
#include "verbs/queue_pair.hpp"

namespace weft::verbs {

int post_mr_layout(ibv_qp* which, ibv_mr* of, std::uint64_t wr_id, unsigned send_flags) {
  auto& qp = QueuePair::of(which);
  auto& mr = MemoryRegion::of(of);
  return guarded("ibv_post_mr_layout", [&] {
    constexpr unsigned known = IBV_SEND_FENCE | IBV_SEND_SIGNALED;
    if ((send_flags & ~known) != 0) {
      refuse(EINVAL,
             "send_flags " + std::to_string(send_flags) + ", known are " + std::to_string(known));
    }
    if (which->context != mr.context || ProtectionDomain::of(which->pd).core->number() !=
                                            ProtectionDomain::of(mr.pd).core->number()) {
      refuse(EINVAL, "region and QP are of two PDs");
    }
    std::shared_ptr<const StagedLayout> staged;
    {
      const std::scoped_lock guard(lock_of(mr));
      if (!mr.staged) refuse(EINVAL, "the region has no layout that waits to be posted");
      if (is_posted(mr)) refuse(EBUSY, "the layout is in a send queue");
      staged = mr.staged;
    }
    hca::emu::SendWr wr;
    wr.wr_id = wr_id;
    wr.opcode = hca::emu::WrOpcode::local;
    wr.signaled = qp.init.sq_sig_all != 0 || (send_flags & IBV_SEND_SIGNALED) != 0;
    wr.fence = (send_flags & IBV_SEND_FENCE) != 0;
    wr.work = [&mr, layout = std::move(staged)] {
      return bind_staged(mr, *layout) ? hca::WcStatus::success : hca::WcStatus::mw_bind_err;
    };
    qp.core->post_send(wr);
  });
}

}  // namespace weft::verbs
