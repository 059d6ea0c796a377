// Context: one open of the emulated HCA by one process.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "hca/emu/address.hpp"
#include "hca/emu/device_file.hpp"
#include "hca/emu/domain.hpp"
#include "hca/emu/engine.hpp"
#include "hca/emu/helper.hpp"
#include "hca/emu/link.hpp"
#include "hca/emu/segment.hpp"

namespace weft::hca::emu {

struct ContextOptions {
  std::string device = default_device;
  /// The keys to work with; null: keys of its own.
  std::shared_ptr<Domain> domain{};
  /// What the context is for, shown by weft-info; at most 15 characters.
  std::string purpose{};
  /// Let the helper thread carry on own operations as soon as they are posted, not only when a peer
  /// finds nobody attending.
  bool eager_helper = false;
  /// Of a transfer, in bytes, so that the pieces stay in the cache; brought between 16 and 64 KiB.
  std::uint32_t largest_piece = 64 * 1024;
  /// Called with the pages of the rings, which peers write and this process reads, before anybody
  /// has touched them: say there where their memory is to come from.
  void (*place_rings)(void* memory, std::size_t bytes) = nullptr;
};

class Context {
 public:
  /// Opens the device. Throws hca::Error: ENOSPC (no shared memory), EACCES, EPROTO (a device file
  /// of another version).
  static std::unique_ptr<Context> open(const ContextOptions& options = {});
  ~Context();
  Context(const Context&) = delete;
  Context& operator=(const Context&) = delete;

  [[nodiscard]] const Address& address() const noexcept { return segment_.header().self; }
  [[nodiscard]] Domain& domain() noexcept { return engine_.domain(); }
  [[nodiscard]] const std::shared_ptr<Domain>& shared_domain() noexcept {
    return engine_.shared_domain();
  }
  [[nodiscard]] Engine& engine() noexcept { return engine_; }
  [[nodiscard]] DeviceFile& device() noexcept { return device_; }
  /// True when the peer is on this node, of this user and of this version; itself included.
  [[nodiscard]] bool reachable(const Address& peer) const noexcept;

  /// The link to a peer, one per pair of contexts. Throws hca::Error: EHOSTUNREACH the peer is
  /// gone, ENOSPC all its ports are taken, EPROTO, EACCES.
  std::shared_ptr<Link> connect(const Address& peer);

  std::uint32_t register_region(Region region) {
    return domain().register_region(std::move(region));
  }
  void deregister(std::uint32_t key) { domain().deregister(key); }

  /// Takes an active message. It may post and must not call progress(); the bytes are gone when it
  /// returns.
  using AmHandler = void (*)(void* arg, std::uint8_t id, std::byte* data, std::size_t length);
  void set_am_handler(AmHandler handler, void* arg) noexcept {
    am_handler_ = handler;
    am_arg_ = arg;
  }
  /// Called from progress() when a link's peer was found dead.
  using FailureHandler = void (*)(void* arg, Link& link);
  void set_failure_handler(FailureHandler handler, void* arg) noexcept {
    failure_handler_ = handler;
    failure_arg_ = arg;
  }

  /// Delivers active messages, executes what peers ask for, completes operations. Returns how many
  /// events it handled. One thread at a time.
  unsigned progress() {
    segment_.header().attended.store(++attended_, std::memory_order_relaxed);
    unsigned events = 0;
    bool wire = engine_.waiting() != 0;
    for (std::size_t i = 0; i < hot_.size(); ++i) {
      Link& link = *hot_[i];
      if (link.incoming_.peek() != nullptr) events += deliver(link);
      if (link.incoming_wire_.peek() != nullptr) {
        wire = true;
        latest_ = &link;
        link.idle_ = 0;
      }
    }
    if (wire) events += engine_.try_advance(hot_);
    if (engine_.has_completed()) events += engine_.complete();
    if ((attended_ & 15) == 0) [[unlikely]] {
      look_around(events == 0);
    }
    return events;
  }

