// Shared receive queues (SRQ).
#pragma once

#include <infiniband/verbs.h>

#include <atomic>
#include <cstdint>
#include <memory>

#include "hca/emu/receive_queue.hpp"
#include "verbs/event_queue.hpp"

namespace weft::verbs {

struct SharedReceiveQueue : ibv_srq {
  static SharedReceiveQueue& of(ibv_srq* srq) noexcept {
    return *static_cast<SharedReceiveQueue*>(srq);
  }

  std::unique_ptr<hca::emu::ReceiveQueue> core;
  std::atomic<int> users{0};  ///< QPs that take from it
  UnacknowledgedEvents async_events;
};

ibv_srq* create_srq(ibv_pd* pd, ibv_srq_init_attr* attr);
ibv_srq* create_srq_ex(ibv_context* context, ibv_srq_init_attr_ex* attr);
int modify_srq(ibv_srq* srq, ibv_srq_attr* attr, int mask);
int query_srq(ibv_srq* srq, ibv_srq_attr* attr);
int destroy_srq(ibv_srq* srq);
int get_srq_num(ibv_srq* srq, std::uint32_t* number);
int post_srq_recv(ibv_srq* srq, ibv_recv_wr* wr, ibv_recv_wr** bad_wr);

/// A receive work request as the core has it, in an object of the calling thread's.
hca::emu::RecvWr& translated(const ibv_recv_wr& wr);

}  // namespace weft::verbs
