// Slot: a small payload that one process writes and any number read, always whole: who reads gets a
// payload that was written, never half of one and half of another.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>

#include "hca/emu/device_file.hpp"

namespace weft::dm {

class Slot {
 public:
  /// Device memory that a slot for payloads of up to `capacity` bytes takes: two buffers and a unit
  /// that says which one is valid.
  static constexpr std::size_t bytes(std::size_t capacity) noexcept {
    return hca::emu::dm_unit + 2 * buffer(capacity);
  }
  /// A view of zeroed memory, or of memory that held a slot of this capacity before.
  Slot(std::byte* memory, std::size_t capacity) noexcept
      : head_(reinterpret_cast<Head*>(memory)),
        buffers_(memory + hca::emu::dm_unit),
        capacity_(capacity) {}

  [[nodiscard]] std::size_t capacity() const noexcept { return capacity_; }
  /// How often it was written.
  [[nodiscard]] std::uint64_t version() const noexcept {
    return head_->version.load(std::memory_order_acquire);
  }

  /// One process at a time. Killed in the middle, it leaves the payload before. False when the data
  /// is longer than the capacity.
  bool write(std::span<const std::byte> data) noexcept {
    if (data.size() > capacity_) return false;
    const std::uint64_t next = head_->version.load(std::memory_order_relaxed) + 1;
    // Whoever reads what the buffer held before looks at the version again, and must then find that
    // this one had begun.
    head_->begun.store(next, std::memory_order_relaxed);
    std::atomic_thread_fence(std::memory_order_release);
    copy_in(at(next), data);
    head_->length[next % 2].store(data.size(), std::memory_order_relaxed);
    head_->version.store(next, std::memory_order_release);
    return true;
  }

  /// Copies what was written last and returns its version and length; what exceeds `out` is left
  /// out. Version 0: nothing was written yet.
  struct Read {
    std::uint64_t version;
    std::size_t length;
  };
  Read read(std::span<std::byte> out) const noexcept {
    while (true) {
      const std::uint64_t version = head_->version.load(std::memory_order_acquire);
      if (version == 0) return {0, 0};
      std::size_t length = head_->length[version % 2].load(std::memory_order_relaxed);
      length = length < capacity_ ? length : capacity_;  // not trusted for a bound
      copy_out(at(version), out.first(length < out.size() ? length : out.size()));
      std::atomic_thread_fence(std::memory_order_acquire);
      // The buffer is written again by the version after the next.
      if (head_->begun.load(std::memory_order_relaxed) < version + 2) return {version, length};
    }
  }

 private:
  struct Head {
    std::atomic<std::uint64_t> version;
    std::atomic<std::uint64_t> begun;
    std::atomic<std::uint64_t> length[2];
  };
  using Word = std::atomic<std::uint64_t>;

  static constexpr std::size_t buffer(std::size_t capacity) noexcept {
    return (capacity + hca::emu::dm_unit - 1) / hca::emu::dm_unit * hca::emu::dm_unit;
  }
  [[nodiscard]] Word* at(std::uint64_t version) const noexcept {
    return reinterpret_cast<Word*>(buffers_ + version % 2 * buffer(capacity_));
  }
  // Word by word and atomically, since a reader may meet a writer: it then reads again.
  static void copy_in(Word* to, std::span<const std::byte> from) noexcept {
    for (std::size_t i = 0; i < from.size(); i += sizeof(Word)) {
      std::uint64_t word = 0;
      std::memcpy(&word, from.data() + i, from.size() - i < 8 ? from.size() - i : 8);
      to[i / 8].store(word, std::memory_order_relaxed);
    }
  }
  static void copy_out(const Word* from, std::span<std::byte> to) noexcept {
    for (std::size_t i = 0; i < to.size(); i += sizeof(Word)) {
      const std::uint64_t word = from[i / 8].load(std::memory_order_relaxed);
      std::memcpy(to.data() + i, &word, to.size() - i < 8 ? to.size() - i : 8);
    }
  }

  Head* head_;
  std::byte* buffers_;
  std::size_t capacity_;
};

}  // namespace weft::dm
