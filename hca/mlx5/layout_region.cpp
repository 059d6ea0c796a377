#include "hca/mlx5/layout_region.hpp"

#include <algorithm>
#include <array>
#include <chrono>
#include <thread>
#include <utility>

namespace weft::hca::mlx5 {

namespace {

/// Bytes of a work request for entries, asked for as room for inline data: 16 for each, in units of
/// 64, on top of what every registration has.
constexpr std::uint32_t entry_room = 512;
constexpr std::uint32_t entries_in_room = entry_room / sizeof(mlx5_wqe_data_seg);
constexpr auto patience = std::chrono::seconds(10);

ibv_qp* create_qp(ibv_pd* pd, ibv_cq* cq, std::uint32_t room) {
  ibv_qp_init_attr_ex attr{};
  attr.send_cq = cq;
  attr.recv_cq = cq;
  attr.cap = {16, 1, 1, 1, room};
  attr.qp_type = IBV_QPT_RC;
  attr.pd = pd;
  attr.comp_mask = IBV_QP_INIT_ATTR_PD | IBV_QP_INIT_ATTR_SEND_OPS_FLAGS;
  attr.send_ops_flags = IBV_QP_EX_WITH_LOCAL_INV;
  mlx5dv_qp_init_attr card{};
  card.comp_mask = MLX5DV_QP_INIT_ATTR_MASK_SEND_OPS_FLAGS;
  card.send_ops_flags = MLX5DV_QP_EX_WITH_MR_INTERLEAVED | MLX5DV_QP_EX_WITH_MR_LIST;
  return mlx5dv_create_qp(pd->context, &attr, &card);
}

ibv_context* with_layouts(ibv_pd* pd) {
  if (!has_layouts(pd->context)) {
    throw Error(EOPNOTSUPP, std::string(ibv_get_device_name(pd->context->device)) +
                                " is not driven by libmlx5: layouts cannot be registered on it");
  }
  return pd->context;
}

}  // namespace

LayoutQueue::LayoutQueue(ibv_pd* pd) : pd_(pd), cq_(with_layouts(pd), 16) {
  qp_.reset(create_qp(pd, cq_.get(), entry_room));
  if (qp_) {
    limits_.max_list = entries_in_room;
    limits_.max_interleaved = entries_in_room - 1;
  } else {
    qp_.reset(made(create_qp(pd, cq_.get(), 0), "no QP to register layouts with"));
  }
  const std::uint8_t port = active_port(pd->context);
  connect(qp_.get(), port, endpoint_of(qp_.get(), port));
  requests_ = ibv_qp_to_qp_ex(qp_.get());
  layouts_ = mlx5dv_qp_ex_from_ibv_qp_ex(requests_);
}

void LayoutQueue::set(mlx5dv_mkey& key, bool had_one, CardLayout layout, unsigned access) {
  const std::scoped_lock guard(mutex_);
  if (broken_) throw Error(EIO, "the card failed at an earlier registration of a layout");
  ibv_wr_start(requests_);
  if (had_one) {
    requests_->wr_id = 0;
    requests_->wr_flags = 0;
    ibv_wr_local_inv(requests_, key.rkey);
  }
  requests_->wr_id = 1;
  requests_->wr_flags = IBV_SEND_INLINE | IBV_SEND_SIGNALED;
  if (layout.repeat != 0) {
    mlx5dv_wr_mr_interleaved(layouts_, &key, access, layout.repeat,
                             static_cast<std::uint16_t>(layout.interleaved.size()),
                             layout.interleaved.data());
  } else {
    mlx5dv_wr_mr_list(layouts_, &key, access, static_cast<std::uint16_t>(layout.list.size()),
                      layout.list.data());
  }
  succeeded(ibv_wr_complete(requests_), "the layout cannot be registered");
  broken_ = true;
  wait();
  broken_ = false;
}

void LayoutQueue::wait() {
  const auto end = std::chrono::steady_clock::now() + patience;
  std::array<Completion, 1> completion{};
  while (cq_.poll(completion) == 0) {
    if (std::chrono::steady_clock::now() > end) {
      throw Error(ETIMEDOUT, "the card has not registered a layout in " +
                                 std::to_string(patience.count()) + " s");
    }
    std::this_thread::yield();
  }
  if (completion[0].status != WcStatus::success) {
    throw Error(EIO, std::string("the registration of a layout failed: ") +
                         to_string(completion[0].status));
  }
}

namespace {

mlx5dv_mkey* create_key(const LayoutQueue& queue) {
  mlx5dv_mkey_init_attr attr{};
  attr.pd = queue.pd();
  attr.create_flags = MLX5DV_MKEY_INIT_ATTR_FLAGS_INDIRECT;
  attr.max_entries = static_cast<std::uint16_t>(queue.limits().max_list);
  return made(mlx5dv_create_mkey(&attr),
              "no indirect key of " + std::to_string(attr.max_entries) + " entries");
}

}  // namespace

LayoutRegion::LayoutRegion(std::shared_ptr<LayoutQueue> queue, unsigned access)
    : queue_(std::move(queue)), access_(access), key_(create_key(*queue_)) {}

void LayoutRegion::set(CardLayout layout) {
  const std::uint64_t length = layout.bytes;
  queue_->set(*key_, length_ != 0, std::move(layout), access_);
  length_ = length;
}

}  // namespace weft::hca::mlx5
