// Completion queues (plain and extended) and completion channels.
#pragma once

#include <infiniband/verbs.h>

#include <atomic>
#include <memory>

#include "hca/emu/completion_queue.hpp"
#include "verbs/event_queue.hpp"

namespace weft::verbs {

struct CompletionQueue;

struct CompletionChannel : ibv_comp_channel {
  static CompletionChannel& of(ibv_comp_channel* channel) noexcept {
    return *static_cast<CompletionChannel*>(channel);
  }
  EventQueue<CompletionQueue*> events;
};

/// ibv_cq_ex begins with the fields of ibv_cq: one object serves both.
struct CompletionQueue : ibv_cq_ex {
  static CompletionQueue& of(ibv_cq* cq) noexcept {
    return *static_cast<CompletionQueue*>(reinterpret_cast<ibv_cq_ex*>(cq));
  }
  static CompletionQueue& of(ibv_cq_ex* cq) noexcept { return *static_cast<CompletionQueue*>(cq); }
  [[nodiscard]] ibv_cq* plain() noexcept { return ibv_cq_ex_to_cq(this); }

  std::unique_ptr<hca::emu::CompletionQueue> core;
  std::atomic<int> users{0};  ///< send and receive queues that report here
  UnacknowledgedEvents completion_events;
  UnacknowledgedEvents async_events;
  hca::emu::WorkCompletion polled{};  ///< between start_poll and end_poll
};

ibv_comp_channel* create_comp_channel(ibv_context* context);
int destroy_comp_channel(ibv_comp_channel* channel);
int get_cq_event(ibv_comp_channel* channel, ibv_cq** cq, void** cq_context);
void ack_cq_events(ibv_cq* cq, unsigned count);

ibv_cq* create_cq(ibv_context* context, int entries, void* cq_context, ibv_comp_channel* channel,
                  int vector);
ibv_cq_ex* create_cq_ex(ibv_context* context, ibv_cq_init_attr_ex* attr);
int resize_cq(ibv_cq* cq, int entries);
int modify_cq(ibv_cq* cq, ibv_modify_cq_attr* attr);
int destroy_cq(ibv_cq* cq);
int poll_cq(ibv_cq* cq, int count, ibv_wc* completions);
int req_notify_cq(ibv_cq* cq, int solicited_only);

/// The calls of ibv_cq_ex (completion_queue_ex.cpp).
void set_poll_operations(CompletionQueue& cq);
/// The completion as the verbs name it.
ibv_wc_status status_of(hca::WcStatus status) noexcept;
ibv_wc_opcode opcode_of(hca::emu::WcOpcode opcode) noexcept;
unsigned flags_of(const hca::emu::WorkCompletion& completion) noexcept;

}  // namespace weft::verbs
