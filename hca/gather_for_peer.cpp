#include "hca/gather_for_peer.hpp"

#include <algorithm>
#include <cstring>

#include "hca/peer_distance.hpp"

namespace weft::hca {
namespace {

/// From here on it pays: 4 KiB took 0.91 us this way and 1.27 by plain stores (one way, two cores
/// without a common cache), 64 KiB 6.7 and 9.7.
constexpr std::size_t worth_it = 4096;
/// Stays in the L1 cache beside what is gathered.
constexpr std::size_t piece_bytes = 8192;
/// Where blocks are longer, what is gathered comes as streams and longer copies are worth more: the
/// 4D lattice face of the benchmarks took 64 us by 8 KiB, 54 by 32 KiB. So they are where each
/// piece has to find its place anew: structs of two doubles 22.9 and 20.7.
constexpr std::size_t long_piece_bytes = 32768;

/// The processor's string copy knows that it overwrites whole lines.
void copy_lines(std::byte* to, const std::byte* from, std::size_t length) noexcept {
#if defined __x86_64__ && !defined __SANITIZE_ADDRESS__ && !defined __SANITIZE_THREAD__
  asm volatile("rep movsb" : "+D"(to), "+S"(from), "+c"(length) : : "memory");
#else
  std::memcpy(to, from, length);
#endif
}

/// Out of line, so that only who needs so much stack takes it.
template <std::size_t most>
[[gnu::noinline]] void gather_by_pieces(const Layout& layout, const std::byte* base,
                                        std::uint64_t offset, std::span<std::byte> out) {
  alignas(64) std::byte piece[most];
  for (std::size_t done = 0; done < out.size();) {
    const std::size_t now = std::min(most, out.size() - done);
    layout.gather(base, offset + done, {piece, now});
    copy_lines(out.data() + done, piece, now);
    done += now;
  }
}

/// Blocks with little between them, which are read as one stream: then the stores are what takes
/// time, and whole lines are better close as well (rows of 1,008 bytes in 1,024: 254 KB in 9.5 us
/// instead of 11.3). Other memory waits for its own lines, and stores go on meanwhile.
bool is_one_stream(const Layout& layout) noexcept {
  const auto extent = static_cast<std::uint64_t>(layout.upper() - layout.lower());
  return layout.size() >= extent - extent / 8;
}

}  // namespace

void gather_for_peer(const Layout& layout, const std::byte* base, std::uint64_t offset,
                     std::span<std::byte> out) {
  // A window's layout says it is one block: what it stands for comes here by itself.
  if (out.size() < worth_it || layout.size() / worth_it >= layout.block_count() ||
      (peer_distance().is_close() && !is_one_stream(layout))) {
    layout.gather(base, offset, out);
  } else if (layout.size() / long_block >= layout.block_count() || !layout.cuts_well()) {
    gather_by_pieces<long_piece_bytes>(layout, base, offset, out);
  } else {
    gather_by_pieces<piece_bytes>(layout, base, offset, out);
  }
}

}  // namespace weft::hca
