// The keys that a process's contexts share, as the contexts of one UCX memory domain do, and the
// one lock under which everything is executed that a key protects.
#pragma once

#include <cstdint>
#include <vector>

#include "hca/emu/key_table.hpp"
#include "hca/emu/spin_lock.hpp"

namespace weft::hca::emu {

class Engine;

class Domain {
 public:
  /// Enters a region and returns its key (lkey and rkey in one; never 0).
  /// Throws hca::Error: EINVAL, ENOMEM.
  std::uint32_t register_region(Region region);
  /// Invalidates a key. When it returns no operation uses it: those under way are ended with
  /// rem_access_err, as are all that come later. Throws hca::Error EINVAL for an unknown key.
  void deregister(std::uint32_t key);
  /// Lets a registered key stand for another region. When it returns no operation uses the old one.
  /// Throws hca::Error EINVAL; the old region stays then.
  void replace(std::uint32_t key, Region region);

  /// An index for keys of a memory window, and back. Throws hca::Error ENOMEM.
  std::uint32_t reserve_key();
  void release_key(std::uint32_t key) noexcept;
  /// What a memory window's key stands for. Under the lock.
  void bind(std::uint32_t key, Region region);
  void unbind(std::uint32_t key) noexcept;
  [[nodiscard]] const Region* find(std::uint32_t key) const noexcept { return keys_.find(key); }
  [[nodiscard]] SpinLock& lock() noexcept { return lock_; }

 private:
  void drop(std::uint32_t key) noexcept;

  friend class Engine;
  SpinLock lock_;
  KeyTable keys_;
  std::vector<Engine*> engines_;
};

}  // namespace weft::hca::emu
