// The calls that libibverbs' header makes through pointers in the context. What the device has not
// (flows, XRC, counters, work queues) stays null: the header answers EOPNOTSUPP then.
#include "verbs/completion_queue.hpp"
#include "verbs/context.hpp"
#include "verbs/device_memory.hpp"
#include "verbs/memory_region.hpp"
#include "verbs/memory_window.hpp"
#include "verbs/protection_domain.hpp"
#include "verbs/queue_pair.hpp"
#include "verbs/shared_receive_queue.hpp"

namespace weft::verbs {

void set_operations(Context& context) {
  context.query_port = query_port;
  context.advise_mr = advise_mr;
  context.alloc_null_mr = alloc_null_mr;
  context.reg_dm_mr = reg_dm_mr;
  context.alloc_dm = alloc_dm;
  context.free_dm = free_dm;
  context.alloc_parent_domain = alloc_parent_domain;
  context.alloc_td = alloc_td;
  context.dealloc_td = dealloc_td;
  context.modify_cq = modify_cq;
  context.query_rt_values = query_rt_values;
  context.create_cq_ex = create_cq_ex;
  context.query_device_ex = query_device_ex;
  context.create_qp_ex = create_qp_ex;
  context.create_srq_ex = create_srq_ex;
  context.get_srq_num = get_srq_num;
  ibv_context_ops& ops = context.context.ops;
  ops.alloc_mw = alloc_mw;
  ops.bind_mw = bind_mw;
  ops.dealloc_mw = dealloc_mw;
  ops.poll_cq = poll_cq;
  ops.req_notify_cq = req_notify_cq;
  ops.post_srq_recv = post_srq_recv;
  ops.post_send = post_send;
  ops.post_recv = post_recv;
}

}  // namespace weft::verbs
