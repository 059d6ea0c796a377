// The scatter-gather list of a work request as a layout over absolute addresses.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "hca/emu/key_table.hpp"
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

}  // namespace weft::hca::emu
