// Gathering into memory that another processor has read before, as the wire's slots are.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "hca/layout.hpp"

namespace weft::hca {

/// As `layout.gather(base, offset, out)`, and faster when a peer's processor holds `out` in its
/// cache: stores of part of a line fetch that line from the peer first, copies of whole lines do
/// not.
void gather_for_peer(const Layout& layout, const std::byte* base, std::uint64_t offset,
                     std::span<std::byte> out);

}  // namespace weft::hca
