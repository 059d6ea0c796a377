// Counters and slots in device memory, for C++: weft/dm.h with owners and exceptions. See
// weft_dm(3).
#pragma once

#include <weft/dm.h>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <system_error>

namespace weft {

/// One 64-bit counter; copies name the same one.
class DmCounter {
 public:
  explicit DmCounter(weft_dm_counter* counter) noexcept : counter_(counter) {}
  [[nodiscard]] std::uint64_t load() const noexcept { return weft_dm_load(counter_); }
  void store(std::uint64_t value) noexcept { weft_dm_store(counter_, value); }
  void add(std::uint64_t value) noexcept { weft_dm_add(counter_, value); }
  std::uint64_t fetch_add(std::uint64_t value) noexcept {
    return weft_dm_fetch_add(counter_, value);
  }
  std::uint64_t swap(std::uint64_t value) noexcept { return weft_dm_swap(counter_, value); }
  std::uint64_t compare_swap(std::uint64_t expected, std::uint64_t desired) noexcept {
    return weft_dm_compare_swap(counter_, expected, desired);
  }
  /// The value that decided; nothing when the time was over first.
  [[nodiscard]] std::optional<std::uint64_t> wait(
      weft_dm_comparison comparison, std::uint64_t value,
      std::chrono::milliseconds most = std::chrono::milliseconds(-1)) const noexcept {
    std::uint64_t seen = 0;
    const int code =
        weft_dm_wait(counter_, comparison, value, static_cast<long>(most.count()), &seen);
    return code == 0 ? std::optional(seen) : std::nullopt;
  }

 private:
  weft_dm_counter* counter_;
};

/// An allocation. Failures throw std::system_error.
class Dm {
 public:
  explicit Dm(std::size_t bytes, weft_dm_place place = WEFT_DM_DEVICE_OR_HOST) {
    weft_dm* dm = nullptr;
    check(weft_dm_alloc(bytes, place, &dm));
    dm_.reset(dm);
  }
  explicit Dm(const weft_dm_handle& handle) {
    weft_dm* dm = nullptr;
    check(weft_dm_attach(&handle, &dm));
    dm_.reset(dm);
  }
  [[nodiscard]] std::size_t size() const noexcept { return weft_dm_size(dm_.get()); }
  [[nodiscard]] bool in_device() const noexcept { return weft_dm_in_device(dm_.get()) != 0; }
  [[nodiscard]] weft_dm_handle handle() const noexcept {
    weft_dm_handle handle;
    weft_dm_get_handle(dm_.get(), &handle);
    return handle;
  }
  [[nodiscard]] DmCounter counter(std::size_t index) const {
    weft_dm_counter* counter = weft_dm_counter_at(dm_.get(), index);
    if (counter == nullptr) check(22);
    return DmCounter(counter);
  }
  [[nodiscard]] weft_dm_slot slot(std::size_t offset, std::size_t capacity) const {
    weft_dm_slot slot;
    check(weft_dm_slot_at(dm_.get(), offset, capacity, &slot));
    return slot;
  }

 private:
  static void check(int code) {
    if (code != 0) throw std::system_error(code, std::generic_category(), weft_dm_error());
  }
  struct Free {
    void operator()(weft_dm* dm) const noexcept { weft_dm_free(dm); }
  };
  std::unique_ptr<weft_dm, Free> dm_;
};

}  // namespace weft
