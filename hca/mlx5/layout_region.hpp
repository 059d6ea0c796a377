// Layout MRs: an indirect key of the card, and the QP by whose work requests it gets its layouts.
#pragma once

#include <infiniband/mlx5dv.h>
#include <infiniband/verbs.h>

#include <cstdint>
#include <memory>
#include <mutex>

#include "hca/mlx5/handle.hpp"
#include "hca/mlx5/layout_translation.hpp"
#include "hca/mlx5/queue_pair.hpp"

namespace weft::hca::mlx5 {

/// An RC QP that is connected to itself: the registration of a layout is a work request. Thread
/// safe.
class LayoutQueue {
 public:
  /// Throws hca::Error: EOPNOTSUPP (not driven by libmlx5), ENETDOWN, or errno of what failed.
  explicit LayoutQueue(ibv_pd* pd);

  [[nodiscard]] const CardLimits& limits() const noexcept { return limits_; }
  [[nodiscard]] ibv_pd* pd() const noexcept { return pd_; }
  /// Gives the key a layout, valid on return; `had_one`: the one it has is invalidated before.
  /// Throws hca::Error: what ibv_wr_complete says, and the old layout is valid; EIO, ETIMEDOUT (the
  /// card failed), and the key stands for nothing and this queue is of no use any more.
  void set(mlx5dv_mkey& key, bool had_one, CardLayout layout, unsigned access);

 private:
  void wait();

  ibv_pd* pd_;
  CardLimits limits_;
  CompletionQueue cq_;
  Handle<ibv_qp, ibv_destroy_qp> qp_;
  ibv_qp_ex* requests_ = nullptr;
  mlx5dv_qp_ex* layouts_ = nullptr;
  std::mutex mutex_;
  bool broken_ = false;
};

/// An indirect key with room for every layout that its queue can register: it keeps its number.
class LayoutRegion {
 public:
  /// Without a layout yet. `access`: ibv_access_flags. Throws hca::Error.
  LayoutRegion(std::shared_ptr<LayoutQueue> queue, unsigned access);

  /// As LayoutQueue::set(). A layout within the limits of that queue.
  void set(CardLayout layout);

  [[nodiscard]] LayoutQueue& queue() const noexcept { return *queue_; }
  [[nodiscard]] std::uint32_t lkey() const noexcept { return key_->lkey; }
  [[nodiscard]] std::uint32_t rkey() const noexcept { return key_->rkey; }
  /// Bytes of its layout; 0: it has none.
  [[nodiscard]] std::uint64_t length() const noexcept { return length_; }

 private:
  std::shared_ptr<LayoutQueue> queue_;
  unsigned access_;
  Handle<mlx5dv_mkey, mlx5dv_destroy_mkey> key_;
  std::uint64_t length_ = 0;
};

}  // namespace weft::hca::mlx5
