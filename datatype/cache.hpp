// LayoutCache: compiled layouts by the handle of the datatype they were compiled from.
//
// A hit takes no lock: every thread remembers what it asked for last, and that is valid until
// anything is erased from any cache (a global epoch). What the memo does not hold is looked up
// under a shared lock: one probe of a hash table.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <shared_mutex>
#include <unordered_map>

#include "hca/layout.hpp"

namespace weft::datatype {

class LayoutCache {
 public:
  /// How many different counts of one datatype are kept; others are compiled at every use.
  static constexpr std::size_t max_counts = 64;
  using Compile = std::function<hca::LayoutPtr()>;

  LayoutCache();
  ~LayoutCache();
  LayoutCache(const LayoutCache&) = delete;
  LayoutCache& operator=(const LayoutCache&) = delete;

  /// The layout of `count` copies of the datatype behind `handle`, `extent` bytes apart.
  /// `compile()` gives the layout of one; it is called without a lock, and when threads race for a
  /// new handle more than once, of which one result is kept. What it throws passes through and
  /// leaves nothing.
  template <typename F>
  hca::LayoutPtr get(std::uintptr_t handle, std::uint64_t count, std::int64_t extent, F&& compile) {
    if (const hca::LayoutPtr* hit = remembered(handle, count)) return *hit;
    return look_up(handle, count, extent, std::ref(compile));
  }

  /// Forgets a handle, because its datatype is freed: the address may be reused at once. Layouts
  /// already handed out live on with their users. Must not race with get() of the same handle (MPI
  /// forbids to use a datatype while it is freed).
  void erase(std::uintptr_t handle);
  void clear();

  /// Handles in the cache.
  [[nodiscard]] std::size_t size() const;

 private:
  /// By count. What is in is never changed before the handle is erased: threads remember its
  /// address.
  using Entry = std::unordered_map<std::uint64_t, hca::LayoutPtr>;

  [[nodiscard]] const hca::LayoutPtr* remembered(std::uintptr_t handle,
                                                 std::uint64_t count) const noexcept;
  hca::LayoutPtr look_up(std::uintptr_t handle, std::uint64_t count, std::int64_t extent,
                         const Compile& compile);

  mutable std::shared_mutex mutex_;
  std::unordered_map<std::uintptr_t, Entry> entries_;
  std::uint64_t id_;  // tells caches apart in the memo, also after one's address is reused
};

}  // namespace weft::datatype
