// Extended completion queues: one completion at a time, field by field.
#include <time.h>

#include <cerrno>

#include "verbs/completion_queue.hpp"
#include "verbs/context.hpp"
#include "verbs/log.hpp"

namespace weft::verbs {

namespace {

std::uint64_t clock_ns(clockid_t clock) {
  timespec now{};
  ::clock_gettime(clock, &now);
  return static_cast<std::uint64_t>(now.tv_sec) * 1'000'000'000 +
         static_cast<std::uint64_t>(now.tv_nsec);
}

int next_poll(ibv_cq_ex* which) {
  auto& cq = CompletionQueue::of(which);
  try {
    if (cq.core->poll({&cq.polled, 1}) == 0) return ENOENT;
  } catch (const hca::Error& error) {
    log_refusal("ibv_next_poll", error.code(), error.what());
    return error.code();
  }
  cq.wr_id = cq.polled.wr_id;
  cq.status = status_of(cq.polled.status);
  return 0;
}

int start_poll(ibv_cq_ex* cq, ibv_poll_cq_attr* attr) {
  return attr->comp_mask != 0 ? EINVAL : next_poll(cq);
}

void end_poll(ibv_cq_ex*) {}

const hca::emu::WorkCompletion& polled(ibv_cq_ex* cq) {
  return CompletionQueue::of(cq).polled;
}

}  // namespace

void set_poll_operations(CompletionQueue& cq) {
  cq.start_poll = start_poll;
  cq.next_poll = next_poll;
  cq.end_poll = end_poll;
  cq.read_opcode = [](ibv_cq_ex* of) { return opcode_of(polled(of).opcode); };
  cq.read_vendor_err = [](ibv_cq_ex*) -> std::uint32_t { return 0; };
  cq.read_byte_len = [](ibv_cq_ex* of) { return static_cast<std::uint32_t>(polled(of).byte_len); };
  cq.read_imm_data = [](ibv_cq_ex* of) -> __be32 { return polled(of).immediate.data; };
  cq.read_qp_num = [](ibv_cq_ex* of) { return polled(of).qp_num; };
  cq.read_src_qp = [](ibv_cq_ex* of) { return polled(of).src_qp; };
  cq.read_wc_flags = [](ibv_cq_ex* of) { return flags_of(polled(of)); };
  cq.read_slid = [](ibv_cq_ex*) -> std::uint32_t { return only_lid; };
  cq.read_sl = [](ibv_cq_ex*) -> std::uint8_t { return 0; };
  cq.read_dlid_path_bits = [](ibv_cq_ex*) -> std::uint8_t { return 0; };
  // The time at which the completion is looked at: the device keeps none of its own.
  cq.read_completion_ts = [](ibv_cq_ex*) { return clock_ns(CLOCK_MONOTONIC); };
  cq.read_completion_wallclock_ns = [](ibv_cq_ex*) { return clock_ns(CLOCK_REALTIME); };
}

}  // namespace weft::verbs
