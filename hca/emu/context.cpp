#include "hca/emu/context.hpp"

#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <mutex>
#include <span>
#include <utility>

#include "hca/emu/clock.hpp"
#include "hca/emu/membarrier.hpp"
#include "hca/emu/process_id.hpp"
#include "hca/peer_distance.hpp"
#include "hca/status.hpp"

namespace weft::hca::emu {

namespace {

/// Messages delivered from one link before the others have their turn.
constexpr unsigned messages_per_pass = 16;
/// Links polled on every call; with more of them, those that stay silent for `polls_until_cold`
/// calls are polled only when their peer rings, and one of them now and then in case a ring was
/// lost.
constexpr std::size_t links_always_hot = 4;
constexpr std::uint32_t polls_until_cold = 4096;

constexpr std::uint64_t us = 1'000;
constexpr std::uint64_t ms = 1'000'000;
constexpr std::uint64_t stall_look_every = 20 * us;
constexpr std::uint64_t death_look_every = 200 * ms;
/// Peers looked up each time beside those with something under way: a look takes some 20 us, so
/// that many silent peers would cost a part of the time, and hold the engine's lock for long.
constexpr std::size_t deaths_looked_for = 8;

}  // namespace

Context::Context(const ContextOptions& options)
    : device_(options.device),
      segment_(Segment::create(options.device)),
      engine_(options.domain ? options.domain : std::make_shared<Domain>(), segment_,
              options.largest_piece),
      by_port_(port_count, nullptr),
      eager_helper_(options.eager_helper),
      helper_(*this) {
  if (options.place_rings != nullptr) {
    const std::span<std::byte> rings = segment_.rings();
    options.place_rings(rings.data(), rings.size());
  }
  am_slots_.attach(&segment_, message_slots);
  device_.announce(address(), options.purpose);
}

std::unique_ptr<Context> Context::open(const ContextOptions& options) {
  return std::unique_ptr<Context>(new Context(options));
}

Context::~Context() {
  helper_.stop();
  const std::scoped_lock guard(engine_.lock());
  for (const auto& link : links_) {
    engine_.fail_link(*link);
    engine_.remove_link(link.get());
  }
}

bool Context::reachable(const Address& peer) const noexcept {
  const Address& self = address();
  return peer.host == self.host && peer.uid == self.uid && peer.abi == self.abi;
}

std::shared_ptr<Link> Context::connect(const Address& peer) {
  if (!reachable(peer)) {
    throw Error(EHOSTUNREACH,
                "process " + std::to_string(peer.pid) +
                    " is on another node or device, of another user or of another version");
  }
  const std::scoped_lock guard(engine_.lock());
  for (const auto& link : links_) {
    if (link->peer() == peer && link->alive()) return link;
  }
  auto link = make_link(peer);
  helper_.start();
  return link;
}

std::shared_ptr<Link> Context::make_link(const Address& peer) {
  Segment segment = Segment::attach(peer);
  const std::uint64_t tag = ProcessId{address().pid, address().start_time}.tag();
  for (std::uint32_t index = 0; index < port_count; ++index) {
    Port& port = segment.port(index);
    std::uint64_t nobody = 0;
    // Looked at first: writing in vain would bring in page after page.
    if (port.owner.load(std::memory_order_relaxed) != nobody) continue;
    if (!port.owner.compare_exchange_strong(nobody, tag)) continue;
    port.peer = address();
    SegmentHeader& header = segment.header();
    std::uint32_t used = header.ports_used.load(std::memory_order_relaxed);
    while (used <= index && !header.ports_used.compare_exchange_weak(used, index + 1)) {
    }
    port.state.store(Port::open, std::memory_order_release);
    auto link = std::make_shared<Link>(*this, next_link_id_++, peer, std::move(segment), index);
    links_.push_back(link);
    engine_.add_link(link.get());
    arrivals_.fetch_add(1, std::memory_order_release);
    header.port_changes.fetch_add(1, std::memory_order_seq_cst);
    return link;
  }
  throw Error(ENOSPC, "process " + std::to_string(peer.pid) + " has all its " +
                          std::to_string(port_count) + " ports taken");
}

// ---- ports: peers come and go ------------------------------------------------------------------

/// As peers say; no more than there are.
std::uint32_t Context::ports_used() const noexcept {
  return std::min(segment_.header().ports_used.load(std::memory_order_acquire), port_count);
}

void Context::accept_ports() {
  const std::uint32_t changes = segment_.header().port_changes.load(std::memory_order_acquire);
  if (changes == accepted_changes_.load(std::memory_order_relaxed)) return;
  accepted_changes_.store(changes, std::memory_order_relaxed);
  for (std::uint32_t port = 0; port < ports_used(); ++port) {
    const bool taken = segment_.port(port).state.load(std::memory_order_acquire) != Port::vacant;
    if (taken && by_port_[port] == nullptr) accept(port);
  }
}

void Context::accept(std::uint32_t port) {
  const Address peer = segment_.port(port).peer;
  try {
    if (!reachable(peer)) throw Error(EPROTO, "a port names a peer that cannot be one");
    Link* link = nullptr;
    for (const auto& known : links_) {
      if (known->peer() != peer || !known->alive()) continue;
      if (known->own_port_ == nullptr) {
        link = known.get();
      } else if (known->own_port_->state.load(std::memory_order_acquire) == Port::open) {
        // It would be answered by a port there, and that by another here, until none is left.
        throw Error(EPROTO, "a peer has taken a second port");
      }
    }
    if (link == nullptr) {
      link = make_link(peer).get();
      helper_.start();
    }
    link->own_port_index_ = port;
    link->incoming_.attach(&segment_.port(port).messages);
    link->incoming_wire_.attach(&segment_.port(port).wire);
    link->own_port_ = &segment_.port(port);
    by_port_[port] = link;
    arrivals_.fetch_add(1, std::memory_order_release);
  } catch (const Error&) {
    vacate(port);  // it died while it connected, or is not what it says
  }
}

void Context::vacate(std::uint32_t index) noexcept {
  Port& port = segment_.port(index);
  for (Line& line : port.messages.line) line.header.lap.store(0, std::memory_order_relaxed);
  for (Line& line : port.wire.line) line.header.lap.store(0, std::memory_order_relaxed);
  port.messages.head.store(0, std::memory_order_relaxed);
  port.wire.head.store(0, std::memory_order_relaxed);
  port.cold.store(0, std::memory_order_relaxed);
  port.state.store(Port::vacant, std::memory_order_relaxed);
  by_port_[index] = nullptr;
  // Release: whoever takes the port next finds it empty.
  port.owner.store(0, std::memory_order_release);
}

// ---- messages ----------------------------------------------------------------------------------

unsigned Context::deliver(Link& link) {
  unsigned count = 0;
  while (count < messages_per_pass) {
    Line* line = link.incoming_.peek();
    if (line == nullptr) break;
    const std::size_t length = link.incoming_.length(line);
    const std::uint8_t id = line->header.id;
    switch (static_cast<MessageOp>(line->header.op)) {
      case MessageOp::inlined:
        am_handler_(am_arg_, id, line->payload, length);
        break;
      case MessageOp::bulk: {
        const auto bulk = read_fields<BulkLine>(line);
        if (bulk.slot >= message_slots.count || bulk.length > message_slots.data) break;
        Slot& slot = link.segment_.slot(bulk.slot);
        peer_distance().look_at({slot.data(), bulk.length});
        am_handler_(am_arg_, id, slot.data(), bulk.length);
        // Release: our reads of the slot come before its owner fills it again.
        slot.busy.store(0, std::memory_order_release);
        break;
      }
      case MessageOp::order: {
        const std::uint32_t behind =
            read_fields<OrderLine>(line).wire_tail - link.incoming_wire_.head();
        // Not yet: the engine has writes to execute first.
        if (behind != 0 && behind <= WireRing::lines) {
          link.incoming_.give_back();
          return count;
        }
        break;
      }
      case MessageOp::pad:
        break;
    }
    link.incoming_.consume(line, length);
    ++count;
  }
  link.incoming_.give_back();
  latest_ = &link;
  link.idle_ = 0;
  return count;
}

// ---- the slow side of progress -----------------------------------------------------------------

void Context::look_around(bool idle) {
  if (arrivals_.load(std::memory_order_acquire) != arrived_ ||
      segment_.header().port_changes.load(std::memory_order_relaxed) !=
          accepted_changes_.load(std::memory_order_relaxed)) {
    const std::scoped_lock guard(engine_.lock());
    accept_ports();
    arrived_ = arrivals_.load(std::memory_order_acquire);
    hot_.clear();
    cold_.clear();
    for (const auto& link : links_) {
      link->hot_ = link->own_port_ != nullptr;
      if (!link->hot_) continue;
      link->own_port_->cold.store(0, std::memory_order_relaxed);
      link->idle_ = 0;
      hot_.push_back(link.get());
    }
  }
  if (!cold_.empty()) {
    for (std::uint32_t word = 0; word < port_count / 64; ++word) {
      std::atomic<std::uint64_t>& bells = segment_.header().bells[word];
      if (bells.load(std::memory_order_relaxed) == 0) continue;
      // Acquire pairs with Link::ring_bell().
      std::uint64_t rung = bells.exchange(0, std::memory_order_acquire);
      const std::scoped_lock guard(engine_.lock());
      for (; rung != 0; rung &= rung - 1) {
        Link* link = by_port_[word * 64 + static_cast<std::uint32_t>(__builtin_ctzll(rung))];
        if (link != nullptr) heat(*link);
      }
    }
  }
  if ((attended_ & 255) == 0) {
    cool_idle_links();
    probe_cold_link();
  }
  if (!idle || (++idle_ & 15) != 0) return;
  look_at_stalled_peers();
  look_for_the_dead();
}

void Context::heat(Link& link) {
  if (link.hot_) return;
  link.hot_ = true;
  link.idle_ = 0;
  link.own_port_->cold.store(0, std::memory_order_relaxed);
  std::erase(cold_, &link);
  hot_.push_back(&link);
}

void Context::cool_idle_links() {
  // Called once in 256 polls.
  for (std::size_t i = 0; hot_.size() > links_always_hot && i < hot_.size();) {
    Link& link = *hot_[i];
    link.idle_ += 256;
    if (link.idle_ < polls_until_cold) {
      ++i;
      continue;
    }
    link.own_port_->cold.store(1, std::memory_order_relaxed);
    // A peer that posted before it could see the mark is found by this look, or by a probe.
    std::atomic_thread_fence(std::memory_order_seq_cst);
    if (link.incoming_.peek() != nullptr || link.incoming_wire_.peek() != nullptr) {
      link.own_port_->cold.store(0, std::memory_order_relaxed);
      link.idle_ = 0;
      ++i;
      continue;
    }
    link.hot_ = false;
    cold_.push_back(&link);
    hot_.erase(hot_.begin() + static_cast<std::ptrdiff_t>(i));
  }
}

bool Context::probe_cold_link() {
  if (cold_.empty()) return false;
  Link& link = *cold_[++cold_probe_ % cold_.size()];
  if (link.incoming_.peek() == nullptr && link.incoming_wire_.peek() == nullptr) return false;
  heat(link);
  return true;
}

void Context::look_at_stalled_peers() {
  const std::uint64_t now = now_ns();
  if (now < next_stall_look_) return;
  next_stall_look_ = now + stall_look_every;
  const std::unique_lock guard(engine_.lock(), std::try_to_lock);
  if (!guard.owns_lock()) return;
  for (Link* link : engine_.busy_links()) {
    if (!link->alive()) continue;
    if (link->outstanding() == 0 && link->reads_.empty() && link->answers_.empty()) continue;
    const std::uint64_t attended = link->header_->attended.load(std::memory_order_relaxed);
    if (attended == link->attended_seen_) Helper::ring(*link->header_);
    link->attended_seen_ = attended;
  }
}

void Context::look_for_the_dead() {
  const std::uint64_t now = now_ns();
  if (now < next_death_look_) return;
  next_death_look_ = now + death_look_every;
  std::vector<std::shared_ptr<Link>> gone;
  {
    const std::scoped_lock guard(engine_.lock());
    const std::size_t first = next_death_link_;
    next_death_link_ = first + deaths_looked_for < links_.size() ? first + deaths_looked_for : 0;
    for (std::size_t i = 0; i < links_.size(); ++i) {
      const auto& link = links_[i];
      const bool closed = link->own_port_ != nullptr &&
                          link->own_port_->state.load(std::memory_order_acquire) == Port::closed &&
                          link->incoming_.peek() == nullptr &&
                          link->incoming_wire_.peek() == nullptr;
      const bool due = link->busy_ || (i >= first && i < first + deaths_looked_for);
      if (closed || (due && !link->check_alive())) gone.push_back(link);
    }
    for (const auto& link : gone) {
      engine_.fail_link(*link);
      engine_.remove_link(link.get());
      std::erase(links_, link);
      std::erase(hot_, link.get());
      std::erase(cold_, link.get());
      if (latest_ == link.get()) latest_ = nullptr;
      am_slots_.reclaim(link->id_);
      if (link->own_port_ != nullptr) vacate(link->own_port_index_);
      link->own_port_ = nullptr;
    }
    // A peer that died between taking a port and opening it.
    for (std::uint32_t index = 0; index < ports_used(); ++index) {
      const std::uint64_t owner = segment_.port(index).owner.load(std::memory_order_acquire);
      if (owner != 0 && by_port_[index] == nullptr && !process_alive(owner)) vacate(index);
    }
  }
  if (failure_handler_ == nullptr) return;
  for (const auto& link : gone) {
    if (!link->check_alive()) failure_handler_(failure_arg_, *link);
  }
}

// ---- events ------------------------------------------------------------------------------------

std::array<std::byte, 16> Context::gid() const noexcept {
  std::array<std::byte, 16> gid{std::byte{0xfe}, std::byte{0x80}};
  std::memcpy(gid.data() + 8, &address().host, 8);
  gid[8] |= std::byte{2};  // a GUID given out locally
  return gid;
}

void Context::expect_events(int count) noexcept {
  if (events_expected_.fetch_add(count) + count == 0 || count < 0) return;
  helper_.start();
  // What came in before the mark was set is looked at here, what comes later rings.
  if (!arm_helper()) Helper::ring(segment_.header());
}

/// False when there is work already.
bool Context::arm_helper() noexcept {
  SegmentHeader& header = segment_.header();
  header.armed.store(1, std::memory_order_seq_cst);
  // As in arm().
  membarrier();
  std::atomic_thread_fence(std::memory_order_seq_cst);
  const std::scoped_lock guard(engine_.lock());
  for (const Link* link : engine_.busy_links()) {
    if (link->outstanding() != 0) Helper::wake(*link->header_);
  }
  return !engine_.has_work() && header.port_changes.load(std::memory_order_relaxed) ==
                                    accepted_changes_.load(std::memory_order_relaxed);
}

/// Whether any transfer is, of this process's or of a peer's.
bool Context::is_under_way() noexcept {
  const std::scoped_lock guard(engine_.lock());
  return !engine_.busy_links().empty();
}

void Context::attend_to_the_dead() noexcept {
  if (!progress_lock_.try_lock()) return;
  look_for_the_dead();
  progress_lock_.unlock();
}

int Context::event_fd() {
  return helper_.event_fd();
}

void Context::tell_waits_on(std::uint32_t core_from_1) noexcept {
  // Peers read this line: it is written only when there is something new.
  std::atomic<std::uint32_t>& own = segment_.header().waits_on;
  if (own.load(std::memory_order_relaxed) != core_from_1) {
    own.store(core_from_1, std::memory_order_relaxed);
  }
}

void Context::wait_nowhere() noexcept {
  tell_waits_on(0);
}

std::optional<Context::Waiting> Context::wait_on(std::uint32_t core) noexcept {
  tell_waits_on(core + 1);
  if (latest_ == nullptr || latest_->peer() == address()) return std::nullopt;
  const std::uint32_t theirs = latest_->header_->waits_on.load(std::memory_order_relaxed);
  if (theirs == 0) return std::nullopt;
  return Waiting{theirs - 1, latest_->peer().pid};
}

bool Context::work_in_rings() const noexcept {
  const auto busy = [](const Link* link) {
    return link->incoming_.peek() != nullptr || link->incoming_wire_.peek() != nullptr;
  };
  return std::any_of(hot_.begin(), hot_.end(), busy) ||
         std::any_of(cold_.begin(), cold_.end(), busy);
}

bool Context::arm() {
  helper_.drain_event();
  SegmentHeader& header = segment_.header();
  header.armed.store(1, std::memory_order_seq_cst);
  // Peers post and then look whether we are armed, without a fence of their own; those that no
  // membarrier reaches have one, and meet this one.
  membarrier();
  std::atomic_thread_fence(std::memory_order_seq_cst);
  const bool work = work_in_rings() || engine_.has_completed() || engine_.waiting() != 0 ||
                    header.port_changes.load(std::memory_order_relaxed) !=
                        accepted_changes_.load(std::memory_order_relaxed) ||
                    arrivals_.load(std::memory_order_relaxed) != arrived_;
  if (work) header.armed.store(0, std::memory_order_relaxed);
  return !work;
}

}  // namespace weft::hca::emu
