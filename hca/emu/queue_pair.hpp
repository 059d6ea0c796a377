// Queue pairs: reliable connected (RC), unreliable connected (UC), datagram (UD).
//
// The requests of an RC QP are numbered (PSN, one per request). Its peer executes them in that
// order only; what it could not take (no receive posted, not yet in state RTR) and all that comes
// after is dropped there and sent again from here. All is done under the engine's lock, by whatever
// thread runs the engine.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "hca/emu/completion_queue.hpp"
#include "hca/emu/context.hpp"
#include "hca/emu/protection_domain.hpp"
#include "hca/emu/receive_queue.hpp"
#include "hca/emu/sge_list.hpp"

namespace weft::hca::emu {

enum class QpType : std::uint8_t { rc, uc, ud };
enum class QpState : std::uint8_t { reset, init, rtr, rts, sqd, error };

struct QpCapabilities {
  std::uint32_t max_send_wr = 128;
  std::uint32_t max_recv_wr = 128;
  std::uint32_t max_send_sge = 16;
  std::uint32_t max_recv_sge = 16;
  std::uint32_t max_inline_data = 512;
};

/// What QueuePair::modify() sets; times are encoded as the IB specification encodes them.
struct QpAttributes {
  /// What peers may do through this QP.
  Access access = Access::remote_write | Access::remote_read | Access::remote_atomic;
  std::optional<Address> peer{};  ///< none: a connected QP that nobody answers
  std::uint32_t peer_qp = 0;
  std::uint32_t qkey = 0;
  std::uint32_t send_psn = 0;
  std::uint32_t recv_psn = 0;
  std::uint32_t path_mtu = 4096;
  std::uint8_t min_rnr_timer = 1;  ///< 10 us
  std::uint8_t timeout = 14;       ///< 4.096 us * 2^timeout; 0: for ever
  std::uint8_t retry_count = 7;
  /// Times a send is repeated when the peer had no receive; 7: without end.
  std::uint8_t rnr_retry = 7;
  std::uint8_t max_reads = 16;         ///< reads and atomics under way
  std::uint8_t max_served_reads = 16;  ///< 0: none is served
};

/// Asynchronous events of a QP (IB specification 11.6.3).
enum class QpEvent : std::uint8_t {
  communication_established,
  send_queue_drained,
  last_wqe_reached,
  access_error,
  request_error,
};

/// The longest message, and the longest datagram.
constexpr std::uint64_t max_message = std::uint64_t{1} << 30;
constexpr std::uint32_t grh_bytes = 40;

class QueuePair final : public ReceiveEnd, private Waiter {
 public:
  /// The domain and the queues belong to the same context and outlive the QP; `srq` null: it has a
  /// receive queue of its own. In state RESET. Throws hca::Error ENOMEM when all QP numbers are
  /// taken.
  QueuePair(Context& context, ProtectionDomain& pd, CompletionQueue& send_cq,
            CompletionQueue& recv_cq, const QpCapabilities& capabilities = {},
            QpType type = QpType::rc, ReceiveQueue* srq = nullptr);
  ~QueuePair() override;

  /// Unique on the device while the QP lives: 24 bits.
  [[nodiscard]] std::uint32_t number() const noexcept { return number_; }
  [[nodiscard]] QpType type() const noexcept { return type_; }
  [[nodiscard]] QpState state() const noexcept { return state_.load(std::memory_order_acquire); }
  [[nodiscard]] QpAttributes attributes() const;
  [[nodiscard]] const QpCapabilities& capabilities() const noexcept { return capabilities_; }

  /// Goes to `to` with these attributes; the same state: only the attributes change. Throws
  /// hca::Error EINVAL for a transition that the specification does not have; then nothing changes.
  /// To RESET: what was posted and not yet polled is gone. To ERROR: it is flushed.
  void modify(QpState to, const QpAttributes& attributes);
  /// From RESET or INIT to RTS, connected with a QP of a peer's context.
  void connect(const Address& peer, std::uint32_t peer_qp, QpAttributes attributes = {});

  /// Throws hca::Error: EINVAL (state, too many SGEs, an opcode that the type does not have, an
  /// atomic without 8 bytes for its result), ENOMEM (queue full). Everything else ends in a
  /// completion.
  void post_send(const SendWr& wr) { post_send(std::span(&wr, 1)); }
  /// All of them or, when it throws, none.
  void post_send(std::span<const SendWr> wrs);
  /// As ReceiveQueue::post(); EINVAL also in state RESET and with an SRQ.
  void post_recv(const RecvWr& wr);

  using EventHandler = void (*)(void* arg, QpEvent event);
  /// `handler` runs under the engine's lock, in any thread.
  void set_event_handler(EventHandler handler, void* arg) noexcept {
    event_handler_ = handler;
    event_arg_ = arg;
  }

