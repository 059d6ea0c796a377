// Queue pairs as the verbs have them.
#pragma once

#include <infiniband/verbs.h>

#include <atomic>
#include <cstdint>
#include <memory>

#include "hca/emu/queue_pair.hpp"
#include "verbs/event_queue.hpp"

namespace weft::verbs {

struct Context;
struct WorkRequestBuilder;

/// ibv_qp_ex begins with an ibv_qp: one object serves both.
struct QueuePair : ibv_qp_ex {
  QueuePair();
  ~QueuePair();
  static QueuePair& of(ibv_qp* qp) noexcept {
    return *static_cast<QueuePair*>(reinterpret_cast<ibv_qp_ex*>(qp));
  }
  static QueuePair& of(ibv_qp_ex* qp) noexcept { return *static_cast<QueuePair*>(qp); }
  [[nodiscard]] Context& owner() const noexcept;

  std::unique_ptr<hca::emu::QueuePair> core;
  ibv_qp_attr attr{};  ///< as modified last
  ibv_qp_init_attr init{};
  std::atomic<bool> tells_drained{false};       ///< that the send queue is drained: asked for
  std::shared_ptr<WorkRequestBuilder> builder;  ///< null: no ibv_wr_* calls were asked for
  UnacknowledgedEvents async_events;
};

ibv_qp* create_qp(ibv_pd* pd, ibv_qp_init_attr* attr);
ibv_qp* create_qp_ex(ibv_context* context, ibv_qp_init_attr_ex* attr);
int modify_qp(ibv_qp* qp, ibv_qp_attr* attr, int mask);
int query_qp(ibv_qp* qp, ibv_qp_attr* attr, int mask, ibv_qp_init_attr* init);
int destroy_qp(ibv_qp* qp);
int post_send(ibv_qp* qp, ibv_send_wr* wr, ibv_send_wr** bad_wr);
int post_recv(ibv_qp* qp, ibv_recv_wr* wr, ibv_recv_wr** bad_wr);

/// Throws hca::Error EINVAL unless `mask` is what the specification asks for and allows when a QP
/// of this type goes from one state to another (queue_pair_states.cpp).
void check_attributes(ibv_qp_type type, ibv_qp_state from, ibv_qp_state to, int mask);

/// The calls of ibv_qp_ex for the operations in `send_ops` (work_request_builder.cpp). Throws
/// hca::Error EOPNOTSUPP for those that the QP does not have.
void set_send_operations(QueuePair& qp, std::uint64_t send_ops);

}  // namespace weft::verbs
