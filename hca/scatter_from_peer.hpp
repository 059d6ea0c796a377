// Scattering out of memory that another processor has written, as the wire's slots are.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "hca/layout.hpp"

namespace weft::hca {

/// As `layout.scatter(base, offset, in)`, and faster when a peer's processor holds `in` in its
/// cache: the lines are fetched while those before them are scattered.
void scatter_from_peer(const Layout& layout, std::byte* base, std::uint64_t offset,
                       std::span<const std::byte> in);

}  // namespace weft::hca
