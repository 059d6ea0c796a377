// Receive queues: of one QP, or shared by many (SRQ).
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "hca/emu/context.hpp"
#include "hca/emu/protection_domain.hpp"
#include "hca/emu/work_request.hpp"

namespace weft::hca::emu {

/// Receive requests, taken in the order in which they were posted. As many as asked for, rounded up
/// to a power of two.
class ReceiveQueue {
 public:
  ReceiveQueue(Context& context, ProtectionDomain& pd, std::uint32_t max_wr, std::uint32_t max_sge);

  /// Throws hca::Error: EINVAL (too many SGEs), ENOMEM (queue full).
  void post(const RecvWr& wr);

  /// Of an SRQ: `reached` is called once, under the engine's lock, when fewer than `limit` requests
  /// are left. 0: never.
  using LimitReached = void (*)(void* arg);
  void set_limit(std::uint32_t limit) noexcept;
  void on_limit(LimitReached reached, void* arg) noexcept {
    limit_reached_ = reached;
    limit_arg_ = arg;
  }
  /// Keeps what is posted. Throws hca::Error EINVAL when more than `max_wr` are.
  void resize(std::uint32_t max_wr);

  [[nodiscard]] std::uint32_t max_wr() const noexcept { return max_wr_; }
  [[nodiscard]] std::uint32_t max_sge() const noexcept { return max_sge_; }
  [[nodiscard]] std::uint32_t limit() const noexcept { return limit_; }

  // Under the engine's lock.
  struct Entry {
    std::uint64_t wr_id;
    std::span<const Sge> sges;
  };
  [[nodiscard]] bool empty() const noexcept { return head_ == tail_; }
  [[nodiscard]] Entry front() const noexcept;
  void pop() noexcept;
  [[nodiscard]] const ProtectionDomain& pd() const noexcept { return pd_; }

 private:
  struct Slot {
    std::uint64_t wr_id;
    std::uint32_t count;
  };
  [[nodiscard]] std::size_t at(std::uint32_t index) const noexcept { return index % max_wr_; }

  Context& context_;
  ProtectionDomain& pd_;
  std::uint32_t max_wr_;
  std::uint32_t max_sge_;
  std::vector<Slot> slots_;
  std::vector<Sge> sges_;  ///< max_sge_ of each slot
  std::uint32_t head_ = 0;
  std::uint32_t tail_ = 0;
  std::uint32_t limit_ = 0;
  LimitReached limit_reached_ = nullptr;
  void* limit_arg_ = nullptr;
};

}  // namespace weft::hca::emu
