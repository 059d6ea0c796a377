// Engine: what the adapter's own processor does. It executes what peers ask of this process's
// memory and moves the pieces of this process's own operations. The application runs it from
// Context::progress(), a helper thread when the application does not attend.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <span>
#include <vector>

#include "hca/emu/domain.hpp"
#include "hca/emu/link.hpp"
#include "hca/emu/operation_table.hpp"
#include "hca/emu/sge_list.hpp"
#include "hca/emu/slot_pool.hpp"

namespace weft::hca::emu {

/// Where the requests to one QP go. Called under the engine's lock, in whatever thread runs it.
/// A status other than success is what the requester gets: rnr_retry_exc_err when nothing is posted
/// to receive into, retry_exc_err when a QP in this state would not answer at all.
class ReceiveEnd {
 public:
  virtual ~ReceiveEnd() = default;
  /// A message of `length` bytes begins. success: place() and end() follow.
  virtual WcStatus begin(const Link& link, std::uint64_t length,
                         const Envelope& envelope) noexcept = 0;
  virtual void place(std::span<const std::byte> piece) noexcept = 0;
  virtual WcStatus end(const Envelope& envelope) noexcept = 0;

  /// Whether an RDMA or atomic request may be executed now. `pd`: where its key must belong.
  virtual WcStatus admit(const Link& link, std::uint32_t psn, Access need,
                         std::uint32_t& pd) noexcept = 0;
  /// What was admitted has been executed; a WRITE of `length` bytes with an immediate takes a
  /// receive.
  virtual WcStatus executed(std::uint64_t length, const Envelope& envelope) noexcept = 0;
  /// What was admitted is refused with `status`.
  virtual void refused(WcStatus status) noexcept = 0;
  [[nodiscard]] virtual std::uint8_t rnr_timer() const noexcept = 0;
  /// A key goes, or stands for something else from now on: what uses it as an lkey ends.
  virtual void key_dropped(std::uint32_t key) noexcept = 0;
};

/// Who waits for room, for an answer or for a time to come.
class Waiter {
 public:
  virtual ~Waiter() = default;
  /// Called at the end of a pass, under the engine's lock; true to be called again after the next.
  virtual bool proceed() noexcept = 0;

 private:
  friend class Engine;
  bool waits_ = false;
};

/// An RDMA or atomic request that came from a peer.
struct RemoteRequest {
  std::uint64_t addr;
  std::uint64_t length;
  std::uint32_t rkey;
  std::uint32_t flags;
  std::uint16_t qp;
  Access need;
};

/// QP numbers within a context; 0 and 1 are the special QPs of the specification.
constexpr std::uint32_t first_qp = 2;
constexpr std::uint32_t qp_index_bits = 14;
constexpr std::uint32_t max_qps = (1u << qp_index_bits) - first_qp;

class Engine {
 public:
  /// `largest_piece`: of a transfer, in bytes; brought between 16 and 64 KiB.
  Engine(std::shared_ptr<Domain> domain, Segment& own, std::uint32_t largest_piece);
  ~Engine();
  Engine(const Engine&) = delete;
  Engine& operator=(const Engine&) = delete;

  [[nodiscard]] Domain& domain() noexcept { return *domain_; }
  [[nodiscard]] const std::shared_ptr<Domain>& shared_domain() const noexcept { return domain_; }
  [[nodiscard]] SpinLock& lock() noexcept { return domain_->lock_; }

  /// Streams and answers that wait for room; with none of them only the rings can bring work.
  [[nodiscard]] std::uint32_t waiting() const noexcept {
    return waiting_.load(std::memory_order_relaxed);
  }
  /// Whether a pass would find something to do. Under the lock.
  [[nodiscard]] bool has_work() const noexcept;
  [[nodiscard]] bool has_completed() const noexcept {
    return completed_flag_.load(std::memory_order_acquire);
  }

  /// One pass: takes what came in from the links `polled` and sends on what waits on any link;
  /// returns how many lines and pieces it moved. Takes the lock, or returns 0 when somebody else
  /// has it.
  unsigned try_advance(std::span<Link* const> polled) noexcept;
  /// Calls the completion functions of finished operations, in the caller's thread.
  unsigned complete() noexcept;

  // Under the lock.
  void add_link(Link* link);
  void remove_link(Link* link) noexcept;
  unsigned advance(std::span<Link* const> polled) noexcept;
  [[nodiscard]] std::span<Link* const> links() const noexcept { return links_; }
  /// The links on which something is under way, asked for by either side; among them may be some
  /// on which nothing is any more.
  [[nodiscard]] std::span<Link* const> busy_links() const noexcept { return busy_; }
  /// Ends whatever uses the key (called with the domain's lock held).
  void drop_key(std::uint32_t key) noexcept;
  /// The memory of a scatter-gather list; null when a key does not cover its piece.
  bool resolve(SgeMemory& memory, std::span<const Sge> sges, Access need, std::uint32_t pd) const {
    return memory.resolve(domain_->keys_, sges, need, pd);
  }
  /// Has `waiter` called at the end of the next pass.
  void await(Waiter* waiter);
  void forget(Waiter* waiter) noexcept;
  /// Takes back an operation that was posted: it is not completed and touches no memory any more.
  void abandon(Operation* op) noexcept;
  /// Number of a new QP whose sends go to `end`; 0 when all are taken.
  std::uint32_t add_receive_end(ReceiveEnd* end);
  void remove_receive_end(std::uint32_t qp) noexcept;
  /// Completes a dead peer's operations with retry_exc_err and forgets what it asked for.
  void fail_link(Link& link) noexcept;

