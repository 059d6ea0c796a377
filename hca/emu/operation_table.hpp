// Numbers for operations on the wire: an answer names its operation, and a stale or forged number
// names none.
#pragma once

#include <cstdint>
#include <vector>

#include "hca/emu/operation.hpp"

namespace weft::hca::emu {

/// Ids are an index of 20 bits (from 1) and a variant of 12. The engine's lock guards it.
class OperationTable {
 public:
  /// Gives `op` an id; false when 2^20 - 1 are under way.
  bool enter(Operation* op) {
    std::uint32_t index;
    if (!free_.empty()) {
      index = free_.back();
      free_.pop_back();
    } else {
      if (entries_.size() + 1 >= (1u << 20)) return false;
      index = static_cast<std::uint32_t>(entries_.size());
      entries_.push_back({nullptr, 0});
      free_.reserve(entries_.size());  // so that leave() cannot fail
    }
    entries_[index].op = op;
    op->id = ((index + 1) << 12) | entries_[index].variant;
    return true;
  }

  /// The operation with this id if it was posted on `link`; null otherwise.
  [[nodiscard]] Operation* find(std::uint32_t id, const Link* link) const noexcept {
    const std::uint32_t index = (id >> 12) - 1;
    if (index >= entries_.size()) return nullptr;
    Operation* op = entries_[index].op;
    return op != nullptr && op->id == id && op->link == link ? op : nullptr;
  }

  void leave(Operation* op) noexcept {
    const std::uint32_t index = (op->id >> 12) - 1;
    entries_[index].op = nullptr;
    entries_[index].variant = (entries_[index].variant + 1) & 0xfff;
    free_.push_back(index);
  }

  /// Calls `visit(op)` for each operation of a link.
  template <class Visit>
  void each_of(const Link* link, Visit visit) {
    for (std::size_t i = 0; i < entries_.size(); ++i) {
      Operation* op = entries_[i].op;
      if (op != nullptr && op->link == link) visit(op);
    }
  }

 private:
  struct Entry {
    Operation* op;
    std::uint32_t variant;
  };
  std::vector<Entry> entries_;
  std::vector<std::uint32_t> free_;
};

}  // namespace weft::hca::emu
