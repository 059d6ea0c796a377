// Kernels for processors with AVX-512 and its VBMI (permutations of bytes).
#if defined(__x86_64__)

#include <immintrin.h>

#include <algorithm>
#include <cstring>

#include "hca/kernels/kernels_tables.hpp"

#if defined(__clang__)
#pragma clang attribute push(                                                               \
    __attribute__((target("avx512f,avx512vl,avx512bw,avx512dq,avx512vbmi,avx2,bmi,bmi2"))), \
    apply_to = function)
#else
#pragma GCC push_options
#pragma GCC target("avx512f,avx512vl,avx512bw,avx512dq,avx512vbmi,avx2,bmi,bmi2")
#endif

#define WEFT_KERNELS_VECTOR 64
#include "hca/kernels/kernels.ipp"

#if defined(__clang__)
#pragma clang attribute pop
#else
#pragma GCC pop_options
#endif

namespace weft::hca::kernels {
const Table avx512_table = make_table("avx512");
}

#endif
