#include "verbs/page_list.hpp"

#include <unistd.h>

#include <algorithm>
#include <bit>
#include <cerrno>
#include <vector>

#include "verbs/layout.hpp"
#include "verbs/log.hpp"
#include "verbs/memory_region.hpp"

namespace weft::verbs {

namespace {

std::uint64_t page_size() {
  static const auto size = static_cast<std::uint64_t>(::sysconf(_SC_PAGESIZE));
  return size;
}

void check_aligned(std::uint64_t addr) {
  if (addr % page_size() == 0) return;
  refuse(EINVAL, "address " + std::to_string(addr) + " is not aligned to a page of " +
                     std::to_string(page_size()));
}

/// What the two calls have in common.
struct Request {
  std::uint64_t addr;
  std::uint64_t offset;
  std::uint64_t length;
  unsigned access;

  /// Pages that it needs. Throws hca::Error EINVAL.
  [[nodiscard]] std::uint64_t pages() const {
    access_of(access);
    if (length == 0) refuse(EINVAL, "a region of no bytes");
    check_range(reinterpret_cast<const void*>(addr), length, addr);
    check_limit(EINVAL, "mr_offset", offset, page_size() - 1);
    if ((access & IBV_ACCESS_ZERO_BASED) != 0 && addr != 0) {
      refuse(EINVAL, "mr_addr " + std::to_string(addr) + " of a zero-based region");
    }
    return (offset + length + page_size() - 1) / page_size();
  }
};

[[noreturn]] void too_few(std::uint64_t given, std::uint64_t needed) {
  refuse(EINVAL, std::to_string(given) + " pages, the region needs " + std::to_string(needed));
}

/// Brings in pages, neighbours in one go: a call to the system takes longer than anything else
/// here.
void populate_pages(std::vector<hca::Block> pages, bool writable) {
  const auto before = [](const hca::Block& a, const hca::Block& b) { return a.offset < b.offset; };
  if (!std::is_sorted(pages.begin(), pages.end(), before)) {
    std::sort(pages.begin(), pages.end(), before);
  }
  for (std::size_t i = 0; i < pages.size();) {
    const std::size_t first = i;
    while (++i < pages.size() &&
           pages[i].offset == pages[i - 1].offset + static_cast<std::int64_t>(page_size())) {
    }
    populate(reinterpret_cast<void*>(pages[first].offset), (i - first) * page_size(), writable);
  }
}

ibv_mr* registered(ibv_pd* pd, const Request& request, const std::vector<hca::Block>& pages) {
  populate_pages(pages, (request.access & IBV_ACCESS_LOCAL_WRITE) != 0);
  auto mr = std::make_unique<MemoryRegion>();
  mr->iova = request.addr;
  mr->addr = reinterpret_cast<void*>(request.addr);
  mr->length = request.length;
  mr->access = request.access;
  hca::emu::Region region;
  region.addr = request.addr;
  region.length = request.length;
  region.layout = hca::Layout::slice(hca::Layout::sg_list(pages), request.offset, request.length);
  region.access = access_of(request.access);
  region.owner = mr.get();
  mr->core = ProtectionDomain::of(pd).core->register_region(std::move(region));
  enter(*mr, pd);
  return mr.release();
}

}  // namespace

ibv_mr* reg_mr_sg(ibv_pd* pd, void* const* pages, std::size_t num_pages, std::uint64_t mr_addr,
                  std::size_t mr_offset, std::size_t mr_length, int access) {
  return guarded_pointer("ibv_reg_mr_sg", [&]() -> ibv_mr* {
    const Request request{mr_addr, mr_offset, mr_length, static_cast<unsigned>(access)};
    const std::uint64_t needed = request.pages();
    if (pages == nullptr || num_pages < needed) too_few(pages == nullptr ? 0 : num_pages, needed);
    std::vector<hca::Block> blocks(needed);
    for (std::size_t i = 0; i < needed; ++i) {
      const auto at = reinterpret_cast<std::uint64_t>(pages[i]);
      check_aligned(at);
      blocks[i] = {static_cast<std::int64_t>(at), page_size()};
    }
    return registered(pd, request, blocks);
  });
}

ibv_mr* reg_mr_bitmap(ibv_pd* pd, void* range, std::size_t num_pages, const std::uint64_t* bitmap,
                      std::uint64_t mr_addr, std::size_t mr_offset, std::size_t mr_length,
                      int access) {
  return guarded_pointer("ibv_reg_mr_bitmap", [&]() -> ibv_mr* {
    const Request request{mr_addr, mr_offset, mr_length, static_cast<unsigned>(access)};
    const std::uint64_t needed = request.pages();
    if (bitmap == nullptr) refuse(EINVAL, "bitmap is null");
    if (range == nullptr) refuse(EINVAL, "range is null");
    const auto start = reinterpret_cast<std::uint64_t>(range);
    check_aligned(start);
    check_limit(EINVAL, "num_pages", num_pages, (~std::uint64_t{0} - start) / page_size());
    if (num_pages < needed) too_few(num_pages, needed);
    std::vector<hca::Block> blocks;
    blocks.reserve(needed);
    constexpr std::uint64_t word_bits = 64;
    for (std::uint64_t first = 0; first < num_pages && blocks.size() < needed; first += word_bits) {
      std::uint64_t word = bitmap[first / word_bits];
      if (num_pages - first < word_bits) word &= (std::uint64_t{1} << (num_pages - first)) - 1;
      for (; word != 0 && blocks.size() < needed; word &= word - 1) {
        const auto page = first + static_cast<std::uint64_t>(std::countr_zero(word));
        blocks.push_back({static_cast<std::int64_t>(start + page * page_size()), page_size()});
      }
    }
    if (blocks.size() < needed) too_few(blocks.size(), needed);
    return registered(pd, request, blocks);
  });
}

}  // namespace weft::verbs
