#include "ucx-tl/window_copy.hpp"

#include <algorithm>
#include <cstring>

#include "hca/gather_for_peer.hpp"
#include "hca/scatter_from_peer.hpp"
#include "ucx-tl/window.hpp"

namespace weft::ucx {
namespace {

bool covers(const Resolved& window, std::size_t length) noexcept {
  return window && window.offset + length <= window.layout->size();
}

/// From window to window: through a piece of stack that stays in the L1 cache.
void copy_both(const Resolved& to, const Resolved& from, std::size_t length) noexcept {
  alignas(64) std::byte piece[8 * 1024];
  for (std::size_t done = 0; done < length;) {
    const std::size_t now = std::min(sizeof piece, length - done);
    from.layout->gather(from.base, from.offset + done, {piece, now});
    to.layout->scatter(to.base, to.offset + done, {piece, now});
    done += now;
  }
}

}  // namespace

bool copy_bytes(void* to, const void* from, std::size_t length) noexcept {
  const WindowArena& arena = windows();
  if (arena.contains(from)) {
    const Resolved source = arena.resolve(from);
    if (!covers(source, length)) return false;
    if (!arena.contains(to)) {
      // Mostly into a slot of the wire.
      hca::gather_for_peer(*source.layout, source.base, source.offset,
                           {static_cast<std::byte*>(to), length});
      return true;
    }
    const Resolved target = arena.resolve(to);
    if (!covers(target, length)) return false;
    copy_both(target, source, length);
    return true;
  }
  if (arena.contains(to)) {
    const Resolved target = arena.resolve(to);
    if (!covers(target, length)) return false;
    // Mostly out of one.
    hca::scatter_from_peer(*target.layout, target.base, target.offset,
                           {static_cast<const std::byte*>(from), length});
    return true;
  }
  std::memcpy(to, from, length);
  return true;
}

}  // namespace weft::ucx