  /// The peer that a message or request came from last, as it told when it last waited.
  struct Waiting {
    std::uint32_t core;
    std::uint32_t pid;
  };
  /// Tells peers that this process waits on `core`; nothing when nobody has sent anything yet, or
  /// that peer does not wait like this, or it is this context itself. For the thread that calls
  /// progress().
  std::optional<Waiting> wait_on(std::uint32_t core) noexcept;
  /// Takes back what wait_on() told.
  void wait_nowhere() noexcept;

  /// progress() unless another thread is at it. For contexts that several threads use: all of them
  /// must call this.
  unsigned try_progress() {
    if (!progress_lock_.try_lock()) return 0;
    const unsigned events = progress();
    progress_lock_.unlock();
    return events;
  }

  /// The QP numbers of this context have this in their upper bits.
  [[nodiscard]] std::uint32_t qp_base() const noexcept { return device_.entry() << qp_index_bits; }
  /// The context that a QP number belongs to; nothing when there is none.
  [[nodiscard]] std::optional<Address> owner_of_qp(std::uint32_t number) const noexcept {
    return device_.address_of(number >> qp_index_bits);
  }
  /// The device's GID: link-local, the same for all contexts of a node.
  [[nodiscard]] std::array<std::byte, 16> gid() const noexcept;

  /// The helper thread executes peers' requests even while nobody calls progress().
  void start_helper() noexcept { helper_.start(); }
  /// Has the helper look after what waits for room or time, in case nobody calls progress().
  void watch() noexcept { helper_.watch(); }
  /// A completion queue waits for its event (count 1) or has had it (-1): while one waits, peers
  /// that post wake the helper.
  void expect_events(int count) noexcept;
  /// Something was posted: when this process may be about to sleep, nobody would look whether its
  /// peer attends, so that peer's helper is woken now. Under the engine's lock.
  void wake_peer(const Link& link) const noexcept {
    if (events_expected_.load(std::memory_order_relaxed) > 0) Helper::wake(*link.header_);
  }

  /// A descriptor that becomes readable when there is work for progress() after arm().
  int event_fd();
  /// False when there is work already (call progress() first). Thread-safe towards peers only.
  bool arm();

 private:
  friend class Helper;
  friend class Link;

  explicit Context(const ContextOptions& options);

  unsigned deliver(Link& link);
  void look_around(bool idle);
  void look_at_stalled_peers();
  void tell_waits_on(std::uint32_t core_from_1) noexcept;
  void look_for_the_dead();
  bool arm_helper() noexcept;
  [[nodiscard]] bool is_under_way() noexcept;
  void attend_to_the_dead() noexcept;
  void heat(Link& link);
  void cool_idle_links();
  bool probe_cold_link();
  [[nodiscard]] bool work_in_rings() const noexcept;

  // Under the engine's lock.
  std::shared_ptr<Link> make_link(const Address& peer);
  [[nodiscard]] std::uint32_t ports_used() const noexcept;
  void accept_ports();
  void accept(std::uint32_t port);
  void vacate(std::uint32_t port) noexcept;

  DeviceFile device_;
  Segment segment_;
  Engine engine_;
  std::vector<std::shared_ptr<Link>> links_;        ///< engine's lock
  std::vector<Link*> by_port_;                      ///< engine's lock; port -> link
  std::atomic<std::uint32_t> accepted_changes_{0};  ///< written under the engine's lock
  std::uint32_t next_link_id_ = 1;
  std::atomic<std::uint32_t> arrivals_{0};  ///< how many links were made

  // Of the thread that calls progress().
  std::vector<Link*> hot_;
  std::vector<Link*> cold_;
  Link* latest_ = nullptr;  ///< whom something came from last
  std::uint32_t arrived_ = 0;
  std::uint64_t attended_ = 0;
  std::uint64_t idle_ = 0;
  std::uint64_t next_stall_look_ = 0;
  std::uint64_t next_death_look_ = 0;
  std::size_t cold_probe_ = 0;
  std::size_t next_death_link_ = 0;
  SpinLock progress_lock_;
  std::atomic<int> events_expected_{0};
  SlotPool am_slots_;
  AmHandler am_handler_ = nullptr;
  void* am_arg_ = nullptr;
  FailureHandler failure_handler_ = nullptr;
  void* failure_arg_ = nullptr;
  bool eager_helper_ = false;
  Helper helper_;
};

}  // namespace weft::hca::emu
