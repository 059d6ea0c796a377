// The scatter-gather list of a work request as a layout over absolute addresses.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "hca/emu/key_table.hpp"
#include "hca/emu/operation.hpp"
#include "hca/emu/work_request.hpp"
#include "hca/layout.hpp"

namespace weft::hca::emu {

class SgeList final : public Layout {
 public:
  /// Null when a key does not cover its piece or lacks `need`. The regions' layouts are kept.
  static std::shared_ptr<const SgeList> make(const KeyTable& keys, std::span<const Sge> sges,
                                             Access need, std::uint32_t pd);

  void gather(const std::byte* base, std::uint64_t offset, std::span<std::byte> out) const override;
  void scatter(std::byte* base, std::uint64_t offset, std::span<const std::byte> in) const override;
  [[nodiscard]] bool equals(const Layout& other) const noexcept override;
  [[nodiscard]] std::string describe() const override;
  [[nodiscard]] std::size_t footprint() const noexcept override;

 private:
  struct Piece {
    std::byte* base;
    LayoutPtr layout;      ///< null: contiguous
    std::uint64_t offset;  ///< into the layout's stream, or added to base
    std::uint64_t length;
  };

  explicit SgeList(std::vector<Piece> pieces, std::uint64_t size);
  template <class Move>
  void each_part(std::uint64_t offset, std::uint64_t length, Move move) const;

  std::vector<Piece> pieces_;
};

/// The memory of a work request's scatter-gather list, ready for the engine.
struct SgeMemory {
  LocalMemory local{};
  std::uint64_t size = 0;
  std::shared_ptr<const SgeList> list{};  ///< null: contiguous

  /// False when a key does not cover its piece, lacks `need` or is of another PD.
  bool resolve(const KeyTable& keys, std::span<const Sge> sges, Access need, std::uint32_t pd) {
    if (sges.size() == 1 && sges[0].length != 0) {
      const Sge& sge = sges[0];
      const Region* region = keys.check(sge.lkey, sge.addr, sge.length, need);
      if (region == nullptr || region->pd != pd || region->remote_only) return false;
      if (region->layout == nullptr) {
        local = {region->base, nullptr, sge.addr - region->addr};
        size = sge.length;
        list.reset();
        return true;
      }
    }
    return resolve_list(keys, sges, need, pd);
  }

 private:
  bool resolve_list(const KeyTable& keys, std::span<const Sge> sges, Access need, std::uint32_t pd);
};

}  // namespace weft::hca::emu
