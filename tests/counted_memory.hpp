// What a program has allocated by operator new, counted by replacements of it.
#pragma once

#include <cstddef>

namespace weft::test {

/// Bytes that were asked for and not freed yet.
std::size_t allocated() noexcept;
/// The most of them since the last start_peak().
std::size_t peak() noexcept;
void start_peak() noexcept;

}  // namespace weft::test
