// Context: one open of the emulated HCA by one process. Link: its wire to one other context.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>

#include "hca/access.hpp"
#include "hca/emu/address.hpp"
#include "hca/emu/operation.hpp"
#include "hca/layout.hpp"

namespace weft::hca::emu {

class Link;
class Engine;

struct ContextOptions {
  std::string device = "weft0";
  bool helper_thread = true;  ///< started with the first connection; sleeps until a peer rings
};

/// What a key stands for.
struct Region {
  std::uint64_t addr = 0;    ///< first address by which the key is used (0: zero-based)
  std::uint64_t length = 0;  ///< bytes that the key covers
  std::byte* base = nullptr;  ///< where they are; with a layout, the base of its offsets
  LayoutPtr layout{};         ///< null: contiguous
  Access access = Access::all;
  std::uint32_t pd = 0;
};

/// Limits of the wire that callers plan with.
struct WireLimits {
  static constexpr std::size_t max_short = 1024;        ///< am_short, header of 8 bytes included
  static constexpr std::size_t max_bcopy = 16 * 1024;   ///< am_reserve, one bulk slot
  static constexpr std::size_t max_write_short = 1024;  ///< write_short
};

class Context {
 public:
  /// Opens the device (errors: ENOSPC no shared memory, EACCES, EPROTO another version of the file).
  static std::unique_ptr<Context> open(const ContextOptions& options = {});
  ~Context();
  Context(const Context&) = delete;
  Context& operator=(const Context&) = delete;

  [[nodiscard]] const Address& address() const noexcept;
  /// True when the peer is on this node, of this user and of this version; itself included.
  [[nodiscard]] bool reachable(const Address& peer) const noexcept;

  /// The link to a peer: one per pair of contexts, shared by its users, closed with the last of
  /// them. Throws hca::Error: EHOSTUNREACH the peer is gone, ENOSPC it has no free port.
  std::shared_ptr<Link> connect(const Address& peer);

  /// Enters a region and returns its key (lkey and rkey in one; never 0).
  std::uint32_t register_region(Region region);
  /// Invalidates the key; returns when no operation holds it. EINVAL for a key that is not there.
  void deregister(std::uint32_t key);

  /// Handler of active messages: `void(std::uint8_t id, std::span<std::byte> message)`; it may post
  /// and must not call progress. The bytes are gone when it returns.
  using AmHandler = void (*)(void* arg, std::uint8_t id, std::byte* data, std::size_t length);
  void set_am_handler(AmHandler handler, void* arg) noexcept;

  /// Delivers active messages, executes what peers ask for, completes operations.
  /// Returns how many events it handled. One thread at a time.
  unsigned progress();

  /// A descriptor that becomes readable when progress() would find work after arm().
  [[nodiscard]] int event_fd();
  /// False when there is work already (call progress first).
  bool arm();

 private:
  friend class Link;
  Context();
  std::unique_ptr<Engine> engine_;
};

/// The calls return false when there is no room: call progress() and try again. Nothing was posted
/// then. Messages of one link arrive in order, and after every write posted before them.
class Link {
 public:
  virtual ~Link() = default;

  /// Sends 8 + length bytes, at most WireLimits::max_short in all.
  virtual bool am_short(std::uint8_t id, std::uint64_t header, const void* payload,
                        std::uint32_t length) = 0;
  /// Room for a message of up to `max` bytes, null when there is none. Fill it, then commit; nothing
  /// else may be sent on the link in between.
  virtual std::byte* am_reserve(std::size_t max) = 0;
  virtual void am_commit(std::uint8_t id, std::size_t length) = 0;

  /// RDMA READ into, RDMA WRITE from local memory; any length.
  virtual bool read(Operation* op, const LocalMemory& local, const RemoteMemory& remote,
                    std::uint64_t length) = 0;
  virtual bool write(Operation* op, const LocalMemory& local, const RemoteMemory& remote,
                     std::uint64_t length) = 0;
  /// RDMA WRITE of a few bytes, copied before return. `op` may be null.
  virtual bool write_short(Operation* op, const void* data, std::uint32_t length,
                           const RemoteMemory& remote) = 0;
  /// Atomic on 4 or 8 naturally aligned bytes; `op` may be null (nobody wants the old value).
  virtual bool atomic(Operation* op, AtomicOp code, std::uint32_t size, const RemoteMemory& remote,
                      std::uint64_t operand, std::uint64_t compare) = 0;

  /// Reads, writes and atomics posted and not yet acknowledged by the peer.
  [[nodiscard]] virtual std::uint64_t outstanding() const noexcept = 0;
  /// Every operation posted later waits for all that were posted before.
  virtual void fence() noexcept = 0;
  /// False once the peer is known to be dead; its operations complete with retry_exc_err.
  [[nodiscard]] virtual bool alive() const noexcept = 0;
  /// Looks whether the peer's process still exists (a system call).
  virtual bool check_alive() noexcept = 0;
};

}  // namespace weft::hca::emu
