#include "hca/emu/sge_list.hpp"

#include <algorithm>
#include <cstring>
#include <utility>

namespace weft::hca::emu {

SgeList::SgeList(std::vector<Piece> pieces, std::uint64_t size)
    // Its bounds are not those of one object; nothing asks for them.
    : Layout(LayoutKind::sg_list, size, 0, 0, pieces.size()), pieces_(std::move(pieces)) {}

std::shared_ptr<const SgeList> SgeList::make(const KeyTable& keys, std::span<const Sge> sges,
                                             Access need, std::uint32_t pd) {
  std::vector<Piece> pieces;
  std::uint64_t size = 0;
  for (const Sge& sge : sges) {
    if (sge.length == 0) continue;
    const Region* region = keys.check(sge.lkey, sge.addr, sge.length, need);
    if (region == nullptr || region->pd != pd || region->remote_only) return nullptr;
    pieces.push_back({region->base, region->layout, sge.addr - region->addr, sge.length});
    size += sge.length;
  }
  return std::shared_ptr<const SgeList>(new SgeList(std::move(pieces), size));
}

bool SgeMemory::resolve_list(const KeyTable& keys, std::span<const Sge> sges, Access need,
                             std::uint32_t pd) {
  list = SgeList::make(keys, sges, need, pd);
  if (!list) return false;
  local = {nullptr, list.get(), 0};
  size = list->size();
  return true;
}

template <class Move>
void SgeList::each_part(std::uint64_t offset, std::uint64_t length, Move move) const {
  std::uint64_t done = 0;
  for (const Piece& piece : pieces_) {
    if (done == length) break;
    if (offset >= piece.length) {
      offset -= piece.length;
      continue;
    }
    const std::uint64_t part = std::min(piece.length - offset, length - done);
    move(piece, piece.offset + offset, done, part);
    done += part;
    offset = 0;
  }
}

void SgeList::gather(const std::byte* /*base*/, std::uint64_t offset,
                     std::span<std::byte> out) const {
  each_part(offset, out.size(),
            [out](const Piece& piece, std::uint64_t at, std::uint64_t done, std::uint64_t part) {
              const auto to = out.subspan(done, part);
              if (piece.layout) {
                piece.layout->gather(piece.base, at, to);
              } else {
                std::memcpy(to.data(), piece.base + at, part);
              }
            });
}

void SgeList::scatter(std::byte* /*base*/, std::uint64_t offset,
                      std::span<const std::byte> in) const {
  each_part(offset, in.size(),
            [in](const Piece& piece, std::uint64_t at, std::uint64_t done, std::uint64_t part) {
              const auto from = in.subspan(done, part);
              if (piece.layout) {
                piece.layout->scatter(piece.base, at, from);
              } else {
                std::memcpy(piece.base + at, from.data(), part);
              }
            });
}

bool SgeList::equals(const Layout& other) const noexcept {
  return this == &other;
}

std::string SgeList::describe() const {
  return "sge_list(" + std::to_string(pieces_.size()) + " pieces)";
}

std::size_t SgeList::footprint() const noexcept {
  return sizeof(*this) + pieces_.capacity() * sizeof(Piece);
}

}  // namespace weft::hca::emu
