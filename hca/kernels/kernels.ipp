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

#if WEFT_KERNELS_VECTOR == 64

/// The low `n` <= 64 bits.
[[gnu::always_inline]] inline __mmask64 low_bits(std::size_t n) noexcept {
  return _bzhi_u64(~0ull, static_cast<unsigned>(n));
}

/// Small blocks with small gaps, several to a window of two vectors: which bytes of the window they
/// are, and by which permutations window and stream become each other.
class Dense {
 public:
  /// Whether the way by windows is the shorter one.
  [[gnu::always_inline]] static bool pays(std::ptrdiff_t stride, std::size_t count,
                                          std::size_t block) noexcept {
    constexpr std::size_t few = 5;
    return count >= 128 && block <= 64 / few && stride > static_cast<std::ptrdiff_t>(block) &&
           stride <= static_cast<std::ptrdiff_t>((128 - block) / (few - 1));
  }

  Dense(std::size_t stride, std::size_t block) noexcept
      : blocks_(std::min(64 / block, (128 - block) / stride + 1)),
        packed_bytes_(blocks_ * block),
        memory_bytes_(blocks_ * stride) {
    unsigned __int128 used = 0;
    for (std::size_t i = 0; i < blocks_; ++i) {
      used |= static_cast<unsigned __int128>(low_bits(block)) << (i * stride);
    }
    low_ = static_cast<__mmask64>(used);
    high_ = static_cast<__mmask64>(used >> 64);
    // Divisions of small numbers by multiplication.
    const auto b = static_cast<std::uint32_t>(block);
    const auto s = static_cast<std::uint32_t>(stride);
    const std::uint32_t by_block = 65536 / b + 1;
    const std::uint32_t by_stride = 65536 / s + 1;
    alignas(64) std::uint8_t from_window[64];
    alignas(64) std::uint8_t from_stream[128];
    for (std::uint32_t i = 0; i < 64; ++i) {
      from_window[i] = static_cast<std::uint8_t>(i + (i * by_block >> 16) * (s - b));
    }
    for (std::uint32_t i = 0; i < 128; ++i) {
      from_stream[i] = static_cast<std::uint8_t>(i - (i * by_stride >> 16) * (s - b));
    }
    from_window_ = _mm512_load_si512(from_window);
    from_stream_low_ = _mm512_load_si512(from_stream);
    from_stream_high_ = _mm512_load_si512(from_stream + 64);
  }

  /// Moves whole windows and takes them off `count`. Gaps are neither read nor written.
  void gather(std::byte*& packed, const std::byte*& memory, std::size_t& count,
              std::size_t block) const noexcept {
    const std::byte* const end = packed + count * block;
    for (; count >= blocks_; count -= blocks_) {
      const __m512i v =
          _mm512_permutex2var_epi8(_mm512_maskz_loadu_epi8(low_, memory), from_window_,
                                   _mm512_maskz_loadu_epi8(high_, memory + 64));
      // What is written beyond these blocks, the next ones overwrite.
      if (end - packed >= 64) [[likely]] {
        _mm512_storeu_si512(packed, v);
      } else {
        _mm512_mask_storeu_epi8(packed, low_bits(packed_bytes_), v);
      }
      packed += packed_bytes_;
      memory += memory_bytes_;
    }
  }

  void scatter(std::byte*& memory, const std::byte*& packed, std::size_t& count) const noexcept {
    const __mmask64 whole = low_bits(packed_bytes_);
    for (; count >= blocks_; count -= blocks_) {
      const __m512i v = _mm512_maskz_loadu_epi8(whole, packed);
      _mm512_mask_storeu_epi8(memory, low_, _mm512_permutexvar_epi8(from_stream_low_, v));
      _mm512_mask_storeu_epi8(memory + 64, high_, _mm512_permutexvar_epi8(from_stream_high_, v));
      packed += packed_bytes_;
      memory += memory_bytes_;
    }
  }

