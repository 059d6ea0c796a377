// Tests with forked processes: each child has its own open of the device; a board in shared memory
// carries what they tell each other.
#pragma once

#include <gtest/gtest.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <memory>
#include <string>
#include <vector>

#include "dm/allocation.hpp"
#include "dm/counter.hpp"

namespace weft::test {

using dm::Allocation;
using dm::Counter;
using dm::Place;
using hca::emu::dm_unit;

class DmProcesses : public ::testing::Test {
 protected:
  void SetUp() override { device = "dm" + std::to_string(::getpid()); }
  void TearDown() override {
    for (const pid_t child : children) {
      ::kill(child, SIGKILL);
      ::waitpid(child, nullptr, 0);
    }
    ::unlink(hca::emu::DeviceFile::path_of(device).c_str());
  }
  /// Forks a child that runs `body`, whose result (0: right) is its exit status.
  template <class Body>
  pid_t start(Body body) {
    const pid_t child = ::fork();
    if (child == 0) {
      ::alarm(100);
      ::_exit(body());
    }
    children.push_back(child);
    return child;
  }
  /// Exit status of a child, or -1 when it was killed.
  int finish(pid_t child) {
    std::erase(children, child);
    int status = 0;
    ::waitpid(child, &status, 0);
    return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
  }
  void expect_all_right() {
    const std::vector<pid_t> all = children;
    for (const pid_t child : all) EXPECT_EQ(finish(child), 0);
  }
  std::unique_ptr<Allocation> allocate(std::size_t units) const {
    return Allocation::create(device, units * dm_unit);
  }
  static Counter counter(const Allocation& allocation, std::size_t unit) {
    return Counter(allocation.memory().data() + unit * dm_unit);
  }

  static constexpr auto patience = std::chrono::seconds(60);
  std::string device;
  std::vector<pid_t> children;
};

}  // namespace weft::test
