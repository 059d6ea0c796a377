#include "tests/counted_memory.hpp"

#include <malloc.h>

#include <atomic>
#include <cstdlib>
#include <new>

namespace weft::test {
namespace {

// Other threads allocate as well; only their sum has to be right.
std::atomic<std::size_t> now{0};
std::atomic<std::size_t> most{0};

void* counted(void* memory) {
  if (memory == nullptr) throw std::bad_alloc();
  const std::size_t here = ::malloc_usable_size(memory);
  const std::size_t sum = now.fetch_add(here, std::memory_order_relaxed) + here;
  std::size_t before = most.load(std::memory_order_relaxed);
  while (before < sum && !most.compare_exchange_weak(before, sum, std::memory_order_relaxed)) {
  }
  return memory;
}

void uncount(void* memory) noexcept {
  now.fetch_sub(::malloc_usable_size(memory), std::memory_order_relaxed);
  std::free(memory);
}

}  // namespace

std::size_t allocated() noexcept {
  return now.load(std::memory_order_relaxed);
}
std::size_t peak() noexcept {
  return most.load(std::memory_order_relaxed);
}
void start_peak() noexcept {
  most.store(allocated(), std::memory_order_relaxed);
}

}  // namespace weft::test

// The forms for arrays and the sized ones come down to these.
void* operator new(std::size_t size) {
  return weft::test::counted(std::malloc(size));
}
void* operator new(std::size_t size, std::align_val_t alignment) {
  const auto align = static_cast<std::size_t>(alignment);
  return weft::test::counted(std::aligned_alloc(align, (size + align - 1) / align * align));
}
void operator delete(void* memory) noexcept {
  weft::test::uncount(memory);
}
void operator delete(void* memory, std::align_val_t) noexcept {
  weft::test::uncount(memory);
}
void operator delete(void* memory, std::size_t) noexcept {
  weft::test::uncount(memory);
}
void operator delete(void* memory, std::size_t, std::align_val_t) noexcept {
  weft::test::uncount(memory);
}
