// The device file: modes, recovery, the directory, and the allocator of device memory.
#include "hca/emu/device_file.hpp"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <memory>
#include <set>
#include <string>

#include "hca/status.hpp"

namespace weft::test {
namespace {

using hca::Error;
using hca::emu::default_dm_bytes;
using hca::emu::DeviceFile;
using hca::emu::dm_unit;
using hca::emu::DmPurpose;

class Device : public ::testing::Test {
 protected:
  const std::string name = "file" + std::to_string(::getpid());
  const std::string path = DeviceFile::path_of(name);
  [[nodiscard]] bool exists() const { return ::access(path.c_str(), F_OK) == 0; }
  void TearDown() override { ::unlink(path.c_str()); }
};

/// Runs `body` in a forked process and waits for it.
template <class Body>
int in_child(Body body) {
  const pid_t pid = ::fork();
  if (pid == 0) {
    body();
    ::_exit(0);
  }
  int status = 0;
  ::waitpid(pid, &status, 0);
  return status;
}

TEST_F(Device, IsPrivateSmallAndGoneWithTheLastOpener) {
  {
    DeviceFile first(name);
    DeviceFile second(name);
    struct stat info {};
    ASSERT_EQ(::stat(path.c_str(), &info), 0);
    EXPECT_EQ(info.st_mode & 0777, 0600u);
    EXPECT_LE(info.st_size, 1024 * 1024);
    EXPECT_EQ(first.memory().size(), default_dm_bytes);
  }
  EXPECT_FALSE(exists());
}

TEST_F(Device, StartsAfreshAfterEverybodyWasKilled) {
  in_child([this] {
    auto* left = new DeviceFile(name);
    left->allocate(100'000, DmPurpose::user);
    left->announce({}, "victim");
    ::_exit(1);
  });
  ASSERT_TRUE(exists());
  DeviceFile next(name);
  EXPECT_EQ(next.free_bytes(), default_dm_bytes);
  EXPECT_TRUE(DeviceFile::inspect(name)->openers.empty());
}

TEST_F(Device, DeadProcessesMemoryComesBackWhenItIsNeeded) {
  DeviceFile device(name);
  in_child([this] {
    auto* left = new DeviceFile(name);
    left->allocate(default_dm_bytes - 1000, DmPurpose::counter);
    ::_exit(1);
  });
  EXPECT_LT(device.free_bytes(), 2000u);
  EXPECT_NO_THROW(device.allocate(default_dm_bytes, DmPurpose::user));
}

TEST_F(Device, FourThousandCountersThenAnErrorThatNamesTheSizes) {
  DeviceFile device(name);
  std::set<std::size_t> offsets;
  for (std::size_t i = 0; i < default_dm_bytes / dm_unit; ++i) {
    offsets.insert(device.allocate(8, DmPurpose::counter));
  }
  EXPECT_EQ(offsets.size(), 4096u);
  try {
    device.allocate(8, DmPurpose::counter);
    FAIL() << "a full device allocated";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ENOMEM);
    EXPECT_NE(std::string(error.what()).find("8 bytes"), std::string::npos) << error.what();
    EXPECT_NE(std::string(error.what()).find("0 of 262144 free"), std::string::npos)
        << error.what();
  }
  for (const std::size_t offset : offsets) device.free(offset, 8);
  EXPECT_EQ(device.free_bytes(), default_dm_bytes);
}

TEST_F(Device, BadSizesAndForeignMemoryAreRefused) {
  DeviceFile device(name);
  EXPECT_THROW(device.allocate(0, DmPurpose::user), Error);
  EXPECT_THROW(device.allocate(default_dm_bytes + 1, DmPurpose::user), Error);
  EXPECT_THROW(device.allocate(~std::size_t{0}, DmPurpose::user), Error);
  const std::size_t offset = device.allocate(128, DmPurpose::user);
  EXPECT_THROW(device.free(offset + 1, 64), Error);
  EXPECT_THROW(device.free(offset + 128, 64), Error);
  EXPECT_THROW(device.free(~std::size_t{63}, 64), Error);
  EXPECT_EQ(WEXITSTATUS(in_child([&] {
              DeviceFile other(name);
              try {
                other.free(offset, 128);
              } catch (const Error&) {
                ::_exit(7);
              }
            })),
            7);
  device.free(offset, 128);
  EXPECT_THROW(device.free(offset, 128), Error);
}

TEST_F(Device, MemoryIsZeroedAndSharedByProcesses) {
  DeviceFile device(name);
  const std::size_t offset = device.allocate(64, DmPurpose::user);
  in_child([&] {
    DeviceFile other(name);
    other.memory()[offset] = std::byte{42};
  });
  EXPECT_EQ(device.memory()[offset], std::byte{42});
  device.free(offset, 64);
  EXPECT_EQ(device.memory()[device.allocate(64, DmPurpose::user)], std::byte{0});
}

TEST_F(Device, BadNamesAndForeignFilesAreRefused) {
  EXPECT_THROW(DeviceFile(""), Error);
  EXPECT_THROW(DeviceFile("../x"), Error);
  EXPECT_THROW(DeviceFile(std::string(33, 'a')), Error);
  ASSERT_EQ(::close(::open(path.c_str(), O_CREAT | O_RDWR, 0644)), 0);
  ::chmod(path.c_str(), 0644);
  EXPECT_THROW(DeviceFile{name}, Error);
}

TEST_F(Device, AnotherVersionInUseIsRefused) {
  DeviceFile device(name);
  const int fd = ::open(path.c_str(), O_RDWR);
  const std::uint32_t version = 99;
  ASSERT_EQ(::pwrite(fd, &version, sizeof version, 8), 4);
  ::close(fd);
  EXPECT_THROW(DeviceFile{name}, Error);
  EXPECT_FALSE(DeviceFile::inspect(name).has_value());
}

TEST_F(Device, TheSizeOfItsMemoryCanBeSet) {
  ::setenv("WEFT_DM_SIZE", "131072", 1);
  EXPECT_EQ(DeviceFile(name).memory().size(), 131072u);
  for (const char* bad : {"", "0", "100", "x", "1e3", "1048576", "64 "}) {
    ::setenv("WEFT_DM_SIZE", bad, 1);
    EXPECT_THROW(DeviceFile{name}, Error) << bad;
  }
  ::unsetenv("WEFT_DM_SIZE");
}

TEST_F(Device, InspectShowsWhoHasItOpen) {
  EXPECT_FALSE(DeviceFile::inspect(name).has_value());
  DeviceFile device(name);
  device.announce({}, "unit test");
  device.allocate(1000, DmPurpose::user);
  const auto snapshot = DeviceFile::inspect(name);
  ASSERT_TRUE(snapshot.has_value());
  EXPECT_EQ(snapshot->dm_used, 1024u);
  ASSERT_EQ(snapshot->openers.size(), 1u);
  EXPECT_EQ(snapshot->openers[0].pid, static_cast<std::uint32_t>(::getpid()));
  EXPECT_EQ(snapshot->openers[0].purpose, "unit test");
  EXPECT_EQ(snapshot->openers[0].dm_bytes, 1024u);
  EXPECT_TRUE(snapshot->openers[0].alive);
}

}  // namespace
}  // namespace weft::test
