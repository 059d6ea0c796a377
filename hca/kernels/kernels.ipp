// The kernels' code, included once per instruction set. Everything is in an anonymous namespace:
// two instruction sets must never share an instantiation. No include here may define functions that
// are compiled under the includer's target pragma, so the includer takes the headers first.

namespace weft::hca::kernels {
namespace {

// Unaligned values of up to WEFT_KERNELS_VECTOR bytes, the widest that the instruction set has.
template <std::size_t bytes>
struct Unit {
  typedef std::uint64_t type __attribute__((vector_size(bytes), aligned(1), may_alias));
};
template <>
struct Unit<1> {
  typedef std::uint8_t type __attribute__((aligned(1), may_alias));
};
template <>
struct Unit<2> {
  typedef std::uint16_t type __attribute__((aligned(1), may_alias));
};
template <>
struct Unit<4> {
  typedef std::uint32_t type __attribute__((aligned(1), may_alias));
};
template <>
struct Unit<8> {
  typedef std::uint64_t type __attribute__((aligned(1), may_alias));
};

template <std::size_t bytes>
[[gnu::always_inline]] inline void move(std::byte* out, const std::byte* in) noexcept {
  constexpr std::size_t unit = bytes < WEFT_KERNELS_VECTOR ? bytes : WEFT_KERNELS_VECTOR;
  using U = typename Unit<unit>::type;
  U value[bytes / unit];
#pragma GCC unroll 8
  for (std::size_t i = 0; i < bytes / unit; ++i)
    value[i] = *reinterpret_cast<const U*>(in + i * unit);
#pragma GCC unroll 8
  for (std::size_t i = 0; i < bytes / unit; ++i) *reinterpret_cast<U*>(out + i * unit) = value[i];
}

template <std::size_t bytes>
[[gnu::always_inline]] inline void move_two(std::byte* out, const std::byte* in,
                                            std::size_t second) noexcept {
  move<bytes>(out, in);
  move<bytes>(out + second, in + second);
}

inline constexpr std::size_t wide = 256;
/// From here on the library's memcpy is as good as anything, its call included.
inline constexpr std::size_t library = 2048;

/// One block of the class with power of two `power`; `odd` if it is longer than that.
template <std::size_t power, bool odd>
[[gnu::always_inline]] inline void move_block(std::byte* out, const std::byte* in,
                                              std::size_t block) noexcept {
  if constexpr (power == wide) {
    if (block >= library) {
      std::memcpy(out, in, block);
      return;
    }
    std::size_t at = 0;
    for (; at + 128 <= block; at += 128) move_two<64>(out + at, in + at, 64);
    move_two<64>(out + block - 128, in + block - 128, 64);
  } else if constexpr (power == 128) {
    move_two<64>(out, in, 64);
    if constexpr (odd) move_two<64>(out + block - 128, in + block - 128, 64);
  } else if constexpr (odd) {
    move_two<power>(out, in, block - power);
  } else {
    move<power>(out, in);
  }
}

template <std::size_t power, bool odd>
void gather(std::byte* packed, const std::byte* memory, std::ptrdiff_t stride, std::size_t count,
            std::size_t block) noexcept {
  const std::size_t step = odd || power == wide ? block : power;
#pragma GCC unroll 4
  for (std::size_t i = 0; i < count; ++i) {
    move_block<power, odd>(packed, memory, block);
    packed += step;
    memory += stride;
  }
}

template <std::size_t power, bool odd>
void scatter(std::byte* memory, std::ptrdiff_t stride, const std::byte* packed, std::size_t count,
             std::size_t block) noexcept {
  const std::size_t step = odd || power == wide ? block : power;
#pragma GCC unroll 4
  for (std::size_t i = 0; i < count; ++i) {
    move_block<power, odd>(memory, packed, block);
    packed += step;
    memory += stride;
  }
}

template <std::size_t power, bool odd>
void copy(std::byte* out, std::ptrdiff_t out_stride, const std::byte* in, std::ptrdiff_t in_stride,
          std::size_t count, std::size_t block) noexcept {
#pragma GCC unroll 4
  for (std::size_t i = 0; i < count; ++i) {
    move_block<power, odd>(out, in, block);
    out += out_stride;
    in += in_stride;
  }
}

template <std::size_t power, bool odd, typename Offset>
void gather_list(std::byte* packed, const std::byte* memory, const Offset* offsets,
                 std::size_t count, std::size_t block) noexcept {
  const std::size_t step = odd || power == wide ? block : power;
#pragma GCC unroll 4
  for (std::size_t i = 0; i < count; ++i) {
    move_block<power, odd>(packed, memory + offsets[i], block);
    packed += step;
  }
}

template <std::size_t power, bool odd, typename Offset>
void scatter_list(std::byte* memory, const Offset* offsets, const std::byte* packed,
                  std::size_t count, std::size_t block) noexcept {
  const std::size_t step = odd || power == wide ? block : power;
#pragma GCC unroll 4
  for (std::size_t i = 0; i < count; ++i) {
    move_block<power, odd>(memory + offsets[i], packed, block);
    packed += step;
  }
}

/// A block of any length, by the power of two below it.
[[gnu::always_inline]] inline void move_any(std::byte* out, const std::byte* in,
                                            std::size_t length) noexcept {
  if (length >= 256) {
    std::memcpy(out, in, length);
  } else if (length >= 128) {
    move_block<128, true>(out, in, length);
  } else if (length >= 64) {
    move_block<64, true>(out, in, length);
  } else if (length >= 32) {
    move_block<32, true>(out, in, length);
  } else if (length >= 16) {
    move_block<16, true>(out, in, length);
  } else if (length >= 8) {
    move_block<8, true>(out, in, length);
  } else if (length >= 4) {
    move_block<4, true>(out, in, length);
  } else if (length >= 2) {
    move_block<2, true>(out, in, length);
  } else if (length == 1) {
    move<1>(out, in);
  }
}

void gather_mixed(std::byte* packed, const std::byte* memory, const Entry32* entries,
                  std::size_t count) noexcept {
  for (std::size_t i = 0; i < count; ++i) {
    move_any(packed, memory + entries[i].offset, entries[i].length);
    packed += entries[i].length;
  }
}

void scatter_mixed(std::byte* memory, const Entry32* entries, const std::byte* packed,
                   std::size_t count) noexcept {
  for (std::size_t i = 0; i < count; ++i) {
    move_any(memory + entries[i].offset, packed, entries[i].length);
    packed += entries[i].length;
  }
}

template <std::size_t power, bool odd>
constexpr BlockKernels block_kernels() {
  return {gather<power, odd>,
          scatter<power, odd>,
          copy<power, odd>,
          gather_list<power, odd, std::uint32_t>,
          scatter_list<power, odd, std::uint32_t>,
          gather_list<power, odd, std::uint64_t>,
          scatter_list<power, odd, std::uint64_t>};
}

/// Index: class_of().
constexpr Table make_table(const char* name) {
  return {name,
          {block_kernels<1, false>(), block_kernels<1, true>(), block_kernels<2, false>(),
           block_kernels<2, true>(), block_kernels<4, false>(), block_kernels<4, true>(),
           block_kernels<8, false>(), block_kernels<8, true>(), block_kernels<16, false>(),
           block_kernels<16, true>(), block_kernels<32, false>(), block_kernels<32, true>(),
           block_kernels<64, false>(), block_kernels<64, true>(), block_kernels<128, false>(),
           block_kernels<128, true>(), block_kernels<wide, true>()},
          {gather_mixed, scatter_mixed}};
}

}  // namespace
}  // namespace weft::hca::kernels
