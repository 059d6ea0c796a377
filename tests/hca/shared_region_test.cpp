// Shared regions: what a view of one reaches, and what it refuses.
#include "hca/emu/shared_region.hpp"

#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstring>

#include "hca/emu/process_id.hpp"
#include "hca/emu/shared_file.hpp"
#include "hca/status.hpp"

namespace weft::hca::emu {
namespace {

constexpr std::uint32_t key = 0x1234;

Address address_of_this_process() {
  Address address{};
  const ProcessId self = this_process();
  address.pid = self.pid;
  address.start_time = self.start_time;
  return address;
}

std::uint32_t fd_of(const SharedRegion& region) {
  return static_cast<std::uint32_t>(region.fd());
}

TEST(SharedRegion, a_view_reaches_its_bytes_and_no_others) {
  const auto region = SharedRegion::create(5000);
  region->set_key(key);
  const auto addr = reinterpret_cast<std::uint64_t>(region->memory());
  for (std::size_t i = 0; i < 5000; ++i) ASSERT_EQ(region->memory()[i], std::byte{0});
  const auto view = SharedRegionView::map(address_of_this_process(), fd_of(*region), key);
  ASSERT_NE(view, nullptr);
  std::byte* first = view->at(addr, 5000);
  ASSERT_NE(first, nullptr);
  first[4999] = std::byte{7};
  EXPECT_EQ(region->memory()[4999], std::byte{7});
  EXPECT_EQ(view->at(addr + 4992, 8), first + 4992);
  EXPECT_NE(view->at(addr + 5000, 0), nullptr);
  EXPECT_EQ(view->at(addr + 4993, 8), nullptr);
  EXPECT_EQ(view->at(addr + 5000, 1), nullptr);
  EXPECT_EQ(view->at(addr - 1, 8), nullptr);
  EXPECT_EQ(view->at(addr + 8, ~std::uint64_t{0}), nullptr);
  EXPECT_EQ(view->at(~std::uint64_t{0}, 8), nullptr);
  EXPECT_EQ(view->at(0, 8), nullptr);
}

TEST(SharedRegion, is_of_mode_0600_and_of_the_size_asked_for) {
  const auto region = SharedRegion::create(64);
  struct stat info {};
  ASSERT_EQ(::fstat(region->fd(), &info), 0);
  EXPECT_EQ(info.st_mode & 0777, 0600u);
  EXPECT_THROW(SharedRegion::create(0), Error);
  EXPECT_THROW(SharedRegion::create(std::size_t{1} << 50), Error);
  EXPECT_EQ(SharedRegion::create(1)->length(), 1u);
  EXPECT_EQ(SharedRegion::create(8192)->length(), 8192u);
}

TEST(SharedRegion, without_its_key_nothing_is_reached) {
  const auto region = SharedRegion::create(64);
  const Address self = address_of_this_process();
  const auto addr = reinterpret_cast<std::uint64_t>(region->memory());
  EXPECT_EQ(SharedRegionView::map(self, fd_of(*region), key), nullptr);  // not registered yet
  region->set_key(key);
  EXPECT_EQ(SharedRegionView::map(self, fd_of(*region), key + 1), nullptr);
  EXPECT_EQ(SharedRegionView::map(self, fd_of(*region), 0), nullptr);
  EXPECT_EQ(SharedRegionView::map(self, 100'000, key), nullptr);
  EXPECT_EQ(SharedRegionView::map(self, STDIN_FILENO, key), nullptr);
  Address earlier = self;
  --earlier.start_time;
  EXPECT_EQ(SharedRegionView::map(earlier, fd_of(*region), key), nullptr);
  const auto view = SharedRegionView::map(self, fd_of(*region), key);
  ASSERT_NE(view, nullptr);
  EXPECT_TRUE(view->is_valid());
  region->set_key(0);
  EXPECT_FALSE(view->is_valid());
  EXPECT_EQ(view->at(addr, 8), nullptr);
}

TEST(SharedRegion, what_its_owner_left_is_not_reached) {
  auto region = SharedRegion::create(64);
  region->set_key(key);
  const auto addr = reinterpret_cast<std::uint64_t>(region->memory());
  const auto view = SharedRegionView::map(address_of_this_process(), fd_of(*region), key);
  ASSERT_NE(view, nullptr);
  region.reset();
  EXPECT_EQ(view->at(addr, 8), nullptr);
}

// What is shared is not trusted for a bound.
TEST(SharedRegion, a_forged_header_is_refused) {
  const int fd = create_shared_file("forged", 8192);
  ASSERT_GE(fd, 0);
  void* base = ::mmap(nullptr, 8192, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
  ASSERT_NE(base, MAP_FAILED);
  const auto genuine = SharedRegion::create(64);
  genuine->set_key(key);
  std::memcpy(base, genuine->memory() - 4096, sizeof(SharedRegionHeader));
  auto* header = static_cast<SharedRegionHeader*>(base);
  const auto map = [&] {
    return SharedRegionView::map(address_of_this_process(), static_cast<std::uint32_t>(fd), key);
  };
  EXPECT_NE(map(), nullptr);
  header->length = 4097;
  EXPECT_EQ(map(), nullptr);
  header->length = ~std::uint64_t{0};
  EXPECT_EQ(map(), nullptr);
  header->length = 64;
  const auto view = map();
  ASSERT_NE(view, nullptr);
  header->length = 1 << 20;  // changed afterwards
  EXPECT_EQ(view->at(header->addr + 64, 8), nullptr);
  header->length = 64;
  header->magic ^= 1;
  EXPECT_EQ(map(), nullptr);
  header->magic ^= 1;
  EXPECT_NE(map(), nullptr);
  // Whoever has it mapped cannot lose its pages.
  EXPECT_EQ(::ftruncate(fd, 4096), -1);
  EXPECT_EQ(errno, EPERM);
  const int unsealed = ::memfd_create("unsealed", MFD_CLOEXEC);
  ASSERT_EQ(::ftruncate(unsealed, 8192), 0);
  ASSERT_EQ(::pwrite(unsealed, base, 4096, 0), 4096);
  EXPECT_EQ(
      SharedRegionView::map(address_of_this_process(), static_cast<std::uint32_t>(unsealed), key),
      nullptr);
  ::close(unsealed);
  ::munmap(base, 8192);
  ::close(fd);
}

TEST(SharedRegion, another_process_changes_it_and_a_dead_one_s_is_refused) {
  const auto region = SharedRegion::create(64);
  region->set_key(key);
  auto* counter = reinterpret_cast<std::atomic<std::uint64_t>*>(region->memory());
  const Address owner = address_of_this_process();
  const auto addr = reinterpret_cast<std::uint64_t>(region->memory());
  int pipe_ends[2];
  ASSERT_EQ(::pipe(pipe_ends), 0);
  const pid_t child = ::fork();
  if (child == 0) {
    const auto view = SharedRegionView::map(owner, fd_of(*region), key);
    std::byte* at = view == nullptr ? nullptr : view->at(addr, 8);
    if (at != nullptr) reinterpret_cast<std::atomic<std::uint64_t>*>(at)->fetch_add(42);
    const auto own = SharedRegion::create(64);
    own->set_key(key);
    const Address address = address_of_this_process();
    const int fd = own->fd();
    if (::write(pipe_ends[1], &address, sizeof address) < 0) ::_exit(1);
    if (::write(pipe_ends[1], &fd, sizeof fd) < 0) ::_exit(1);
    ::pause();
    ::_exit(0);
  }
  Address address;
  int fd = -1;
  ASSERT_EQ(::read(pipe_ends[0], &address, sizeof address), ssize_t{sizeof address});
  ASSERT_EQ(::read(pipe_ends[0], &fd, sizeof fd), ssize_t{sizeof fd});
  EXPECT_EQ(counter->load(), 42u);
  EXPECT_NE(SharedRegionView::map(address, static_cast<std::uint32_t>(fd), key), nullptr);
  ::kill(child, SIGKILL);
  ASSERT_EQ(::waitpid(child, nullptr, 0), child);
  EXPECT_EQ(SharedRegionView::map(address, static_cast<std::uint32_t>(fd), key), nullptr);
  // A forked child that ends takes nothing from its parent.
  EXPECT_EQ(region->memory()[0], std::byte{42});
  EXPECT_NE(SharedRegionView::map(owner, fd_of(*region), key), nullptr);
  ::close(pipe_ends[0]);
  ::close(pipe_ends[1]);
}

}  // namespace
}  // namespace weft::hca::emu
