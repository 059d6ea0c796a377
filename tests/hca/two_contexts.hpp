// Two connected contexts in one process, pumped by the test: every path of the wire without a race.
#pragma once

#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstddef>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "hca/emu/context.hpp"
#include "hca/emu/process_id.hpp"

namespace weft::test {

/// A device of this test's own, so that a running job is not disturbed.
inline hca::emu::ContextOptions options(std::string purpose = "test") {
  hca::emu::ContextOptions result;
  result.device = "test" + std::to_string(::getpid());
  result.purpose = std::move(purpose);
  return result;
}

/// Memory that the kernel has given to a context's segment.
inline std::size_t allocated(const hca::emu::Context& context) {
  struct stat info {};
  EXPECT_EQ(::fstat(static_cast<int>(context.address().fd), &info), 0);
  return static_cast<std::size_t>(info.st_blocks) * 512;
}

/// An operation that remembers how it ended.
struct Outcome : hca::emu::Operation {
  Outcome() {
    done = [](hca::emu::Operation* self, hca::WcStatus status) {
      auto* outcome = static_cast<Outcome*>(self);
      outcome->finished = true;
      outcome->how = status;
    };
  }
  bool finished = false;
  hca::WcStatus how = hca::WcStatus::loc_qp_op_err;
};

/// Whether some of an operation's bytes have come; the helper thread may be moving them.
inline bool has_begun(hca::emu::Context& context, const hca::emu::Operation& operation) {
  const std::scoped_lock guard(context.engine().lock());
  return operation.moved > 0;
}

inline hca::emu::LocalMemory local(void* base) {
  return {static_cast<std::byte*>(base), nullptr, 0};
}

class TwoContexts : public ::testing::Test {
 protected:
  void SetUp() override {
    a = hca::emu::Context::open(options("a"));
    b = hca::emu::Context::open(options("b"));
    to_b = a->connect(b->address());
    to_a = b->connect(a->address());
  }

  /// Pumps both sides until `until` holds; false when it does not come true.
  template <class Until>
  bool pump(Until until, int rounds = 1'000'000) {
    for (int i = 0; i < rounds && !until(); ++i) {
      a->progress();
      b->progress();
    }
    return until();
  }
  /// Posts by `post` (true when posted) with progress in between, and pumps until it finished.
  template <class Post>
  hca::WcStatus run(Outcome& outcome, Post post) {
    while (!post()) {
      a->progress();
      b->progress();
    }
    EXPECT_TRUE(pump([&] { return outcome.finished; }));
    return outcome.how;
  }
  std::uint32_t share(hca::emu::Context& owner, std::vector<std::byte>& memory,
                      hca::Access access = hca::Access::all) {
    return owner.register_region({reinterpret_cast<std::uint64_t>(memory.data()), memory.size(),
                                  memory.data(), nullptr, access, 0});
  }

  std::unique_ptr<hca::emu::Context> a;
  std::unique_ptr<hca::emu::Context> b;
  std::shared_ptr<hca::emu::Link> to_b;
  std::shared_ptr<hca::emu::Link> to_a;
};

}  // namespace weft::test
