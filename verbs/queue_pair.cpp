#include "verbs/queue_pair.hpp"

#include <array>
#include <cerrno>
#include <cstring>

#include "verbs/completion_queue.hpp"
#include "verbs/context.hpp"
#include "verbs/log.hpp"
#include "verbs/memory_region.hpp"
#include "verbs/protection_domain.hpp"
#include "verbs/shared_receive_queue.hpp"
#include "verbs/work_request.hpp"

namespace weft::verbs {

namespace {

constexpr int unpacked(ibv_mtu mtu) {
  return 128 << mtu;
}

hca::emu::QpType core_type(ibv_qp_type type) {
  switch (type) {
    case IBV_QPT_RC:
      return hca::emu::QpType::rc;
    case IBV_QPT_UC:
      return hca::emu::QpType::uc;
    case IBV_QPT_UD:
      return hca::emu::QpType::ud;
    default:
      refuse(EOPNOTSUPP, "QP type " + std::to_string(type) + ", the device has RC, UC and UD");
  }
}

hca::emu::QpState core_state(ibv_qp_state state) {
  switch (state) {
    case IBV_QPS_RESET:
      return hca::emu::QpState::reset;
    case IBV_QPS_INIT:
      return hca::emu::QpState::init;
    case IBV_QPS_RTR:
      return hca::emu::QpState::rtr;
    case IBV_QPS_RTS:
      return hca::emu::QpState::rts;
    case IBV_QPS_SQD:
      return hca::emu::QpState::sqd;
    case IBV_QPS_ERR:
      return hca::emu::QpState::error;
    default:
      refuse(EINVAL, "state " + std::to_string(state));
  }
}

ibv_qp_state state_of(const QueuePair& qp) noexcept {
  constexpr std::array states{IBV_QPS_RESET, IBV_QPS_INIT, IBV_QPS_RTR,
                              IBV_QPS_RTS,   IBV_QPS_SQD,  IBV_QPS_ERR};
  return states[static_cast<std::size_t>(qp.core->state())];
}

void raise(void* arg, hca::emu::QpEvent event) {
  auto& qp = *static_cast<QueuePair*>(arg);
  constexpr std::array types{IBV_EVENT_COMM_EST, IBV_EVENT_SQ_DRAINED,
                             IBV_EVENT_QP_LAST_WQE_REACHED, IBV_EVENT_QP_ACCESS_ERR,
                             IBV_EVENT_QP_REQ_ERR};
  if (event == hca::emu::QpEvent::send_queue_drained && !qp.tells_drained) return;
  ibv_async_event async{};
  async.element.qp = &qp.qp_base;
  async.event_type = types[static_cast<std::size_t>(event)];
  qp.owner().raise(async);
}

void check_capabilities(const ibv_qp_cap& cap, bool has_srq) {
  const Limits& limit = limits();
  check_limit(EINVAL, "max_send_wr", cap.max_send_wr, limit.max_qp_wr);
  check_limit(EINVAL, "max_send_sge", cap.max_send_sge, limit.max_sge);
  check_limit(EINVAL, "max_inline_data", cap.max_inline_data, limit.max_inline_data);
  if (has_srq) return;
  check_limit(EINVAL, "max_recv_wr", cap.max_recv_wr, limit.max_qp_wr);
  check_limit(EINVAL, "max_recv_sge", cap.max_recv_sge, limit.max_sge);
}

/// Copies from `from` to `to` what `mask` names, after checking its values.
void merge(ibv_qp_attr& to, const ibv_qp_attr& from, int mask) {
  const auto has = [mask](int bit) { return (mask & bit) != 0; };
  constexpr std::uint32_t most_24_bits = 0xffffff;
  if (has(IBV_QP_PKEY_INDEX)) {
    check_limit(EINVAL, "pkey_index", from.pkey_index, 0);
    to.pkey_index = from.pkey_index;
  }
  if (has(IBV_QP_PORT)) {
    if (from.port_num != only_port) {
      refuse(EINVAL, "port " + std::to_string(from.port_num) + ", the device has port 1");
    }
    to.port_num = from.port_num;
  }
  if (has(IBV_QP_ACCESS_FLAGS)) {
    constexpr unsigned known = IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE |
                               IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_ATOMIC |
                               IBV_ACCESS_MW_BIND;
    if ((from.qp_access_flags & ~known) != 0) {
      refuse(EINVAL, "qp_access_flags " + std::to_string(from.qp_access_flags));
    }
    to.qp_access_flags = from.qp_access_flags;
  }
  if (has(IBV_QP_QKEY)) to.qkey = from.qkey;
  if (has(IBV_QP_AV)) {
    check_address(from.ah_attr);
    to.ah_attr = from.ah_attr;
  }
  if (has(IBV_QP_PATH_MTU)) {
    if (from.path_mtu < IBV_MTU_256 || from.path_mtu > IBV_MTU_4096) {
      refuse(EINVAL, "path_mtu " + std::to_string(from.path_mtu) + " is none of 1 to 5");
    }
    to.path_mtu = from.path_mtu;
  }
  if (has(IBV_QP_DEST_QPN)) {
    check_limit(EINVAL, "dest_qp_num", from.dest_qp_num, most_24_bits);
    to.dest_qp_num = from.dest_qp_num;
  }
  if (has(IBV_QP_RQ_PSN)) to.rq_psn = from.rq_psn & most_24_bits;
  if (has(IBV_QP_SQ_PSN)) to.sq_psn = from.sq_psn & most_24_bits;
  if (has(IBV_QP_MAX_QP_RD_ATOMIC)) {
    check_limit(EINVAL, "max_rd_atomic", from.max_rd_atomic, limits().max_reads);
    to.max_rd_atomic = from.max_rd_atomic;
  }
  if (has(IBV_QP_MAX_DEST_RD_ATOMIC)) {
    check_limit(EINVAL, "max_dest_rd_atomic", from.max_dest_rd_atomic, limits().max_reads);
    to.max_dest_rd_atomic = from.max_dest_rd_atomic;
  }
  if (has(IBV_QP_MIN_RNR_TIMER)) {
    check_limit(EINVAL, "min_rnr_timer", from.min_rnr_timer, 31);
    to.min_rnr_timer = from.min_rnr_timer;
  }
  if (has(IBV_QP_TIMEOUT)) {
    check_limit(EINVAL, "timeout", from.timeout, 31);
    to.timeout = from.timeout;
  }
  if (has(IBV_QP_RETRY_CNT)) {
    check_limit(EINVAL, "retry_cnt", from.retry_cnt, 7);
    to.retry_cnt = from.retry_cnt;
  }
  if (has(IBV_QP_RNR_RETRY)) {
    check_limit(EINVAL, "rnr_retry", from.rnr_retry, 7);
    to.rnr_retry = from.rnr_retry;
  }
  if (has(IBV_QP_EN_SQD_ASYNC_NOTIFY)) to.en_sqd_async_notify = from.en_sqd_async_notify;
  if (has(IBV_QP_ALT_PATH) || has(IBV_QP_PATH_MIG_STATE)) {
    refuse(EINVAL, "alternate paths: the device has one path");
  }
}

hca::emu::QpAttributes core_attributes(const QueuePair& qp, const ibv_qp_attr& attr) {
  hca::emu::QpAttributes result;
  const unsigned flags = attr.qp_access_flags & ~static_cast<unsigned>(IBV_ACCESS_MW_BIND);
  result.access = access_of(flags | IBV_ACCESS_LOCAL_WRITE);
  if (qp.qp_base.qp_type != IBV_QPT_UD && names_us(qp.owner(), attr.ah_attr)) {
    result.peer = qp.owner().core->owner_of_qp(attr.dest_qp_num);
  }
  result.peer_qp = attr.dest_qp_num;
  result.qkey = attr.qkey;
  result.send_psn = attr.sq_psn;
  result.recv_psn = attr.rq_psn;
  result.path_mtu =
      qp.qp_base.qp_type == IBV_QPT_UD ? 4096 : static_cast<std::uint32_t>(unpacked(attr.path_mtu));
  result.min_rnr_timer = attr.min_rnr_timer;
  result.timeout = attr.timeout;
  result.retry_count = attr.retry_cnt;
  result.rnr_retry = attr.rnr_retry;
  result.max_reads = attr.max_rd_atomic;
  result.max_served_reads = attr.max_dest_rd_atomic;
  return result;
}

std::unique_ptr<QueuePair> make(ibv_pd* pd, const ibv_qp_init_attr& attr) {
  const hca::emu::QpType type = core_type(attr.qp_type);
  check_capabilities(attr.cap, attr.srq != nullptr);
  if (attr.send_cq == nullptr || attr.recv_cq == nullptr) refuse(EINVAL, "a QP needs its CQs");
  if (attr.send_cq->context != pd->context || attr.recv_cq->context != pd->context ||
      (attr.srq != nullptr && attr.srq->context != pd->context)) {
    refuse(EINVAL, "PD, CQs and SRQ of a QP are of one context");
  }
  hca::emu::QpCapabilities capabilities;
  capabilities.max_send_wr = attr.cap.max_send_wr;
  capabilities.max_recv_wr = attr.cap.max_recv_wr;
  capabilities.max_send_sge = attr.cap.max_send_sge;
  capabilities.max_recv_sge = attr.cap.max_recv_sge;
  capabilities.max_inline_data = attr.cap.max_inline_data;
  auto& send_cq = CompletionQueue::of(attr.send_cq);
  auto& recv_cq = CompletionQueue::of(attr.recv_cq);
  auto* srq = attr.srq != nullptr ? &SharedReceiveQueue::of(attr.srq) : nullptr;
  auto qp = std::make_unique<QueuePair>();
  ibv_qp& base = qp->qp_base;
  base.context = pd->context;
  qp->core = std::make_unique<hca::emu::QueuePair>(
      *qp->owner().core, *ProtectionDomain::of(pd).core, *send_cq.core, *recv_cq.core, capabilities,
      type, srq != nullptr ? srq->core.get() : nullptr);
  qp->core->set_event_handler(raise, qp.get());
  base.qp_context = attr.qp_context;
  base.pd = pd;
  base.send_cq = attr.send_cq;
  base.recv_cq = attr.recv_cq;
  base.srq = attr.srq;
  base.qp_num = qp->core->number();
  base.handle = base.qp_num;
  base.state = IBV_QPS_RESET;
  base.qp_type = attr.qp_type;
  qp->init = attr;
  qp->init.cap.max_send_wr = qp->core->capabilities().max_send_wr;
  qp->init.cap.max_recv_wr = qp->core->capabilities().max_recv_wr;
  return qp;
}

/// From here on the QP counts as a user of what it was made with.
ibv_qp* enter(std::unique_ptr<QueuePair> qp) {
  ibv_qp& base = qp.release()->qp_base;
  ++ProtectionDomain::of(base.pd).users;
  ++CompletionQueue::of(base.send_cq).users;
  ++CompletionQueue::of(base.recv_cq).users;
  if (base.srq != nullptr) ++SharedReceiveQueue::of(base.srq).users;
  Context::of(base.context).retain();
  return &base;
}

}  // namespace

QueuePair::QueuePair() : ibv_qp_ex{} {
  ::pthread_mutex_init(&qp_base.mutex, nullptr);
  ::pthread_cond_init(&qp_base.cond, nullptr);
  attr.path_mtu = IBV_MTU_4096;
}

QueuePair::~QueuePair() {
  ::pthread_mutex_destroy(&qp_base.mutex);
  ::pthread_cond_destroy(&qp_base.cond);
}

Context& QueuePair::owner() const noexcept {
  return Context::of(qp_base.context);
}

ibv_qp* create_qp(ibv_pd* pd, ibv_qp_init_attr* attr) {
  return guarded_pointer("ibv_create_qp", [&] {
    auto qp = make(pd, *attr);
    attr->cap = qp->init.cap;
    return enter(std::move(qp));
  });
}

ibv_qp* create_qp_ex(ibv_context* context, ibv_qp_init_attr_ex* attr) {
  return guarded_pointer("ibv_create_qp_ex", [&] {
    constexpr std::uint32_t known =
        IBV_QP_INIT_ATTR_PD | IBV_QP_INIT_ATTR_SEND_OPS_FLAGS | IBV_QP_INIT_ATTR_CREATE_FLAGS;
    if ((attr->comp_mask & ~known) != 0) {
      refuse(EOPNOTSUPP, "comp_mask " + std::to_string(attr->comp_mask) + ", known are " +
                             std::to_string(known));
    }
    if ((attr->comp_mask & IBV_QP_INIT_ATTR_CREATE_FLAGS) != 0 && attr->create_flags != 0) {
      refuse(EOPNOTSUPP, "create_flags " + std::to_string(attr->create_flags));
    }
    if ((attr->comp_mask & IBV_QP_INIT_ATTR_PD) == 0 || attr->pd == nullptr ||
        attr->pd->context != context) {
      refuse(EINVAL, "a QP needs a PD of its context");
    }
    ibv_qp_init_attr plain{attr->qp_context, attr->send_cq, attr->recv_cq,   attr->srq,
                           attr->cap,        attr->qp_type, attr->sq_sig_all};
    auto qp = make(attr->pd, plain);
    if ((attr->comp_mask & IBV_QP_INIT_ATTR_SEND_OPS_FLAGS) != 0) {
      set_send_operations(*qp, attr->send_ops_flags);
    }
    attr->cap = qp->init.cap;
    return enter(std::move(qp));
  });
}

int modify_qp(ibv_qp* which, ibv_qp_attr* attr, int mask) {
  auto& qp = QueuePair::of(which);
  return guarded("ibv_modify_qp", [&] {
    const ibv_qp_state from = state_of(qp);
    const ibv_qp_state to = (mask & IBV_QP_STATE) != 0 ? attr->qp_state : from;
    if ((mask & IBV_QP_CUR_STATE) != 0 && attr->cur_qp_state != from) {
      refuse(EINVAL, "cur_qp_state is not the state of the QP");
    }
    const hca::emu::QpState state = core_state(to);
    check_attributes(which->qp_type, from, to, mask);
    ibv_qp_attr merged = qp.attr;
    if (to != IBV_QPS_RESET && to != IBV_QPS_ERR) merge(merged, *attr, mask);
    if (to == IBV_QPS_SQD && from != to) qp.tells_drained = merged.en_sqd_async_notify != 0;
    qp.core->modify(state, core_attributes(qp, merged));
    qp.attr = to == IBV_QPS_RESET ? ibv_qp_attr{} : merged;
    if (to == IBV_QPS_RESET) qp.attr.path_mtu = IBV_MTU_4096;
    which->state = to;
  });
}

int query_qp(ibv_qp* which, ibv_qp_attr* attr, int, ibv_qp_init_attr* init) {
  auto& qp = QueuePair::of(which);
  *attr = qp.attr;
  attr->qp_state = state_of(qp);
  attr->cur_qp_state = attr->qp_state;
  attr->cap = qp.init.cap;
  const hca::emu::QpAttributes now = qp.core->attributes();
  attr->sq_psn = now.send_psn;
  attr->rq_psn = now.recv_psn;
  which->state = attr->qp_state;
  if (init != nullptr) *init = qp.init;
  return 0;
}

int destroy_qp(ibv_qp* which) {
  auto& qp = QueuePair::of(which);
  return guarded("ibv_destroy_qp", [&] {
    auto& owner = qp.owner();
    const std::uint32_t number = which->qp_num;
    qp.core.reset();
    // Completions of a QP that is gone are nobody's.
    CompletionQueue::of(which->send_cq).core->purge(number);
    CompletionQueue::of(which->recv_cq).core->purge(number);
    owner.async_events.remove([&](const ibv_async_event& event) {
      return is_of_qp(event.event_type) && event.element.qp == which;
    });
    qp.async_events.wait_for_none();
    --ProtectionDomain::of(which->pd).users;
    --CompletionQueue::of(which->send_cq).users;
    --CompletionQueue::of(which->recv_cq).users;
    if (which->srq != nullptr) --SharedReceiveQueue::of(which->srq).users;
    delete &qp;
    owner.release();
  });
}

int post_send(ibv_qp* which, ibv_send_wr* wr, ibv_send_wr** bad_wr) {
  auto& qp = QueuePair::of(which);
  for (; wr != nullptr; wr = wr->next) {
    const int code = guarded("ibv_post_send", [&] { qp.core->post_send(translated(qp, *wr)); });
    if (code == 0) continue;
    *bad_wr = wr;
    return code;
  }
  return 0;
}

int post_recv(ibv_qp* which, ibv_recv_wr* wr, ibv_recv_wr** bad_wr) {
  auto& qp = QueuePair::of(which);
  for (; wr != nullptr; wr = wr->next) {
    const int code = guarded("ibv_post_recv", [&] { qp.core->post_recv(translated(*wr)); });
    if (code == 0) continue;
    *bad_wr = wr;
    return code;
  }
  return 0;
}

}  // namespace weft::verbs
