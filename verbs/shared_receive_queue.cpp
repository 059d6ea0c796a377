#include "verbs/shared_receive_queue.hpp"

#include <cerrno>

#include "verbs/context.hpp"
#include "verbs/log.hpp"
#include "verbs/protection_domain.hpp"

namespace weft::verbs {

namespace {

void limit_reached(void* arg) {
  auto& srq = *static_cast<SharedReceiveQueue*>(arg);
  ibv_async_event event{};
  event.element.srq = &srq;
  event.event_type = IBV_EVENT_SRQ_LIMIT_REACHED;
  Context::of(srq.context).raise(event);
}

void check_size(std::uint32_t max_wr) {
  if (max_wr == 0) refuse(EINVAL, "an SRQ of no requests");
  check_limit(EINVAL, "max_wr", max_wr, limits().max_srq_wr);
}

}  // namespace

hca::emu::RecvWr& translated(const ibv_recv_wr& wr) {
  thread_local hca::emu::RecvWr result;
  result.wr_id = wr.wr_id;
  result.sg_list.clear();
  for (int i = 0; i < wr.num_sge; ++i) {
    const ibv_sge& sge = wr.sg_list[i];
    result.sg_list.push_back({sge.addr, sge.length, sge.lkey});
  }
  return result;
}

ibv_srq* create_srq(ibv_pd* pd, ibv_srq_init_attr* attr) {
  return guarded_pointer("ibv_create_srq", [&]() -> ibv_srq* {
    check_size(attr->attr.max_wr);
    check_limit(EINVAL, "max_sge", attr->attr.max_sge, limits().max_srq_sge);
    auto& owner = Context::of(pd->context);
    auto srq = std::make_unique<SharedReceiveQueue>();
    srq->core = std::make_unique<hca::emu::ReceiveQueue>(
        *owner.core, *ProtectionDomain::of(pd).core, attr->attr.max_wr, attr->attr.max_sge);
    srq->core->on_limit(limit_reached, srq.get());
    srq->context = pd->context;
    srq->srq_context = attr->srq_context;
    srq->pd = pd;
    ::pthread_mutex_init(&srq->mutex, nullptr);
    ::pthread_cond_init(&srq->cond, nullptr);
    attr->attr.max_wr = srq->core->max_wr();
    ++ProtectionDomain::of(pd).users;
    owner.retain();
    return srq.release();
  });
}

ibv_srq* create_srq_ex(ibv_context*, ibv_srq_init_attr_ex* attr) {
  constexpr std::uint32_t known = IBV_SRQ_INIT_ATTR_TYPE | IBV_SRQ_INIT_ATTR_PD;
  const bool basic =
      (attr->comp_mask & ~known) == 0 && (attr->comp_mask & IBV_SRQ_INIT_ATTR_PD) &&
      ((attr->comp_mask & IBV_SRQ_INIT_ATTR_TYPE) == 0 || attr->srq_type == IBV_SRQT_BASIC);
  if (!basic) {
    log_refusal("ibv_create_srq_ex", EOPNOTSUPP, "only basic SRQs of a PD");
    errno = EOPNOTSUPP;
    return nullptr;
  }
  ibv_srq_init_attr plain{attr->srq_context, attr->attr};
  ibv_srq* srq = create_srq(attr->pd, &plain);
  attr->attr = plain.attr;
  return srq;
}

int modify_srq(ibv_srq* which, ibv_srq_attr* attr, int mask) {
  auto& srq = SharedReceiveQueue::of(which);
  return guarded("ibv_modify_srq", [&] {
    if ((mask & ~(IBV_SRQ_MAX_WR | IBV_SRQ_LIMIT)) != 0) {
      refuse(EINVAL, "attribute mask " + std::to_string(mask));
    }
    const bool resized = (mask & IBV_SRQ_MAX_WR) != 0;
    if (resized) check_size(attr->max_wr);
    if ((mask & IBV_SRQ_LIMIT) != 0) {
      check_limit(EINVAL, "srq_limit", attr->srq_limit,
                  resized ? attr->max_wr : srq.core->max_wr());
    }
    if (resized) srq.core->resize(attr->max_wr);
    if ((mask & IBV_SRQ_LIMIT) != 0) srq.core->set_limit(attr->srq_limit);
  });
}

int query_srq(ibv_srq* which, ibv_srq_attr* attr) {
  const auto& core = *SharedReceiveQueue::of(which).core;
  *attr = {core.max_wr(), core.max_sge(), core.limit()};
  return 0;
}

int destroy_srq(ibv_srq* which) {
  auto& srq = SharedReceiveQueue::of(which);
  return guarded("ibv_destroy_srq", [&] {
    if (srq.users != 0) refuse(EBUSY, std::to_string(srq.users) + " QPs use the SRQ");
    auto& owner = Context::of(srq.context);
    owner.async_events.remove([&](const ibv_async_event& event) {
      return event.event_type == IBV_EVENT_SRQ_LIMIT_REACHED && event.element.srq == which;
    });
    srq.async_events.wait_for_none();
    ::pthread_mutex_destroy(&srq.mutex);
    ::pthread_cond_destroy(&srq.cond);
    --ProtectionDomain::of(srq.pd).users;
    delete &srq;
    owner.release();
  });
}

int get_srq_num(ibv_srq*, std::uint32_t*) {
  return EOPNOTSUPP;  // of XRC
}

int post_srq_recv(ibv_srq* srq, ibv_recv_wr* wr, ibv_recv_wr** bad_wr) {
  for (; wr != nullptr; wr = wr->next) {
    const int code = guarded("ibv_post_srq_recv",
                             [&] { SharedReceiveQueue::of(srq).core->post(translated(*wr)); });
    if (code == 0) continue;
    *bad_wr = wr;
    return code;
  }
  return 0;
}

}  // namespace weft::verbs
