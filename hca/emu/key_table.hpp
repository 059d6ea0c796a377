// The private table of a context's keys: what each stands for, and who may do what with it.
#pragma once

#include <cstdint>
#include <deque>
#include <vector>

#include "hca/access.hpp"
#include "hca/layout.hpp"
#include "hca/status.hpp"

namespace weft::hca::emu {

/// What a key stands for.
struct Region {
  std::uint64_t addr = 0;     ///< first address by which the key is used (0: zero-based)
  std::uint64_t length = 0;   ///< bytes that the key covers
  std::byte* base = nullptr;  ///< where they are; with a layout, the base of its offsets
  LayoutPtr layout{};         ///< null: contiguous
  Access access = Access::all;
  std::uint32_t pd = 0;
  std::uint16_t qp = 0;      ///< of a memory window: the one QP that may use it (0: any)
  bool remote_only = false;  ///< a memory window: no lkey
  void* owner = nullptr;     ///< what the user of the core knows it by
};

/// Keys are an index of 24 bits and a variant of 8 that changes with each use of the index, so that
/// a key kept too long is noticed. Not thread-safe: the engine's lock guards it.
class KeyTable {
 public:
  /// Throws hca::Error: EINVAL (bounds that wrap, a layout of another size), ENOMEM (no index
  /// left).
  std::uint32_t insert(Region region);
  /// An index of its own for keys of a memory window, which stands for nothing yet; returns the
  /// key. Throws hca::Error ENOMEM.
  std::uint32_t reserve();
  /// Lets `key`, whose index is taken, stand for `region`; what the index stood for before is gone.
  /// Throws hca::Error EINVAL as insert() does.
  void assign(std::uint32_t key, Region region);
  /// The key stands for nothing from now on; its index stays taken.
  void clear(std::uint32_t key) noexcept;
  /// Gives an index back, valid or not.
  void release(std::uint32_t key) noexcept;
  /// False when there is no such key.
  bool erase(std::uint32_t key) noexcept;
  /// The region of a key, or null.
  [[nodiscard]] const Region* find(std::uint32_t key) const noexcept;
  /// The region when the key covers [addr, addr + length) and allows `need`; else null.
  [[nodiscard]] const Region* check(std::uint32_t key, std::uint64_t addr, std::uint64_t length,
                                    Access need) const noexcept;
  [[nodiscard]] std::size_t size() const noexcept { return used_; }

 private:
  static void check_bounds(const Region& region);
  std::uint32_t take_index();

  struct Entry {
    Region region;
    std::uint8_t variant = 1;
    bool valid = false;
  };
  std::deque<Entry> entries_;  // never moves an entry
  std::vector<std::uint32_t> free_;
  std::size_t used_ = 0;
};

}  // namespace weft::hca::emu
