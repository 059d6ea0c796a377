// What the buffers of a shape hold, so that every byte can be checked.
#pragma once

#include <cstddef>
#include <vector>

#include "benchmarks/shape.hpp"

namespace weft::benchmarks {

/// Receive buffers before anything came.
constexpr std::byte untouched{0xee};

/// Fills the blocks of rank `rank`'s send buffer.
void fill(const Side& side, int rank, std::vector<std::byte>& memory);
/// Whether `memory` is what a receive from rank `from` leaves of an untouched buffer.
bool arrived(const Shape& shape, int from, const std::vector<std::byte>& memory);

}  // namespace weft::benchmarks
