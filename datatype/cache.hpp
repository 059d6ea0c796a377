// LayoutCache: compiled layouts by the handle of the datatype they were compiled from.
//
// A hit takes no lock: every thread remembers the last handle it asked for, and what it remembers is
// valid until anything is erased anywhere (a global epoch). A miss of that memo probes one hash table
// under a shared lock.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <shared_mutex>
#include <unordered_map>
#include <utility>

#include "hca/layout.hpp"

namespace weft::datatype {

class LayoutCache {
 public:
  /// Counts up to this one keep their compiled layout; others are compiled per use.
  static constexpr std::uint64_t max_cached_counts = 8;

  LayoutCache() = default;
  LayoutCache(const LayoutCache&) = delete;
  LayoutCache& operator=(const LayoutCache&) = delete;

  /// The layout of `count` copies of the datatype behind `handle`. `compile()` gives the layout of
  /// one (called at most once per entry unless threads race or it throws), `extent` is its extent.
  template <typename Compile>
  hca::LayoutPtr get(std::uintptr_t handle, std::uint64_t count, std::int64_t extent,
                     Compile&& compile);

  /// Forgets a handle, for instance because its datatype is freed: the address may be reused.
  /// Layouts already handed out live on with their users.
  void erase(std::uintptr_t handle);
  void clear();

  [[nodiscard]] std::size_t size() const;

 private:
  struct Entry;
};

}  // namespace weft::datatype
