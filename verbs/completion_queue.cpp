#include "verbs/completion_queue.hpp"

#include <algorithm>
#include <array>
#include <cerrno>

#include "verbs/context.hpp"
#include "verbs/log.hpp"

namespace weft::verbs {

namespace {

void handle(void* arg, hca::emu::CompletionQueue::Event event) {
  auto& cq = *static_cast<CompletionQueue*>(arg);
  if (event == hca::emu::CompletionQueue::Event::completion) {
    if (cq.channel != nullptr) CompletionChannel::of(cq.channel).events.push(&cq);
    return;
  }
  ibv_async_event overrun{};
  overrun.element.cq = cq.plain();
  overrun.event_type = IBV_EVENT_CQ_ERR;
  Context::of(cq.context).raise(overrun);
}

void check_entries(int entries) {
  if (entries < 1) refuse(EINVAL, "a CQ of " + std::to_string(entries) + " entries");
  check_limit(EINVAL, "cqe", entries, limits().max_cqe);
}

std::unique_ptr<CompletionQueue> make(ibv_context* context, int entries, void* cq_context,
                                      ibv_comp_channel* channel, unsigned vector) {
  check_entries(entries);
  if (vector >= static_cast<unsigned>(context->num_comp_vectors)) {
    refuse(EINVAL, "comp_vector " + std::to_string(vector) + ", the device has " +
                       std::to_string(context->num_comp_vectors));
  }
  auto& owner = Context::of(context);
  auto cq = std::make_unique<CompletionQueue>();
  cq->core =
      std::make_unique<hca::emu::CompletionQueue>(*owner.core, static_cast<std::size_t>(entries));
  cq->core->set_handler(handle, cq.get());
  cq->context = context;
  cq->channel = channel;
  cq->cq_context = cq_context;
  cq->cqe = static_cast<int>(
      std::min<std::size_t>(cq->core->entries(), static_cast<std::size_t>(limits().max_cqe)));
  ::pthread_mutex_init(&cq->mutex, nullptr);
  ::pthread_cond_init(&cq->cond, nullptr);
  if (channel != nullptr) ++channel->refcnt;
  owner.retain();
  return cq;
}

}  // namespace

ibv_comp_channel* create_comp_channel(ibv_context* context) {
  return guarded_pointer("ibv_create_comp_channel", [&]() -> ibv_comp_channel* {
    auto channel = std::make_unique<CompletionChannel>();
    channel->context = context;
    channel->fd = channel->events.fd();
    channel->refcnt = 0;
    Context::of(context).retain();
    return channel.release();
  });
}

int destroy_comp_channel(ibv_comp_channel* which) {
  auto& channel = CompletionChannel::of(which);
  return guarded("ibv_destroy_comp_channel", [&] {
    if (channel.refcnt != 0) {
      refuse(EBUSY, std::to_string(channel.refcnt) + " CQs use the channel");
    }
    auto& owner = Context::of(channel.context);
    delete &channel;
    owner.release();
  });
}

int get_cq_event(ibv_comp_channel* channel, ibv_cq** cq, void** cq_context) {
  const auto event = CompletionChannel::of(channel).events.take(
      [](CompletionQueue* from) { from->completion_events.handed_out(); });
  if (!event) return -1;
  *cq = (*event)->plain();
  *cq_context = (*event)->cq_context;
  return 0;
}

void ack_cq_events(ibv_cq* cq, unsigned count) {
  CompletionQueue::of(cq).completion_events.acknowledged(count);
}

ibv_cq* create_cq(ibv_context* context, int entries, void* cq_context, ibv_comp_channel* channel,
                  int vector) {
  return guarded_pointer("ibv_create_cq", [&] {
    return make(context, entries, cq_context, channel, static_cast<unsigned>(vector))
        .release()
        ->plain();
  });
}

ibv_cq_ex* create_cq_ex(ibv_context* context, ibv_cq_init_attr_ex* attr) {
  return guarded_pointer("ibv_create_cq_ex", [&]() -> ibv_cq_ex* {
    constexpr std::uint64_t known = std::uint64_t{IBV_WC_STANDARD_FLAGS} |
                                    IBV_WC_EX_WITH_COMPLETION_TIMESTAMP |
                                    IBV_WC_EX_WITH_COMPLETION_TIMESTAMP_WALLCLOCK;
    constexpr std::uint32_t known_mask = IBV_CQ_INIT_ATTR_MASK_FLAGS | IBV_CQ_INIT_ATTR_MASK_PD;
    if ((attr->wc_flags & ~known) != 0 || (attr->comp_mask & ~known_mask) != 0) {
      refuse(EOPNOTSUPP, "wc_flags " + std::to_string(attr->wc_flags) + ", comp_mask " +
                             std::to_string(attr->comp_mask) + ": known are " +
                             std::to_string(known) + " and " + std::to_string(known_mask));
    }
    check_limit(EINVAL, "cqe", attr->cqe, limits().max_cqe);
    auto cq = make(context, static_cast<int>(attr->cqe), attr->cq_context, attr->channel,
                   attr->comp_vector);
    set_poll_operations(*cq);
    return cq.release();
  });
}

int resize_cq(ibv_cq* which, int entries) {
  auto& cq = CompletionQueue::of(which);
  return guarded("ibv_resize_cq", [&] {
    check_entries(entries);
    cq.core->resize(static_cast<std::size_t>(entries));
    cq.cqe = static_cast<int>(cq.core->entries());
  });
}

int modify_cq(ibv_cq*, ibv_modify_cq_attr* attr) {
  // Moderation of events: the device raises one for each, which any setting allows.
  return (attr->attr_mask & ~std::uint32_t{IBV_CQ_ATTR_MODERATE}) != 0 ? EINVAL : 0;
}

int destroy_cq(ibv_cq* which) {
  auto& cq = CompletionQueue::of(which);
  return guarded("ibv_destroy_cq", [&] {
    if (cq.users != 0) refuse(EBUSY, std::to_string(cq.users) + " queues report to the CQ");
    auto& owner = Context::of(cq.context);
    cq.core.reset();
    owner.async_events.remove([&](const ibv_async_event& event) {
      return event.event_type == IBV_EVENT_CQ_ERR && event.element.cq == which;
    });
    if (cq.channel != nullptr) {
      CompletionChannel::of(cq.channel).events.remove([&](const CompletionQueue* from) {
        return from == &cq;
      });
    }
    cq.completion_events.wait_for_none();
    cq.async_events.wait_for_none();
    if (cq.channel != nullptr) --cq.channel->refcnt;
    ::pthread_mutex_destroy(&cq.mutex);
    ::pthread_cond_destroy(&cq.cond);
    delete &cq;
    owner.release();
  });
}

int req_notify_cq(ibv_cq* cq, int solicited_only) {
  CompletionQueue::of(cq).core->request_notify(solicited_only != 0);
  return 0;
}

ibv_wc_status status_of(hca::WcStatus status) noexcept {
  constexpr std::array statuses{
      IBV_WC_SUCCESS,       IBV_WC_LOC_LEN_ERR,       IBV_WC_LOC_QP_OP_ERR,  IBV_WC_LOC_PROT_ERR,
      IBV_WC_WR_FLUSH_ERR,  IBV_WC_REM_INV_REQ_ERR,   IBV_WC_REM_ACCESS_ERR, IBV_WC_REM_OP_ERR,
      IBV_WC_RETRY_EXC_ERR, IBV_WC_RNR_RETRY_EXC_ERR, IBV_WC_MW_BIND_ERR};
  static_assert(static_cast<std::size_t>(hca::WcStatus::mw_bind_err) == statuses.size() - 1);
  return statuses[static_cast<std::size_t>(status)];
}

ibv_wc_opcode opcode_of(hca::emu::WcOpcode opcode) noexcept {
  constexpr std::array opcodes{
      IBV_WC_SEND,      IBV_WC_RDMA_WRITE,        IBV_WC_RDMA_READ, IBV_WC_FETCH_ADD,
      IBV_WC_COMP_SWAP, IBV_WC_LOCAL_INV,         IBV_WC_BIND_MW,   IBV_WC_DRIVER1,
      IBV_WC_RECV,      IBV_WC_RECV_RDMA_WITH_IMM};
  return opcodes[static_cast<std::size_t>(opcode)];
}

unsigned flags_of(const hca::emu::WorkCompletion& completion) noexcept {
  unsigned flags = 0;
  if (completion.invalidated) flags |= IBV_WC_WITH_INV;
  if (completion.immediate.present) flags |= IBV_WC_WITH_IMM;
  if (completion.has_grh) flags |= IBV_WC_GRH;
  return flags;
}

int poll_cq(ibv_cq* which, int count, ibv_wc* completions) {
  constexpr int batch = 32;
  std::array<hca::emu::WorkCompletion, batch> taken;
  int done = 0;
  try {
    while (done < count) {
      const int wanted = std::min(count - done, batch);
      const auto got = static_cast<int>(
          CompletionQueue::of(which).core->poll({taken.data(), static_cast<std::size_t>(wanted)}));
      for (int i = 0; i < got; ++i) {
        const hca::emu::WorkCompletion& from = taken[static_cast<std::size_t>(i)];
        ibv_wc& to = completions[done + i];
        to.wr_id = from.wr_id;
        to.status = status_of(from.status);
        to.opcode = opcode_of(from.opcode);
        to.vendor_err = 0;
        to.byte_len = static_cast<std::uint32_t>(from.byte_len);
        to.imm_data = from.immediate.data;
        to.qp_num = from.qp_num;
        to.src_qp = from.src_qp;
        to.wc_flags = flags_of(from);
        to.pkey_index = 0;
        to.slid = only_lid;
        to.sl = 0;
        to.dlid_path_bits = 0;
      }
      done += got;
      if (got < wanted) break;
    }
  } catch (const hca::Error& error) {
    log_refusal("ibv_poll_cq", error.code(), error.what());
    return -error.code();
  }
  return done;
}

}  // namespace weft::verbs
