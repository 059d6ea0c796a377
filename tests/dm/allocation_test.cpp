// Allocations and their handles, the fall-back to host memory, slots, and the C interface.
#include <cerrno>
#include <cstring>

#include "dm/slot.hpp"
#include "dm/weft/dm.hpp"
#include "hca/status.hpp"
#include "tests/dm/processes.hpp"

namespace weft::test {
namespace {

class DmAllocation : public DmProcesses {
 protected:
  void SetUp() override {
    DmProcesses::SetUp();
    ::setenv("WEFT_DEVICE", device.c_str(), 1);
  }
};

TEST_F(DmAllocation, ExhaustionNamesSizeAndFreeBytes) {
  const auto most = Allocation::create(device, 262144 - 128);
  try {
    Allocation::create(device, 200);
    FAIL() << "a full device allocated";
  } catch (const hca::Error& error) {
    EXPECT_EQ(error.code(), ENOMEM);
    EXPECT_STREQ(error.what(), "200 bytes of device memory asked for, 128 of 262144 free");
  }
  EXPECT_THROW(Allocation::create(device, 0), hca::Error);
}

TEST_F(DmAllocation, HostMemoryTakesOverAndIsSharedLikewise) {
  const auto most = Allocation::create(device, 262144);
  const auto host = Allocation::create(device, 100, Place::device_or_host);
  EXPECT_FALSE(host->in_device());
  const dm::Handle handle = host->handle();
  start([&] {
    const auto theirs = Allocation::attach(handle);
    for (int i = 0; i < 1000; ++i) counter(*theirs, 0).add(3);
    return theirs->in_device() ? 1 : 0;
  });
  expect_all_right();
  EXPECT_EQ(counter(*host, 0).load(), 3000u);
}

TEST_F(DmAllocation, HandlesThatAreNoneAreRefused) {
  const auto mine = allocate(4);
  const auto code_of = [](dm::Handle handle) {
    try {
      Allocation::attach(handle);
    } catch (const hca::Error& error) {
      return error.code();
    }
    return 0;
  };
  const auto changed = [&](auto change) {
    dm::Handle handle = mine->handle();
    change(handle);
    return code_of(handle);
  };
  EXPECT_EQ(code_of(mine->handle()), 0);
  EXPECT_EQ(changed([](auto& h) { h.magic = 1; }), EINVAL);
  EXPECT_EQ(changed([](auto& h) { h.in_host = 9; }), EINVAL);
  EXPECT_EQ(changed([](auto& h) { h.host ^= 1; }), EHOSTUNREACH);
  EXPECT_EQ(changed([](auto& h) { h.start_time += 1; }), EHOSTUNREACH);
  EXPECT_EQ(changed([](auto& h) { h.offset += 1; }), EINVAL);
  EXPECT_EQ(changed([](auto& h) { h.offset = ~std::uint64_t{63}; }), EINVAL);
  EXPECT_EQ(changed([](auto& h) { h.bytes = ~std::uint64_t{0}; }), EINVAL);
  EXPECT_EQ(changed([](auto& h) { h.bytes += 64; }), ESTALE);
  EXPECT_EQ(changed([](auto& h) { std::memset(h.device, 'x', sizeof h.device); }), EINVAL);
  EXPECT_EQ(changed([](auto& h) {
              h.in_host = 1;
              h.offset = 4000;  // no such descriptor
            }),
            EHOSTUNREACH);
}

TEST_F(DmAllocation, AFreedOneCannotBeAttached) {
  auto mine = allocate(4);
  const dm::Handle handle = mine->handle();
  mine.reset();
  EXPECT_THROW(Allocation::attach(handle), hca::Error);
}

TEST_F(DmAllocation, SlotsAreReadWhole) {
  constexpr std::size_t capacity = 200;
  const auto memory = Allocation::create(device, dm::Slot::bytes(capacity));
  dm::Slot slot(memory->memory().data(), capacity);
  std::byte nothing[1];
  EXPECT_EQ(slot.read(nothing).version, 0u);
  const dm::Handle handle = memory->handle();
  for (int reader = 0; reader < 2; ++reader) {
    start([&] {
      const auto theirs = Allocation::attach(handle);
      const dm::Slot view(theirs->memory().data(), capacity);
      std::vector<std::byte> payload(capacity);
      std::uint64_t last = 0;
      while (last < 5000) {
        const auto read = view.read(payload);
        if (read.version < last) return 1;
        last = read.version;
        if (last == 0) continue;
        if (read.length != 1 + last % capacity) return 2;
        for (std::size_t i = 0; i < read.length; ++i) {
          if (payload[i] != static_cast<std::byte>(last)) return 3;
        }
      }
      return 0;
    });
  }
  for (std::uint64_t version = 1; version <= 5000; ++version) {
    const std::vector<std::byte> payload(1 + version % capacity, static_cast<std::byte>(version));
    ASSERT_TRUE(slot.write(payload));
    if (version % 500 == 0) ::sched_yield();
  }
  expect_all_right();
  EXPECT_FALSE(slot.write(std::vector<std::byte>(capacity + 1)));
}

TEST_F(DmAllocation, CInterface) {
  weft_dm* dm = nullptr;
  ASSERT_EQ(weft_dm_alloc(4096, WEFT_DM_DEVICE, &dm), 0) << weft_dm_error();
  EXPECT_EQ(weft_dm_size(dm), 4096u);
  EXPECT_EQ(weft_dm_in_device(dm), 1);
  std::size_t total = 0;
  std::size_t available = 0;
  EXPECT_EQ(weft_dm_usage(&total, &available), 0);
  EXPECT_EQ(available, total - 4096);
  EXPECT_NE(weft_dm_counter_at(dm, 63), nullptr);
  EXPECT_EQ(weft_dm_counter_at(dm, 64), nullptr);
  EXPECT_STREQ(weft_dm_error(), "counter 64 of 64");
  weft_dm_counter* counter = weft_dm_counter_at(dm, 3);
  weft_dm_store(counter, 5);
  EXPECT_EQ(weft_dm_fetch_add(counter, 2), 5u);
  EXPECT_EQ(weft_dm_swap(counter, 1), 7u);
  EXPECT_EQ(weft_dm_compare_swap(counter, 1, 10), 1u);
  weft_dm_add(counter, 1);
  std::uint64_t seen = 0;
  EXPECT_EQ(weft_dm_wait(counter, WEFT_DM_EQUAL, 11, -1, &seen), 0);
  EXPECT_EQ(seen, 11u);
  EXPECT_EQ(weft_dm_wait(counter, WEFT_DM_NOT_EQUAL, 11, 1, &seen), ETIMEDOUT);
  EXPECT_EQ(weft_dm_wait(counter, WEFT_DM_AT_LEAST, 12, 1, nullptr), ETIMEDOUT);
  EXPECT_EQ(weft_dm_wait(counter, 7, 12, 1, nullptr), EINVAL);
  weft_dm_slot slot;
  EXPECT_EQ(weft_dm_slot_at(dm, 1, 8, &slot), EINVAL);
  EXPECT_EQ(weft_dm_slot_at(dm, 64, 4096, &slot), EINVAL);
  ASSERT_EQ(weft_dm_slot_at(dm, 64, 100, &slot), 0);
  EXPECT_EQ(weft_dm_slot_write(&slot, "hello", 5), 0);
  EXPECT_EQ(weft_dm_slot_write(&slot, "hello", 101), EMSGSIZE);
  char text[3];
  std::size_t length = 0;
  EXPECT_EQ(weft_dm_slot_read(&slot, text, 3, &length), 1u);
  EXPECT_EQ(length, 5u);
  EXPECT_EQ(std::string(text, 3), "hel");
  weft_dm_handle handle;
  weft_dm_get_handle(dm, &handle);
  weft_dm_free(dm);
  EXPECT_EQ(weft_dm_attach(&handle, &dm), ESTALE);
  EXPECT_EQ(weft_dm_alloc(0, WEFT_DM_DEVICE, &dm), EINVAL);
  EXPECT_EQ(weft_dm_alloc(8, 7, &dm), EINVAL);
  EXPECT_EQ(weft_dm_alloc(1 << 20, WEFT_DM_DEVICE, &dm), ENOMEM);
  weft_dm_free(nullptr);
}

TEST_F(DmAllocation, CppInterface) {
  const Dm mine(128);
  const Dm again(mine.handle());
  mine.counter(1).add(4);
  EXPECT_EQ(again.counter(1).load(), 4u);
  EXPECT_EQ(again.counter(1).wait(WEFT_DM_AT_LEAST, 4), 4u);
  EXPECT_THROW(static_cast<void>(mine.counter(2)), std::system_error);
  EXPECT_THROW(Dm(0), std::system_error);
}

}  // namespace
}  // namespace weft::test
