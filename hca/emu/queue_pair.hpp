// Reliable connected queue pairs (RC). What one QP posts is executed and completes in order; a send
// waits for its acknowledgement before the next request starts, since it may have to be repeated
// when the peer has no receive posted (RNR).
#pragma once

#include <cstdint>
#include <deque>
#include <memory>

#include "hca/emu/completion_queue.hpp"
#include "hca/emu/context.hpp"
#include "hca/emu/protection_domain.hpp"
#include "hca/emu/sge_list.hpp"

namespace weft::hca::emu {

enum class QpState : std::uint8_t { reset, init, rts, error };

struct QpCapabilities {
  std::uint32_t max_send_wr = 128;
  std::uint32_t max_recv_wr = 128;
  std::uint32_t max_send_sge = 16;
  std::uint32_t max_recv_sge = 16;
  /// Times a send is repeated when the peer had no receive; 7: without end.
  std::uint8_t rnr_retry = 7;
};

class QueuePair final : public ReceiveEnd {
 public:
  /// The domain and the queues belong to the same context and outlive the QP.
  /// Throws hca::Error ENOMEM when all QP numbers are taken.
  QueuePair(Context& context, ProtectionDomain& pd, CompletionQueue& send_cq,
            CompletionQueue& recv_cq, const QpCapabilities& capabilities = {});
  ~QueuePair() override;

  [[nodiscard]] std::uint32_t number() const noexcept { return number_; }
  [[nodiscard]] QpState state() const noexcept { return state_.load(std::memory_order_acquire); }

  /// To RTS, connected with a QP of a peer's context. Throws hca::Error: EINVAL (not in state
  /// init), and what Context::connect() throws.
  void connect(const Address& peer, std::uint32_t peer_qp);

  /// Throws hca::Error: EINVAL (state, too many SGEs, an atomic without 8 bytes for its result),
  /// ENOMEM (queue full). Everything else ends in a completion.
  void post_send(const SendWr& wr);
  void post_recv(const RecvWr& wr);

  /// Starts what may be started and reports what has ended; CompletionQueue::poll() calls it.
  void advance();

  // The receiving side, called by the engine.
  WcStatus begin(const Link& link, std::uint64_t length) noexcept override;
  void place(std::span<const std::byte> piece) noexcept override;
  void end(Immediate immediate) noexcept override;

 private:
  /// A send work request under way.
  struct Request : Operation {
    SendWr wr;
    std::shared_ptr<const SgeList> memory;
    bool started = false;
    bool finished = false;
    std::uint8_t repeats = 0;
    std::uint64_t not_before = 0;  ///< of a repeated send, ns
  };

  bool try_start(Request& request);
  bool post(Request& request, const LocalMemory& local);
  void report(const Request& request, WcStatus status);
  void flush() noexcept;
  void fail() noexcept;

  Context& context_;
  ProtectionDomain& pd_;
  CompletionQueue& send_cq_;
  CompletionQueue& recv_cq_;
  const QpCapabilities capabilities_;
  std::uint32_t number_ = 0;
  std::uint32_t peer_qp_ = 0;
  std::shared_ptr<Link> link_;
  std::atomic<QpState> state_{QpState::init};
  std::deque<std::unique_ptr<Request>> requests_;

  // Under the engine's lock.
  std::deque<RecvWr> receives_;
  std::shared_ptr<const SgeList> receiving_;
  std::uint64_t received_ = 0;
};

}  // namespace weft::hca::emu
