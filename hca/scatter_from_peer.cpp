#include "hca/scatter_from_peer.hpp"

#include <algorithm>

namespace weft::hca {
namespace {

constexpr std::size_t line = 64;
/// As many lines as a core fetches at the same time, and some more.
constexpr std::size_t piece_bytes = 2048;

void fetch(std::span<const std::byte> bytes) noexcept {
  for (std::size_t at = 0; at < bytes.size(); at += line) __builtin_prefetch(bytes.data() + at);
}

}  // namespace

void scatter_from_peer(const Layout& layout, std::byte* base, std::uint64_t offset,
                       std::span<const std::byte> in) {
  // Where long blocks are copied the processor finds out by itself that it is a stream. A window's
  // layout says it is one block: what it stands for comes here by itself.
  if (in.size() < 2 * piece_bytes || layout.size() / long_block >= layout.block_count() ||
      !layout.cuts_well()) {
    layout.scatter(base, offset, in);
    return;
  }
  for (std::size_t done = 0; done < in.size();) {
    const std::span<const std::byte> rest = in.subspan(done);
    const std::size_t now = std::min(piece_bytes, rest.size());
    fetch(rest.subspan(now, std::min(piece_bytes, rest.size() - now)));
    layout.scatter(base, offset + done, rest.first(now));
    done += now;
  }
}

}  // namespace weft::hca