  // The receiving side, called by the engine.
  WcStatus begin(const Link& link, std::uint64_t length,
                 const Envelope& envelope) noexcept override;
  void place(std::span<const std::byte> piece) noexcept override;
  WcStatus end(const Envelope& envelope) noexcept override;
  WcStatus admit(const Link& link, std::uint32_t psn, Access need,
                 std::uint32_t& pd) noexcept override;
  WcStatus executed(std::uint64_t length, const Envelope& envelope) noexcept override;
  void refused(WcStatus status) noexcept override;
  [[nodiscard]] std::uint8_t rnr_timer() const noexcept override {
    return attributes_.min_rnr_timer;
  }
  void key_dropped(std::uint32_t key) noexcept override;

 private:
  /// A send work request in the send queue.
  struct Request : Operation {
    QueuePair* qp = nullptr;
    std::uint64_t wr_id = 0;
    SgeMemory memory{};
    RemoteMemory remote{};
    std::uint64_t operand = 0;
    std::uint64_t compare = 0;
    std::uint64_t give_up_at = 0;  ///< ns; when nobody answers
    std::uint32_t sges = 0;
    std::uint32_t psn = 0;
    Destination destination{};
    std::function<WcStatus()> work{};
    Immediate immediate{};
    WrOpcode opcode = WrOpcode::send;
    std::uint8_t repeats = 0;
    bool signaled = false;
    bool fence = false;
    bool solicited = false;
    bool invalidate = false;
    bool inlined = false;
    bool posted = false;  ///< it is with the engine
    bool finished = false;
  };

  // Under the engine's lock.
  bool proceed() noexcept override;
  void check(const SendWr& wr) const;
  void enqueue(const SendWr& wr);
  void start_more() noexcept;
  bool try_start(Request& request) noexcept;
  bool place(Request& request, Link& link) noexcept;
  void take_end(Request& request, WcStatus status) noexcept;
  void end_locally(Request& request, WcStatus status) noexcept;
  void report_finished() noexcept;
  bool may_repeat(Request& request) noexcept;
  void report(Request& request, WcStatus status) noexcept;
  void clear() noexcept;
  void flush() noexcept;
  void fail() noexcept;
  void flush_receives() noexcept;
  bool take_receive(std::uint64_t& wr_id, SgeMemory* memory, bool& sound) noexcept;
  void write_grh(std::uint64_t length) noexcept;
  [[nodiscard]] bool may_invalidate(std::uint32_t key) const noexcept;
  void raise(QpEvent event) noexcept;
  void establish() noexcept;
  [[nodiscard]] bool receives() const noexcept;
  [[nodiscard]] Request& slot(std::uint32_t index) noexcept {
    return requests_[index & (requests_.size() - 1)];
  }
  [[nodiscard]] std::span<Sge> sges_of(const Request& request) noexcept;
  [[nodiscard]] std::byte* inline_data_of(const Request& request) noexcept;

  Context& context_;
  Engine& engine_;
  ProtectionDomain& pd_;
  CompletionQueue& send_cq_;
  CompletionQueue& recv_cq_;
  QpCapabilities capabilities_;
  const QpType type_;
  std::uint32_t number_ = 0;
  std::unique_ptr<ReceiveQueue> own_queue_;
  ReceiveQueue* const receive_queue_;
  EventHandler event_handler_ = nullptr;
  void* event_arg_ = nullptr;

  // Under the engine's lock.
  std::atomic<QpState> state_{QpState::reset};  ///< read by anybody
  QpAttributes attributes_{};
  std::shared_ptr<Link> link_;
  std::vector<Request> requests_;  ///< a ring: [head_, next_) started, [next_, tail_) not yet
  std::vector<Sge> sges_;
  std::vector<std::byte> inline_data_;
  std::uint32_t head_ = 0;
  std::uint32_t next_ = 0;
  std::uint32_t tail_ = 0;
  std::uint32_t in_flight_ = 0;
  std::uint32_t reads_in_flight_ = 0;
  std::uint32_t send_psn_ = 0;
  bool rewinding_ = false;  ///< from head_ on all is sent again, not before `not_before_`
  std::uint64_t not_before_ = 0;

  std::uint32_t expected_psn_ = 0;
  bool established_ = false;
  bool receiving_ = false;  ///< a receive was taken and is not complete
  std::uint64_t receive_id_ = 0;
  SgeMemory receive_memory_{};
  std::vector<std::uint32_t> receive_keys_;  ///< its lkeys, when it is filled in several pieces
  bool receive_broken_ = false;              ///< one of them went: the QP fails
  std::uint64_t received_ = 0;
};

}  // namespace weft::hca::emu
