#include "ucx-tl/window.hpp"

#include <sys/mman.h>
#include <ucs/memory/memtype_cache.h>

#include <new>

#include "ucx-tl/window_memory_type.hpp"

namespace weft::ucx {
namespace {

constexpr std::uint64_t low_half = 0xffffffffu;

/// Addresses that nothing may touch, aligned to their length.
std::uintptr_t reserve_aligned(std::uint64_t length) noexcept {
  void* twice =
      mmap(nullptr, 2 * length, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (twice == MAP_FAILED) return 0;
  const auto start = reinterpret_cast<std::uintptr_t>(twice);
  const std::uintptr_t aligned = (start + length - 1) & ~(length - 1);
  if (aligned != start) munmap(twice, aligned - start);
  const std::uintptr_t end = aligned + length;
  if (end != start + 2 * length) {
    munmap(reinterpret_cast<void*>(end), start + 2 * length - end);
  }
  madvise(reinterpret_cast<void*>(aligned), length, MADV_DONTDUMP);
  return aligned;
}

}  // namespace

WindowArena::~WindowArena() {
  if (length_ != 0) munmap(address(), length_);
}

bool WindowArena::open(std::uint32_t slots) noexcept {
  if (is_open()) return true;
#if defined(__SANITIZE_THREAD__)
  if (slots > 64) slots = 64;  // its shadow leaves little room
#endif
  for (; slots != 0; slots /= 4) {
    start_ = reserve_aligned(slots * slot_size);
    if (start_ != 0) break;
  }
  if (slots == 0) return false;
  slots_.reset(new (std::nothrow) Slot[slots]);
  if (slots_ == nullptr) {
    munmap(address(), slots * slot_size);
    start_ = 0;
    return false;
  }
  for (std::uint32_t i = 0; i + 1 < slots; ++i)
    slots_[i].next.store(i + 2, std::memory_order_relaxed);
  free_.store(1, std::memory_order_relaxed);
  slot_count_ = slots;
  length_ = slots * slot_size;
  return true;
}

void WindowArena::announce() noexcept {
  if (announced_ || !is_open()) return;
  announced_ = true;
  // The look-up makes UCX create the cache; an update before there is one is dropped.
  ucs_memory_info_t info;
  ucs_memtype_cache_lookup(address(), 1, &info);
  ucs_memtype_cache_update(address(), length_, window_memory_type, UCS_SYS_DEVICE_ID_UNKNOWN);
}

void* WindowArena::bind(void* buffer, const hca::Layout& layout) noexcept {
  if (layout.size() > max_window) return nullptr;
  // Acquire: the slot's fields are written by whoever released it.
  std::uint64_t top = free_.load(std::memory_order_acquire);
  std::uint64_t below;
  do {
    if ((top & low_half) == 0) return nullptr;
    const std::uint32_t next = slots_[(top & low_half) - 1].next.load(std::memory_order_relaxed);
    below = ((top & ~low_half) + (low_half + 1)) | next;
  } while (!free_.compare_exchange_weak(top, below, std::memory_order_acquire));
  const std::uint64_t number = (top & low_half) - 1;
  slots_[number].base = static_cast<std::byte*>(buffer);
  slots_[number].layout = &layout;
  return reinterpret_cast<void*>(start_ + (number << slot_shift));
}

void WindowArena::release(void* window) noexcept {
  const std::uint64_t distance = reinterpret_cast<std::uintptr_t>(window) - start_;
  if (distance >= length_) return;
  const auto number = static_cast<std::uint32_t>(distance >> slot_shift);
  slots_[number].layout = nullptr;
  std::uint64_t top = free_.load(std::memory_order_relaxed);
  std::uint64_t above;
  do {
    slots_[number].next.store(static_cast<std::uint32_t>(top & low_half),
                              std::memory_order_relaxed);
    above = ((top & ~low_half) + (low_half + 1)) | (number + 1);
    // Release: the next owner of the slot comes after our last use of it.
  } while (!free_.compare_exchange_weak(top, above, std::memory_order_release,
                                        std::memory_order_relaxed));
}

constinit detail::Immortal detail::process_arena;

}  // namespace weft::ucx
