#include "hca/kernels/kernels.hpp"

#include <array>
#include <bit>

#include "hca/kernels/kernels_tables.hpp"

namespace weft::hca::kernels {

std::size_t class_of(std::size_t block) noexcept {
  if (block >= 256) return class_count - 1;
  const std::size_t power = std::bit_width(block) - 1;
  return 2 * power + (std::has_single_bit(block) ? 0 : 1);
}

namespace {

struct Supported {
  std::array<const Table*, 3> list{};
  std::size_t count = 0;

  Supported() noexcept {
#if defined(__x86_64__)
    __builtin_cpu_init();
    const bool avx2 = __builtin_cpu_supports("avx2") && __builtin_cpu_supports("bmi") &&
                      __builtin_cpu_supports("bmi2");
    if (avx2 && __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512vl") &&
        __builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512dq") &&
        __builtin_cpu_supports("avx512vbmi")) {
      list[count++] = &avx512_table;
    }
    if (avx2) list[count++] = &avx2_table;
#endif
    list[count++] = &portable_table;
  }
};

}  // namespace

std::span<const Table* const> tables() noexcept {
  static const Supported supported;
  return {supported.list.data(), supported.count};
}

}  // namespace weft::hca::kernels
