#include "hca/emu/engine.hpp"

#include <algorithm>
#include <utility>

#include "hca/emu/transfer.hpp"

namespace weft::hca::emu {

static_assert(most_largest_piece <= large_wire_slots.data);

Engine::Engine(std::shared_ptr<Domain> domain, Segment& own, std::uint32_t largest_piece)
    : domain_(std::move(domain)),
      own_(own),
      largest_piece_(std::clamp(largest_piece, least_largest_piece, most_largest_piece)) {
  small_slots_.attach(&own_, small_wire_slots);
  large_slots_.attach(&own_, large_wire_slots);
  const std::scoped_lock guard(lock());
  domain_->engines_.push_back(this);
}

Engine::~Engine() {
  const std::scoped_lock guard(lock());
  std::erase(domain_->engines_, this);
}

void Engine::add_link(Link* link) {
  busy_.reserve(links_.size() + 1);  // make_busy() cannot fail
  links_.push_back(link);
}

void Engine::remove_link(Link* link) noexcept {
  std::erase(links_, link);
  std::erase(busy_, link);
}

void Engine::make_busy(Link& link) noexcept {
  if (link.busy_) return;
  link.busy_ = true;
  busy_.push_back(&link);
}

unsigned Engine::try_advance(std::span<Link* const> polled) noexcept {
  if (!lock().try_lock()) return 0;
  const unsigned moved = advance(polled);
  lock().unlock();
  return moved;
}

unsigned Engine::advance(std::span<Link* const> polled) noexcept {
  unsigned moved = 0;
  for (Link* link : polled) {
    if (link->own_port_ != nullptr) moved += take_lines(*link);
  }
  std::size_t still_busy = 0;
  for (Link* link : busy_) {
    if (!link->answers_.empty()) send_answers(*link);
    if (!link->reads_.empty()) moved += send_read_data(*link);
    if (link->writes_ != nullptr) moved += send_writes(*link);
    link->busy_ = link->outstanding() != 0 || !link->reads_.empty() || !link->answers_.empty();
    if (link->busy_) busy_[still_busy++] = link;
  }
  busy_.resize(still_busy);
  if (!waiters_.empty()) moved += proceed();
  return moved;
}

bool Engine::has_work() const noexcept {
  return waiting() != 0 || std::any_of(links_.begin(), links_.end(), [](const Link* link) {
           return link->own_port_ != nullptr && link->incoming_wire_.peek() != nullptr;
         });
}

void Engine::await(Waiter* waiter) {
  if (waiter->waits_) return;
  waiter->waits_ = true;
  waiters_.push_back(waiter);
  waiting_.fetch_add(1, std::memory_order_relaxed);
}

void Engine::forget(Waiter* waiter) noexcept {
  if (!waiter->waits_) return;
  waiter->waits_ = false;
  std::erase(waiters_, waiter);
  waiting_.fetch_sub(1, std::memory_order_relaxed);
}

unsigned Engine::proceed() noexcept {
  // Who is called may wait again, or make others wait.
  called_.swap(waiters_);
  waiting_.fetch_sub(static_cast<std::uint32_t>(called_.size()), std::memory_order_relaxed);
  for (Waiter* waiter : called_) {
    waiter->waits_ = false;
    if (waiter->proceed()) await(waiter);
  }
  called_.clear();
  return 0;
}

void Engine::abandon(Operation* op) noexcept {
  Link& link = *op->link;
  for (Operation** at = &link.writes_; *at != nullptr; at = &(*at)->next) {
    if (*at != op) continue;
    *at = op->next;
    if (link.writes_end_ == &op->next) link.writes_end_ = at;
    waiting_.fetch_sub(1, std::memory_order_relaxed);
    break;
  }
  operations_.leave(op);
  link.unacked_.fetch_sub(1, std::memory_order_release);
}

unsigned Engine::complete() noexcept {
  lock().lock();
  Operation* op = std::exchange(completed_, nullptr);
  completed_end_ = &completed_;
  completed_flag_.store(false, std::memory_order_relaxed);
  lock().unlock();
  unsigned count = 0;
  while (op != nullptr) {
    Operation* const next = std::exchange(op->next, nullptr);
    op->done(op, op->status);
    op = next;
    ++count;
  }
  return count;
}

void Engine::drop_key(std::uint32_t key) noexcept {
  for (ReceiveEnd* end : receive_ends_) {
    if (end != nullptr) end->key_dropped(key);
  }
  if (waiting() == 0) return;
  for (Link* link : links_) {
    for (auto read = link->reads_.begin(); read != link->reads_.end();) {
      if (read->rkey != key) {
        ++read;
        continue;
      }
      acknowledge(*link, read->op, WcStatus::rem_access_err);
      read = link->reads_.erase(read);
      waiting_.fetch_sub(1, std::memory_order_relaxed);
    }
  }
}

void Engine::fail_link(Link& link) noexcept {
  link.alive_.store(false, std::memory_order_relaxed);
  std::uint32_t dropped = static_cast<std::uint32_t>(link.reads_.size() + link.answers_.size());
  for (Operation* op = link.writes_; op != nullptr; op = op->next) ++dropped;
  waiting_.fetch_sub(dropped, std::memory_order_relaxed);
  link.reads_.clear();
  link.answers_.clear();
  link.writes_ = nullptr;
  link.writes_end_ = &link.writes_;
  operations_.each_of(&link, [this](Operation* op) { finish(op, WcStatus::retry_exc_err); });
  link.uncounted_posted_ = 0;
  link.unacked_.store(0, std::memory_order_release);
  small_slots_.reclaim(link.id_);
  large_slots_.reclaim(link.id_);
}

Slot* Engine::slot_of(const Link& link, std::uint32_t slot, std::uint32_t length) noexcept {
  if (slot < small_wire_slots.first || slot >= slot_count) return nullptr;
  const SlotClass& kind = slot < large_wire_slots.first ? small_wire_slots : large_wire_slots;
  return length <= kind.data ? &link.segment_.slot(slot) : nullptr;
}

std::uint32_t Engine::acquire_slot(const Link& link, std::uint32_t length) noexcept {
  return length <= small_wire_slots.data ? small_slots_.acquire(link.id_)
                                         : large_slots_.acquire(link.id_);
}

}  // namespace weft::hca::emu
