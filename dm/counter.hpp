// Counter: 64 bits in a unit of device memory, changed by the processor's own atomics, as the
// adapter's are, so that all processes agree and a process killed in the middle of an update has
// either made it or not.
//
// All operations are sequentially consistent: what a process wrote before it changed a counter is
// seen by whoever saw the change.
#pragma once

#include <atomic>
#include <bit>
#include <chrono>
#include <cstddef>
#include <cstdint>

#include "dm/back_off.hpp"
#include "hca/emu/device_file.hpp"
#include "hca/emu/futex.hpp"

namespace weft::dm {

/// What lies in the unit. All zero is a counter of 0.
struct alignas(hca::emu::dm_unit) CounterUnit {
  std::atomic<std::uint64_t> value;
  std::atomic<std::uint32_t> sleepers;
};
static_assert(sizeof(CounterUnit) == hca::emu::dm_unit);
static_assert(std::atomic<std::uint64_t>::is_always_lock_free);
static_assert(std::endian::native == std::endian::little, "the futex is the low half of the value");

/// A view of a counter; copies name the same one. Valid as long as the memory is.
class Counter {
 public:
  explicit Counter(std::byte* unit) noexcept : unit_(reinterpret_cast<CounterUnit*>(unit)) {}

  [[nodiscard]] std::uint64_t load() const noexcept { return unit_->value.load(); }
  void store(std::uint64_t value) noexcept {
    unit_->value.store(value);
    wake();
  }
  void add(std::uint64_t value) noexcept { fetch_add(value); }
  /// The value before, as the next two return.
  std::uint64_t fetch_add(std::uint64_t value) noexcept {
    const std::uint64_t before = unit_->value.fetch_add(value);
    wake();
    return before;
  }
  std::uint64_t swap(std::uint64_t value) noexcept {
    const std::uint64_t before = unit_->value.exchange(value);
    wake();
    return before;
  }
  /// `desired` takes the place of `expected`, if that is the value.
  std::uint64_t compare_swap(std::uint64_t expected, std::uint64_t desired) noexcept {
    if (unit_->value.compare_exchange_strong(expected, desired)) wake();
    return expected;
  }

  /// Waits until `condition(value)` holds; false when it still does not after `most`. Nobody needs
  /// to be alive for it to return. `seen` is the value that decided.
  template <class Condition>
  bool wait(Condition condition, std::chrono::nanoseconds most, std::uint64_t* seen = nullptr,
            unsigned processes = 2) const noexcept {
    std::uint64_t value = load();
    bool holds = condition(value);
    for (BackOff back_off(processes); !holds && back_off.wait();) {
      value = load();
      holds = condition(value);
    }
    if (!holds) [[unlikely]] {
      holds = sleep(condition, most, value);
    }
    if (seen != nullptr) *seen = value;
    return holds;
  }

 private:
  void wake() noexcept {
    // After the change in the one order of all such operations: either this sees the sleeper, or
    // the sleeper, counted before it looks, sees the change.
    if (unit_->sleepers.load() != 0) [[unlikely]] {
      hca::emu::futex_wake(word(), INT32_MAX);
    }
  }
  [[nodiscard]] const std::uint32_t* word() const noexcept {
    return reinterpret_cast<const std::uint32_t*>(&unit_->value);
  }

  template <class Condition>
  [[gnu::noinline]] bool sleep(Condition condition, std::chrono::nanoseconds most,
                               std::uint64_t& value) const noexcept {
    using std::chrono::steady_clock;
    using namespace std::chrono_literals;
    const auto now = steady_clock::now();
    const bool for_ever = most > 24h * 365;
    const auto end = for_ever ? now : now + most;
    // RDMA atomics and a process that dies between its change and its call wake nobody: naps.
    std::chrono::nanoseconds nap = 100us;
    bool holds = false;
    unit_->sleepers.fetch_add(1);
    while (true) {
      value = load();
      holds = condition(value);
      if (holds) break;
      if (!for_ever) {
        const std::chrono::nanoseconds left = end - steady_clock::now();
        if (left <= 0ns) break;
        nap = nap < left ? nap : left;
      }
      hca::emu::futex_wait(word(), static_cast<std::uint32_t>(value), nap);
      nap = nap * 2 < 10ms ? nap * 2 : 10ms;
    }
    unit_->sleepers.fetch_sub(1);
    return holds;
  }

  CounterUnit* unit_;
};

}  // namespace weft::dm
