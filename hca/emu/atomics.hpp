// Atomic operations of the adapter: the processor's own, so that they agree with what other
// processes do to the same device memory.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>

#include "hca/emu/operation.hpp"

namespace weft::hca::emu {

/// Applies `code` to the word at `at` and returns its value before. Sequentially consistent, as the
/// IB specification's atomics are towards each other.
template <class Word>
Word apply_atomic_word(std::byte* at, AtomicOp code, Word operand, Word compare) noexcept {
  std::atomic_ref<Word> word(*reinterpret_cast<Word*>(at));
  switch (code) {
    case AtomicOp::fetch_add:
      return word.fetch_add(operand);
    case AtomicOp::swap:
      return word.exchange(operand);
    case AtomicOp::compare_swap:
      word.compare_exchange_strong(compare, operand);
      return compare;
    case AtomicOp::fetch_and:
      return word.fetch_and(operand);
    case AtomicOp::fetch_or:
      return word.fetch_or(operand);
    case AtomicOp::fetch_xor:
      return word.fetch_xor(operand);
  }
  return 0;
}

/// `size` is 4 or 8 and `at` aligned to it.
inline std::uint64_t apply_atomic(std::byte* at, std::uint32_t size, AtomicOp code,
                                  std::uint64_t operand, std::uint64_t compare) noexcept {
  if (size == 8) return apply_atomic_word<std::uint64_t>(at, code, operand, compare);
  return apply_atomic_word<std::uint32_t>(at, code, static_cast<std::uint32_t>(operand),
                                          static_cast<std::uint32_t>(compare));
}

}  // namespace weft::hca::emu
