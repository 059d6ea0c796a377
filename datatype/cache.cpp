#include "datatype/cache.hpp"

#include <array>
#include <atomic>
#include <mutex>

#include "datatype/loop_builder.hpp"

namespace weft::datatype {

namespace {

std::atomic<std::uint64_t> next_id{1};

/// Raised by every erase. A reader that sees the old value uses what it remembers as if it had come
/// before the erase; who erases must keep users of that handle out anyway, and whatever ordered
/// that orders this. So relaxed order would do; acquire costs nothing on a load.
std::atomic<std::uint64_t> epoch{1};

/// What a thread asked for last. It does not own the layout: while the epoch is the same, the entry
/// that it points to is there.
struct Memo {
  std::uint64_t cache = 0;
  std::uint64_t epoch = 0;
  std::uintptr_t handle = 0;
  std::uint64_t count = 0;
  const hca::LayoutPtr* layout = nullptr;
};

/// A few, since a program that exchanges faces cycles through several datatypes.
constexpr std::size_t memo_size = 8;

Memo& memo_of(std::uintptr_t handle, std::uint64_t count) noexcept {
  thread_local std::array<Memo, memo_size> memos;
  // Handles are addresses: the low bits say nothing.
  return memos[((handle >> 4) ^ (handle >> 10) ^ count) % memo_size];
}

}  // namespace

LayoutCache::LayoutCache() : id_(next_id.fetch_add(1, std::memory_order_relaxed)) {}
LayoutCache::~LayoutCache() = default;

const hca::LayoutPtr* LayoutCache::remembered(std::uintptr_t handle,
                                              std::uint64_t count) const noexcept {
  const Memo& memo = memo_of(handle, count);
  const bool hit = memo.handle == handle && memo.count == count && memo.cache == id_ &&
                   memo.epoch == epoch.load(std::memory_order_acquire);
  return hit ? memo.layout : nullptr;
}

hca::LayoutPtr LayoutCache::look_up(std::uintptr_t handle, std::uint64_t count, std::int64_t extent,
                                    const Compile& compile) {
  hca::LayoutPtr one;
  {
    const std::shared_lock lock(mutex_);
    if (const auto entry = entries_.find(handle); entry != entries_.end()) {
      // Under the lock no erase comes in between: epoch and entry belong together.
      if (const auto kept = entry->second.find(count); kept != entry->second.end()) {
        memo_of(handle, count) = {id_, epoch.load(std::memory_order_acquire), handle, count,
                                  &kept->second};
        return kept->second;
      }
      if (const auto kept = entry->second.find(1); kept != entry->second.end()) one = kept->second;
    }
  }
  if (!one) one = compile();
  hca::LayoutPtr result = count == 1 ? one : repeat(one, count, extent);
  const std::unique_lock lock(mutex_);
  Entry& entry = entries_[handle];
  // Of racing threads the first one's layout stays, so that all use the same object.
  entry.try_emplace(1, one);
  if (const auto kept = entry.find(count); kept != entry.end()) return kept->second;
  if (entry.size() < max_counts) entry.emplace(count, result);
  return result;
}

void LayoutCache::erase(std::uintptr_t handle) {
  Entry dropped;
  {
    const std::unique_lock lock(mutex_);
    const auto found = entries_.find(handle);
    if (found == entries_.end()) return;
    dropped = std::move(found->second);
    entries_.erase(found);
    epoch.fetch_add(1, std::memory_order_release);
  }
}

void LayoutCache::clear() {
  const std::unique_lock lock(mutex_);
  entries_.clear();
  epoch.fetch_add(1, std::memory_order_release);
}

std::size_t LayoutCache::size() const {
  const std::shared_lock lock(mutex_);
  return entries_.size();
}

}  // namespace weft::datatype