  // Posting under the lock on a link that is alive; false when there is no room.
  bool place_read(Link& link, Operation* op, const LocalMemory& local, const RemoteMemory& remote,
                  std::uint64_t length, const Envelope& envelope);
  bool place_write(Link& link, Operation* op, const LocalMemory& local, const RemoteMemory& remote,
                   std::uint64_t length, const Envelope& envelope);
  bool place_send(Link& link, Operation* op, const LocalMemory& local, std::uint64_t length,
                  const Envelope& envelope);
  bool place_atomic(Link& link, Operation* op, AtomicOp code, std::uint32_t size,
                    const RemoteMemory& remote, std::uint64_t operand, std::uint64_t compare,
                    const Envelope& envelope);

  // Posting for who does not hold the lock.
  bool post_read(Link& link, Operation* op, const LocalMemory& local, const RemoteMemory& remote,
                 std::uint64_t length);
  bool post_write(Link& link, Operation* op, const LocalMemory& local, const RemoteMemory& remote,
                  std::uint64_t length);
  bool post_write_short(Link& link, Operation* op, const void* data, std::uint32_t length,
                        const RemoteMemory& remote);
  bool post_atomic(Link& link, Operation* op, AtomicOp code, std::uint32_t size,
                   const RemoteMemory& remote, std::uint64_t operand, std::uint64_t compare);

 private:
  void make_busy(Link& link) noexcept;

  // As initiator.
  void queue_stream(Link& link, Operation* op);
  static bool is_waiting(const Link& link, const Operation* op) noexcept;
  bool may_post(Link& link) noexcept;
  bool start(Link& link, Operation* op, Operation::Kind kind, const LocalMemory& local,
             const RemoteMemory& remote, std::uint64_t length);
  void started(Link& link, bool changes_memory) noexcept;
  void finish(Operation* op, WcStatus status) noexcept;
  unsigned send_writes(Link& link) noexcept;
  void take_read_data(Link& link, const Line* line) noexcept;
  void take_read_inline(Link& link, const Line* line, std::size_t length) noexcept;
  void take_ack(Link& link, const Line* line) noexcept;

  // As responder.
  unsigned take_lines(Link& link) noexcept;
  void take_line(Link& link, Line* line, std::size_t length) noexcept;
  void serve_write_inline(Link& link, const Line* line, std::size_t length) noexcept;
  void serve_write_data(Link& link, const Line* line) noexcept;
  void serve_read_request(Link& link, const Line* line) noexcept;
  void serve_send(Link& link, Line* line, std::size_t length) noexcept;
  void serve_atomic(Link& link, const Line* line) noexcept;
  unsigned send_read_data(Link& link) noexcept;
  ReceiveEnd* receive_end(std::uint16_t qp) const noexcept;
  WcStatus admit(const Link& link, const RemoteRequest& request, const Region*& region) noexcept;
  WcStatus executed(const RemoteRequest& request, const Envelope& envelope) noexcept;
  unsigned proceed() noexcept;
  void acknowledge(Link& link, std::uint32_t op, WcStatus status, std::uint16_t qp = 0) noexcept;
  template <class Fields>
  void answer(Link& link, WireOp op, const Fields& fields) noexcept;
  void send_answers(Link& link) noexcept;
  /// The peer's slot of that number if it is one that holds `length` bytes, null otherwise.
  static Slot* slot_of(const Link& link, std::uint32_t slot, std::uint32_t length) noexcept;
  std::uint32_t acquire_slot(const Link& link, std::uint32_t length) noexcept;

  std::shared_ptr<Domain> domain_;
  Segment& own_;
  const std::uint32_t largest_piece_;
  SlotPool small_slots_;
  SlotPool large_slots_;
  OperationTable operations_;
  std::vector<Link*> links_;
  std::vector<Link*> busy_;  ///< so that a pass costs nothing for the others
  std::vector<Waiter*> waiters_;
  std::vector<Waiter*> called_;            ///< those of this pass
  std::vector<ReceiveEnd*> receive_ends_;  ///< by QP number, from 2 on (0 and 1 are special QPs)
  std::atomic<std::uint32_t> waiting_{0};
  Operation* completed_ = nullptr;
  Operation** completed_end_ = &completed_;
  std::atomic<bool> completed_flag_{false};
};

}  // namespace weft::hca::emu
