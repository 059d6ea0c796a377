// Regions of scattered pages.
#pragma once

#include <infiniband/verbs.h>

#include <cstddef>
#include <cstdint>

namespace weft::verbs {

ibv_mr* reg_mr_sg(ibv_pd* pd, void* const* pages, std::size_t num_pages, std::uint64_t mr_addr,
                  std::size_t mr_offset, std::size_t mr_length, int access);
ibv_mr* reg_mr_bitmap(ibv_pd* pd, void* range, std::size_t num_pages, const std::uint64_t* bitmap,
                      std::uint64_t mr_addr, std::size_t mr_offset, std::size_t mr_length,
                      int access);

}  // namespace weft::verbs
