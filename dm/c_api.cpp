// The C interface: weft/dm.h over Allocation, Counter and Slot.
#include <cerrno>
#include <cstring>
#include <exception>
#include <new>
#include <string>

#include "dm/allocation.hpp"
#include "dm/counter.hpp"
#include "dm/slot.hpp"
#include "dm/weft/dm.h"
#include "hca/status.hpp"

using weft::dm::Allocation;
using weft::dm::Counter;
using weft::dm::Handle;
using weft::dm::Place;
using weft::dm::Slot;

struct weft_dm {
  std::unique_ptr<Allocation> allocation;
};

namespace {

static_assert(sizeof(weft_dm_handle) == sizeof(Handle));

thread_local std::string last_error;

/// Runs what may throw; the errno value that it comes to.
template <class Function>
int guarded(Function function) noexcept {
  int code = ENOMEM;
  try {
    function();
    return 0;
  } catch (const weft::hca::Error& error) {
    code = error.code();
    last_error = error.what();
  } catch (const std::exception& error) {
    last_error = error.what();
  }
  return code != 0 ? code : EINVAL;
}

std::string device_name() {
  return weft::hca::emu::device_from("WEFT_DEVICE");
}

Counter counter_of(const weft_dm_counter* counter) noexcept {
  auto* unit = const_cast<weft_dm_counter*>(counter);
  return Counter(reinterpret_cast<std::byte*>(unit));
}

Slot slot_of(const weft_dm_slot* slot) noexcept {
  return Slot(static_cast<std::byte*>(slot->address), slot->capacity);
}

}  // namespace

#define WEFT_EXPORT extern "C" __attribute__((visibility("default")))

WEFT_EXPORT int weft_dm_alloc(size_t bytes, int place, weft_dm** dm) {
  return guarded([&] {
    if (place != WEFT_DM_DEVICE && place != WEFT_DM_DEVICE_OR_HOST && place != WEFT_DM_HOST) {
      throw weft::hca::Error(EINVAL, std::to_string(place) + " is no place for memory");
    }
    *dm = new weft_dm{Allocation::create(device_name(), bytes, static_cast<Place>(place))};
  });
}

WEFT_EXPORT int weft_dm_attach(const weft_dm_handle* handle, weft_dm** dm) {
  return guarded([&] {
    Handle copy;
    std::memcpy(&copy, handle, sizeof copy);
    *dm = new weft_dm{Allocation::attach(copy)};
  });
}

WEFT_EXPORT void weft_dm_free(weft_dm* dm) {
  delete dm;
}

WEFT_EXPORT size_t weft_dm_size(const weft_dm* dm) {
  return dm->allocation->memory().size();
}

WEFT_EXPORT void* weft_dm_address(const weft_dm* dm) {
  return dm->allocation->memory().data();
}

WEFT_EXPORT int weft_dm_in_device(const weft_dm* dm) {
  return dm->allocation->in_device() ? 1 : 0;
}

WEFT_EXPORT void weft_dm_get_handle(const weft_dm* dm, weft_dm_handle* handle) {
  std::memcpy(handle, &dm->allocation->handle(), sizeof *handle);
}

WEFT_EXPORT int weft_dm_usage(size_t* total, size_t* available) {
  return guarded([&] {
    const auto device = weft::dm::open_device(device_name());
    *total = device->memory().size();
    *available = device->free_bytes();
  });
}

WEFT_EXPORT const char* weft_dm_error(void) {
  return last_error.c_str();
}

WEFT_EXPORT weft_dm_counter* weft_dm_counter_at(weft_dm* dm, size_t index) {
  const auto memory = dm->allocation->memory();
  const size_t units = (memory.size() + WEFT_DM_UNIT - 1) / WEFT_DM_UNIT;
  if (index < units) {
    return reinterpret_cast<weft_dm_counter*>(memory.data() + index * WEFT_DM_UNIT);
  }
  guarded([&] {
    throw weft::hca::Error(EINVAL,
                           "counter " + std::to_string(index) + " of " + std::to_string(units));
  });
  return nullptr;
}

WEFT_EXPORT uint64_t weft_dm_load(const weft_dm_counter* counter) {
  return counter_of(counter).load();
}
WEFT_EXPORT void weft_dm_store(weft_dm_counter* counter, uint64_t value) {
  counter_of(counter).store(value);
}
WEFT_EXPORT void weft_dm_add(weft_dm_counter* counter, uint64_t value) {
  counter_of(counter).add(value);
}
WEFT_EXPORT uint64_t weft_dm_fetch_add(weft_dm_counter* counter, uint64_t value) {
  return counter_of(counter).fetch_add(value);
}
WEFT_EXPORT uint64_t weft_dm_swap(weft_dm_counter* counter, uint64_t value) {
  return counter_of(counter).swap(value);
}
WEFT_EXPORT uint64_t weft_dm_compare_swap(weft_dm_counter* counter, uint64_t expected,
                                          uint64_t desired) {
  return counter_of(counter).compare_swap(expected, desired);
}

WEFT_EXPORT int weft_dm_wait(const weft_dm_counter* counter, int comparison, uint64_t value,
                             long milliseconds, uint64_t* seen) {
  if (comparison < WEFT_DM_EQUAL || comparison > WEFT_DM_AT_LEAST) {
    return guarded(
        [&] { throw weft::hca::Error(EINVAL, std::to_string(comparison) + " is no comparison"); });
  }
  constexpr auto for_ever = std::chrono::nanoseconds::max();
  constexpr auto longest = std::chrono::duration_cast<std::chrono::milliseconds>(for_ever).count();
  const auto most = milliseconds < 0 || milliseconds > longest
                        ? for_ever
                        : std::chrono::milliseconds(milliseconds);
  const auto holds = [=](uint64_t now) {
    return comparison == WEFT_DM_EQUAL       ? now == value
           : comparison == WEFT_DM_NOT_EQUAL ? now != value
                                             : now >= value;
  };
  return counter_of(counter).wait(holds, most, seen) ? 0 : ETIMEDOUT;
}

WEFT_EXPORT size_t weft_dm_slot_bytes(size_t capacity) {
  return Slot::bytes(capacity);
}

WEFT_EXPORT int weft_dm_slot_at(weft_dm* dm, size_t offset, size_t capacity, weft_dm_slot* slot) {
  return guarded([&] {
    const auto memory = dm->allocation->memory();
    const bool within = offset % WEFT_DM_UNIT == 0 && capacity != 0 && capacity <= memory.size() &&
                        offset <= memory.size() && Slot::bytes(capacity) <= memory.size() - offset;
    if (!within) {
      throw weft::hca::Error(EINVAL, "a slot of " + std::to_string(capacity) + " bytes at " +
                                         std::to_string(offset) + " of " +
                                         std::to_string(memory.size()));
    }
    *slot = {memory.data() + offset, capacity};
  });
}

WEFT_EXPORT int weft_dm_slot_write(const weft_dm_slot* slot, const void* data, size_t length) {
  const bool fits = slot_of(slot).write({static_cast<const std::byte*>(data), length});
  if (fits) return 0;
  return guarded([&] {
    throw weft::hca::Error(EMSGSIZE, std::to_string(length) + " bytes for a slot of " +
                                         std::to_string(slot->capacity));
  });
}

WEFT_EXPORT uint64_t weft_dm_slot_read(const weft_dm_slot* slot, void* data, size_t size,
                                       size_t* length) {
  const Slot::Read read = slot_of(slot).read({static_cast<std::byte*>(data), size});
  if (length != nullptr) *length = read.length;
  return read.version;
}