 private:
  std::size_t blocks_;
  std::size_t packed_bytes_;
  std::size_t memory_bytes_;
  __mmask64 low_;
  __mmask64 high_;
  __m512i from_window_;
  __m512i from_stream_low_;
  __m512i from_stream_high_;
};

#endif

template <std::size_t power, bool odd>
void gather(std::byte* packed, const std::byte* memory, std::ptrdiff_t stride, std::size_t count,
            std::size_t block) noexcept {
#if WEFT_KERNELS_VECTOR == 64
  if constexpr (power <= 8) {
    if (Dense::pays(stride, count, block)) {
      Dense(static_cast<std::size_t>(stride), block).gather(packed, memory, count, block);
    }
  }
#endif
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
#if WEFT_KERNELS_VECTOR == 64
  if constexpr (power <= 8) {
    if (Dense::pays(stride, count, block)) {
      Dense(static_cast<std::size_t>(stride), block).scatter(memory, packed, count);
    }
  }
#endif
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

/// `inner_count` 0: as many as `inner` says. Otherwise known at compile time, so that a short inner
/// loop has no branches.
template <std::size_t power, bool odd, std::size_t inner_count>
[[gnu::always_inline]] inline void plane_of(std::byte* out, const std::byte* in, const Step& outer,
                                            const Step& inner, std::size_t block) noexcept {
  const std::size_t count = inner_count != 0 ? inner_count : inner.count;
  for (std::size_t i = 0; i < outer.count; ++i) {
    std::byte* to = out;
    const std::byte* from = in;
#pragma GCC unroll 8
    for (std::size_t j = 0; j < count; ++j) {
      move_block<power, odd>(to, from, block);
      to += inner.out;
      from += inner.in;
    }
    out += outer.out;
    in += outer.in;
  }
}

template <std::size_t power, bool odd>
void plane(std::byte* out, const std::byte* in, const Step& outer, const Step& inner,
           std::size_t block) noexcept {
  if constexpr (power <= 32) {
    switch (inner.count) {
      case 2:
        return plane_of<power, odd, 2>(out, in, outer, inner, block);
      case 3:
        return plane_of<power, odd, 3>(out, in, outer, inner, block);
      case 4:
        return plane_of<power, odd, 4>(out, in, outer, inner, block);
      case 8:
        return plane_of<power, odd, 8>(out, in, outer, inner, block);
      default:
        break;
    }
  }
  plane_of<power, odd, 0>(out, in, outer, inner, block);
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

#if WEFT_KERNELS_VECTOR == 64

/// A block of any length without a branch that depends on lengths up to 64.
[[gnu::always_inline]] inline void move_masked(std::byte* out, const std::byte* in,
                                               std::size_t length) noexcept {
  while (length > 64) [[unlikely]] {
      move<64>(out, in);
      out += 64;
      in += 64;
      length -= 64;
    }
  const __mmask64 mask = low_bits(length);
  _mm512_mask_storeu_epi8(out, mask, _mm512_maskz_loadu_epi8(mask, in));
}

void gather_mixed(std::byte* packed, const std::byte* memory, const Entry32* entries,
                  std::size_t count) noexcept {
  for (std::size_t i = 0; i < count; ++i) {
    move_masked(packed, memory + entries[i].offset, entries[i].length);
    packed += entries[i].length;
  }
}

void scatter_mixed(std::byte* memory, const Entry32* entries, const std::byte* packed,
                   std::size_t count) noexcept {
  for (std::size_t i = 0; i < count; ++i) {
    move_masked(memory + entries[i].offset, packed, entries[i].length);
    packed += entries[i].length;
  }
}

#else

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

#endif

template <std::size_t power, bool odd>
constexpr BlockKernels block_kernels() {
  return {gather<power, odd>,
          scatter<power, odd>,
          copy<power, odd>,
          plane<power, odd>,
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
