// Device memory: rows D1 to D5 of the RFCs' verbs; memory that is polled while peers write to it.
#include <sys/mman.h>
#include <sys/wait.h>

#include <algorithm>
#include <atomic>
#include <functional>
#include <thread>

#include "tests/verbs/layout_oracle.hpp"

namespace weft::test {
namespace {

class D1 : public LayoutTest {};
class D2 : public LayoutTest {};
class D3 : public LayoutTest {};

constexpr unsigned dm_access = IBV_ACCESS_ZERO_BASED | IBV_ACCESS_LOCAL_WRITE |
                               IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ |
                               IBV_ACCESS_REMOTE_ATOMIC;

ibv_dm* allocate(ibv_context* context, std::size_t length) {
  ibv_alloc_dm_attr attr{length, 0, 0};
  errno = 0;
  return ibv_alloc_dm(context, &attr);
}

std::uint64_t dm_size(ibv_context* context) {
  ibv_device_attr_ex attr{};
  EXPECT_EQ(ibv_query_device_ex(context, nullptr, &attr), 0);
  return attr.max_dm_size;
}

TEST_F(D1, TheDeviceStatesItsSizeAndKeepsToIt) {
  const std::uint64_t size = dm_size(left->context);
  EXPECT_EQ(size, 256u * 1024);
  EXPECT_EQ(allocate(left->context, size + 1), nullptr);
  EXPECT_EQ(errno, ENOMEM);
  EXPECT_EQ(allocate(left->context, size), nullptr) << "some is in use";
  EXPECT_EQ(errno, ENOMEM);
  EXPECT_EQ(allocate(left->context, 0), nullptr);
  EXPECT_EQ(errno, EINVAL);
  EXPECT_EQ(allocate(left->context, ~std::size_t{0}), nullptr);
  EXPECT_EQ(errno, ENOMEM);
  ibv_alloc_dm_attr attr{64, 7, 0};
  EXPECT_EQ(ibv_alloc_dm(left->context, &attr), nullptr) << "aligned to 128";
  attr = {64, 6, 1};
  EXPECT_EQ(ibv_alloc_dm(left->context, &attr), nullptr) << "comp_mask";
  EXPECT_EQ(errno, EINVAL);
}

TEST_F(D1, FreeIsRefusedWhileAnMrUsesIt) {
  ibv_dm* dm = allocate(left->context, 128);
  ASSERT_NE(dm, nullptr);
  ibv_mr* one = ibv_reg_dm_mr(left->pd, dm, 0, 64, dm_access);
  ibv_mr* two = ibv_reg_dm_mr(left->pd, dm, 64, 64, dm_access);
  EXPECT_EQ(ibv_free_dm(dm), EBUSY);
  EXPECT_EQ(errno, EBUSY);
  EXPECT_EQ(ibv_dereg_mr(one), 0);
  EXPECT_EQ(ibv_free_dm(dm), EBUSY);
  ibv_mr* over = carrier(left->pd, dm_access);
  ibv_sge sge{0, 64, two->lkey};
  ASSERT_EQ(ibv_mr_set_layout_sg(over, 0, 1, &sge), 0);
  EXPECT_EQ(ibv_dereg_mr(two), EBUSY) << "a layout refers to it";
  EXPECT_EQ(ibv_dereg_mr(over), 0);
  EXPECT_EQ(ibv_dereg_mr(two), 0);
  EXPECT_EQ(ibv_free_dm(dm), 0);
}

TEST_F(D1, AKeyOfFreedMemoryIsAProtectionError) {
  ibv_dm* dm = allocate(right->context, 64);
  ibv_mr* mr = ibv_reg_dm_mr(right->pd, dm, 0, 64, dm_access);
  const std::uint32_t key = mr->rkey;
  const Node& mine = here->plain(0, 64);
  EXPECT_EQ(write(mine.sge(0, 64), key, 0), IBV_WC_SUCCESS);
  EXPECT_EQ(ibv_dereg_mr(mr), 0);
  EXPECT_EQ(ibv_free_dm(dm), 0);
  EXPECT_EQ(write(mine.sge(0, 64), key, 0), IBV_WC_REM_ACCESS_ERR);
  dm = allocate(right->context, 64);
  std::array<std::uint8_t, 64> bytes{1};
  EXPECT_EQ(ibv_memcpy_from_dm(bytes.data(), dm, 0, 64), 0);
  EXPECT_EQ(std::count(bytes.begin(), bytes.end(), 0), 64) << "nothing is left of the last user";
  EXPECT_EQ(ibv_free_dm(dm), 0);
}

TEST_F(D2, CopiesGoToAndFromAnyOffset) {
  ibv_dm* dm = allocate(left->context, 1000);
  std::vector<std::uint8_t> expected(1000);
  for (int i = 0; i < 200; ++i) {
    const std::size_t offset = random() % 1000;
    const std::size_t length = random() % (1000 - offset + 1);
    std::vector<std::uint8_t> bytes(length);
    for (auto& byte : bytes) byte = static_cast<std::uint8_t>(random());
    std::copy(bytes.begin(), bytes.end(), expected.begin() + static_cast<std::ptrdiff_t>(offset));
    ibv_memcpy_dm_attr attr{IBV_DM_CPY_HOST_TO_DEVICE, bytes.data(), offset, length, 0};
    EXPECT_EQ(i % 2 == 0 || length == 0 ? ibv_memcpy_to_dm(dm, offset, bytes.data(), length)
                                        : ibv_memcpy_dm(dm, &attr),
              0);
    std::vector<std::uint8_t> now(1000);
    attr = {IBV_DM_CPY_DEVICE_TO_HOST, now.data(), 0, 1000, 0};
    EXPECT_EQ(i % 2 == 0 ? ibv_memcpy_dm(dm, &attr) : ibv_memcpy_from_dm(now.data(), dm, 0, 1000),
              0);
    ASSERT_EQ(now, expected);
  }
  EXPECT_EQ(ibv_free_dm(dm), 0);
}

TEST_F(D2, CopiesOutsideAreRefused) {
  ibv_dm* dm = allocate(left->context, 100);
  std::array<std::uint8_t, 200> bytes{};
  for (const auto& [offset, length] : {std::pair<std::uint64_t, std::size_t>{0, 101},
                                       {100, 1},
                                       {99, 2},
                                       {~std::uint64_t{0}, 2},
                                       {1, ~std::size_t{0}},
                                       {~std::uint64_t{0} - 5, 6}}) {
    EXPECT_EQ(ibv_memcpy_to_dm(dm, offset, bytes.data(), length), EINVAL);
    EXPECT_EQ(ibv_memcpy_from_dm(bytes.data(), dm, offset, length), EINVAL);
    ibv_memcpy_dm_attr attr{IBV_DM_CPY_DEVICE_TO_HOST, bytes.data(), offset, length, 0};
    EXPECT_EQ(ibv_memcpy_dm(dm, &attr), EINVAL);
    EXPECT_EQ(errno, EINVAL);
  }
  ibv_memcpy_dm_attr attr{IBV_DM_CPY_DEVICE_TO_HOST, bytes.data(), 0, 10, 1};
  EXPECT_EQ(ibv_memcpy_dm(dm, &attr), EINVAL) << "comp_mask";
  attr = {IBV_DM_CPY_HOST_TO_DEVICE, bytes.data(), 0, 10, 0};
  const unsigned unknown = 2;
  std::memcpy(&attr.memcpy_type, &unknown, sizeof unknown);
  EXPECT_EQ(ibv_memcpy_dm(dm, &attr), EINVAL) << "memcpy_type";
  attr = {IBV_DM_CPY_HOST_TO_DEVICE, nullptr, 0, 10, 0};
  EXPECT_EQ(ibv_memcpy_dm(dm, &attr), EINVAL) << "host_addr";
  EXPECT_EQ(ibv_memcpy_dm(dm, nullptr), EINVAL);
  EXPECT_EQ(ibv_memcpy_dm(nullptr, &attr), EINVAL);
  EXPECT_EQ(ibv_free_dm(dm), 0);
}

TEST_F(D3, RegionsOfDeviceMemoryTakeEveryOperation) {
  const Node& dm = here->device(3, 1500);
  const Node& peers = there->device(7, 1500);
  for (const auto opcode : {IBV_WR_RDMA_WRITE, IBV_WR_RDMA_READ, IBV_WR_SEND}) {
    transfer(opcode, dm, 5, peers, 20, 1400);
    transfer(opcode, here->plain(0, 1500), 5, peers, 1, 1400);
    transfer(opcode, dm, 0, there->plain(0, 1500), 1, 1499);
  }
}

TEST_F(D3, TheRfcsRegistrationIsUpstreams) {
  ibv_mr_attr attr{};
  attr.type = IBV_DEV_MEM;
  attr.length = 100;
  attr.access = IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_READ;
  attr.mem_type.dev_mem.dm = here->dm();
  attr.mem_type.dev_mem.offset = 64;
  ibv_mr* mr = ibv_reg_mr_ex(left->pd, &attr);
  ASSERT_NE(mr, nullptr);
  Places places(100);
  for (std::size_t i = 0; i < 100; ++i) {
    places[i] = static_cast<std::uint32_t>(Memory::host_bytes + 64 + i);
  }
  expect_layout(here->keep({mr, 0, places}));
  ibv_mr_attr host{};
  host.type = IBV_HOST_MEM;
  host.length = 100;
  host.access = all_access;
  host.mem_type.host_mem.addr = here->host() + 10;
  mr = ibv_reg_mr_ex(left->pd, &host);
  ASSERT_NE(mr, nullptr);
  EXPECT_EQ(mr->addr, here->host() + 10);
  EXPECT_EQ(ibv_dereg_mr(mr), 0);
  const auto refused = [&](ibv_mr_attr bad) {
    errno = 0;
    EXPECT_EQ(ibv_reg_mr_ex(left->pd, &bad), nullptr);
    EXPECT_EQ(errno, EINVAL);
  };
  attr.mem_type.dev_mem.offset = Memory::dm_bytes - 99;
  refused(attr);
  attr.mem_type.dev_mem.offset = ~std::uint64_t{0} - 10;
  refused(attr);
  attr.mem_type.dev_mem.dm = nullptr;
  refused(attr);
  host.comp_mask = 1;
  refused(host);
  host.comp_mask = 0;
  const unsigned unknown = 2;
  std::memcpy(&host.type, &unknown, sizeof unknown);
  refused(host);
  EXPECT_EQ(ibv_reg_mr_ex(left->pd, nullptr), nullptr);
}

TEST_F(D3, BadRegistrationsAreRefused) {
  const auto refused = [&](ibv_pd* pd, std::uint64_t offset, std::size_t length, unsigned access) {
    errno = 0;
    EXPECT_EQ(ibv_reg_dm_mr(pd, here->dm(), offset, length, access), nullptr);
    EXPECT_EQ(errno, EINVAL);
  };
  refused(left->pd, 0, 64, dm_access & ~unsigned{IBV_ACCESS_ZERO_BASED});
  refused(left->pd, 0, 0, dm_access);
  refused(left->pd, 1, Memory::dm_bytes, dm_access);
  refused(left->pd, Memory::dm_bytes, 1, dm_access);
  refused(left->pd, ~std::uint64_t{0}, 2, dm_access);
  refused(left->pd, 0, 64, IBV_ACCESS_ZERO_BASED | IBV_ACCESS_REMOTE_WRITE);
  refused(right->pd, 0, 64, dm_access);
}

TEST_F(D3, WrongKeysAndPlacesAreProtectionErrors) {
  const Node& dm = there->device(64, 64);
  const Node& mine = here->plain(0, 128);
  const auto before = there->image();
  for (const auto& [rkey, at, length] :
       {std::tuple{dm.mr->rkey, 1, 64}, std::tuple{dm.mr->rkey, 64, 1},
        std::tuple{dm.mr->rkey + 1, 0, 8}, std::tuple{dm.mr->rkey ^ 0x300, 0, 8}}) {
    EXPECT_EQ(write(mine.sge(0, static_cast<std::uint64_t>(length)), rkey,
                    static_cast<std::uint64_t>(at)),
              IBV_WC_REM_ACCESS_ERR);
    reconnect();
  }
  EXPECT_EQ(there->image(), before);
}

/// What the processes of a test share beside the device.
struct Shared {
  std::atomic<int> arrived{0};
  std::atomic<int> failures{0};
  std::atomic<int> stage{0};
  std::array<std::uint32_t, 8> qp_of_child{};
  std::array<std::uint32_t, 8> qp_for_child{};
  std::uint32_t rkey = 0;
  std::uint64_t address = 0;
  std::array<std::uint64_t, 8192> seen{};  ///< old values that the children got
};

template <class Condition>
bool wait_until(Condition condition) {
  const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(60);
  while (!condition()) {
    if (std::chrono::steady_clock::now() > end) return false;
    ::usleep(200);
  }
  return true;
}

/// Forks before anything has opened the device: helper threads do not survive that.
class Processes {
 public:
  Processes()
      : shared(new (::mmap(nullptr, sizeof(Shared), PROT_READ | PROT_WRITE,
                           MAP_SHARED | MAP_ANONYMOUS, -1, 0)) Shared) {
    ::setenv("WEFT_DEVICE", ("test" + std::to_string(::getpid())).c_str(), 1);
  }
  ~Processes() { ::munmap(shared, sizeof(Shared)); }
  Processes(const Processes&) = delete;
  Processes& operator=(const Processes&) = delete;

  void start(int count, const std::function<bool(int)>& body) {
    for (int i = 0; i < count; ++i) {
      const pid_t child = ::fork();
      if (child == 0) {
        if (!body(i)) ++shared->failures;
        ::_exit(0);
      }
      children_.push_back(child);
    }
  }
  void expect_success() {
    for (const pid_t child : children_) {
      int status = 0;
      ::waitpid(child, &status, 0);
      EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0) << status;
    }
    EXPECT_EQ(shared->failures, 0);
  }
  /// All of them have come here.
  bool meet(int count, int stage) {
    ++shared->arrived;
    return wait_until([&] { return shared->arrived >= count * stage; });
  }

  Shared* shared;

 private:
  std::vector<pid_t> children_;
};

constexpr int children = 4;

TEST(D4, FourProcessesShareFourThousandCounters) {
  Processes processes;
  processes.start(children, [&](int rank) {
    constexpr std::size_t each = 1024;
    ibv_context* context = open_device();
    ibv_pd* pd = ibv_alloc_pd(context);
    std::vector<ibv_dm*> counters;
    std::vector<ibv_mr*> regions;
    bool good = dm_size(context) == 256 * 1024 && processes.meet(children, 1);
    for (std::uint64_t i = 0; i < each && good; ++i) {
      counters.push_back(allocate(context, 64));
      good = counters.back() != nullptr;
      if (!good) break;
      regions.push_back(ibv_reg_dm_mr(pd, counters.back(), 0, 64, dm_access));
      std::array<std::uint64_t, 8> value{};
      value.fill(static_cast<std::uint64_t>(rank) * each + i);
      good =
          regions.back() != nullptr && ibv_memcpy_to_dm(counters.back(), 0, value.data(), 64) == 0;
    }
    good = processes.meet(children, 2) && good;
    // 4096 of them are all that there is.
    good = good && allocate(context, 1) == nullptr && errno == ENOMEM;
    for (std::uint64_t i = 0; i < each && good; ++i) {
      std::array<std::uint64_t, 8> value{};
      good =
          ibv_memcpy_from_dm(value.data(), counters[i], 0, 64) == 0 &&
          std::count(value.begin(), value.end(), static_cast<std::uint64_t>(rank) * each + i) == 8;
    }
    good = processes.meet(children, 3) && good;
    for (ibv_mr* mr : regions) good = ibv_dereg_mr(mr) == 0 && good;
    for (ibv_dm* dm : counters) good = dm != nullptr && ibv_free_dm(dm) == 0 && good;
    good = processes.meet(children, 4) && good;
    ibv_dm* all = rank == 0 ? allocate(context, 256 * 1024) : nullptr;
    good = (rank != 0 || (all != nullptr && ibv_free_dm(all) == 0)) && good;
    good = processes.meet(children, 5) && good;
    return ibv_dealloc_pd(pd) == 0 && ibv_close_device(context) == 0 && good;
  });
  processes.expect_success();
}

/// One owner, whose QPs answer for the counter; children that add to it.
class Counting {
 public:
  explicit Counting(bool in_device_memory) {
    processes.start(children + 1, [=, this](int rank) {
      return rank == children ? own(in_device_memory) : add(rank);
    });
    processes.expect_success();
    check_old_values();
  }

  static constexpr std::uint64_t adds = 1500;
  Processes processes;

 private:
  bool own(bool in_device_memory) {
    Shared& shared = *processes.shared;
    Side side;
    std::vector<ibv_qp*> qps;
    ibv_qp_init_attr attr{};
    attr.send_cq = side.cq;
    attr.recv_cq = side.cq;
    attr.cap = {4, 4, 1, 1, 0};
    attr.qp_type = IBV_QPT_RC;
    ibv_dm* dm = allocate(side.context, 64);
    const std::uint64_t zero[8] = {};
    ibv_memcpy_dm_attr clear{IBV_DM_CPY_HOST_TO_DEVICE, const_cast<std::uint64_t*>(zero), 0, 64, 0};
    bool good = dm != nullptr && ibv_memcpy_dm(dm, &clear) == 0;
    ibv_mr_attr semaphore{};
    semaphore.type = IBV_DEV_MEM;
    semaphore.length = 64;
    semaphore.access = IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_ATOMIC | IBV_ACCESS_REMOTE_READ;
    semaphore.mem_type.dev_mem.dm = dm;
    ibv_mr* mr = ibv_reg_mr_ex(side.pd, &semaphore);
    good = good && mr != nullptr;
    std::memset(side.memory.data(), 0, 64);
    shared.rkey = in_device_memory ? mr->rkey : side.mr->rkey;
    shared.address = in_device_memory ? 0 : side.address();
    for (std::size_t i = 0; i < children; ++i) {
      qps.push_back(ibv_create_qp(side.pd, &attr));
      shared.qp_for_child[i] = qps.back()->qp_num;
    }
    good = processes.meet(children + 1, 1) && good;
    for (std::size_t i = 0; i < children; ++i) {
      ibv_qp peer{};
      peer.qp_num = shared.qp_of_child[i];
      connect(qps[i], &peer);
    }
    good = processes.meet(children + 1, 2) && good;  // the children add, this process sleeps
    good = processes.meet(children + 1, 3) && good;
    std::uint64_t sum = 0;
    side.hand_over();
    if (in_device_memory) {
      ibv_memcpy_dm_attr look{IBV_DM_CPY_DEVICE_TO_HOST, &sum, 0, 8, 0};
      good = ibv_memcpy_dm(dm, &look) == 0 && good;
    } else {
      sum = side.value<std::uint64_t>(0);
    }
    good = sum == children * adds && good;
    for (ibv_qp* qp : qps) good = ibv_destroy_qp(qp) == 0 && good;
    return ibv_dereg_mr(mr) == 0 && ibv_free_dm(dm) == 0 && good;
  }

  bool add(int rank) {
    Shared& shared = *processes.shared;
    const auto index = static_cast<std::size_t>(rank);
    Side side;
    shared.qp_of_child[index] = side.qp->qp_num;
    bool good = processes.meet(children + 1, 1);
    ibv_qp peer{};
    peer.qp_num = shared.qp_for_child[index];
    connect(side.qp, &peer);
    good = processes.meet(children + 1, 2) && good;
    ibv_send_wr wr = request(IBV_WR_ATOMIC_FETCH_AND_ADD);
    wr.wr.atomic.remote_addr = shared.address;
    wr.wr.atomic.rkey = shared.rkey;
    wr.wr.atomic.compare_add = 1;
    for (std::uint64_t i = 0; i < adds && good; ++i) {
      good = side.post(wr, side.sge(0, 8)) == 0 && side.wait().status == IBV_WC_SUCCESS;
      shared.seen[index * adds + i] = side.value<std::uint64_t>(0);
    }
    good = processes.meet(children + 1, 3) && good;
    // The RFC's end: the semaphore is read back.
    wr = request(IBV_WR_RDMA_READ);
    wr.wr.rdma = {shared.address, shared.rkey};
    if (rank == 0) {
      // The owner may be gone by now; only while it is there the answer must be right.
      if (side.post(wr, side.sge(8, 8)) == 0 && side.wait().status == IBV_WC_SUCCESS) {
        good = side.value<std::uint64_t>(8) == children * adds && good;
      }
    }
    return good;
  }

  void check_old_values() const {
    std::vector<std::uint64_t> seen(processes.shared->seen.begin(),
                                    processes.shared->seen.begin() + children * adds);
    std::sort(seen.begin(), seen.end());
    for (std::size_t i = 0; i < seen.size(); ++i) ASSERT_EQ(seen[i], i) << "each once";
  }
};

TEST(D5, ACountingSemaphoreInDeviceMemoryIsExact) {
  const Counting counting(true);
}

TEST(D5, SoIsOneInHostMemory) {
  const Counting counting(false);
}

/// A load as a polling program has it. Nothing orders it with the write but the memory itself,
/// which is what is tested: not for ThreadSanitizer.
__attribute__((no_sanitize("thread"), noinline)) std::uint8_t polled(
    const volatile std::uint8_t* at) {
  return *at;
}

TEST(WriteToMemory, IsSeenByAProcessThatPollsAndCallsNoVerb) {
  Processes processes;
  Shared& shared = *processes.shared;
  processes.start(2, [&](int rank) {
    Side side;
    shared.qp_of_child[static_cast<std::size_t>(rank)] = side.qp->qp_num;
    if (rank == 0) {
      shared.rkey = side.mr->rkey;
      shared.address = side.address();
    }
    bool good = processes.meet(2, 1);
    ibv_qp peer{};
    peer.qp_num = shared.qp_of_child[static_cast<std::size_t>(1 - rank)];
    connect(side.qp, &peer);
    good = processes.meet(2, 2) && good;
    constexpr std::uint8_t rounds = 20;
    if (rank == 0) {
      // Nothing but loads until the last round is there. (Another thread of this process writes.)
      for (std::uint8_t round = 1; round <= rounds && good; ++round) {
        good = wait_until([&] { return polled(side.memory.data() + 5000) == round; });
        shared.stage = round;
      }
    } else {
      for (std::uint8_t round = 1; round <= rounds && good; ++round) {
        side.memory[0] = round;
        ibv_send_wr wr = request(IBV_WR_RDMA_WRITE);
        wr.wr.rdma = {shared.address + 5000, shared.rkey};
        good = side.post(wr, side.sge(0, 1)) == 0 && side.wait().status == IBV_WC_SUCCESS &&
               wait_until([&] { return shared.stage == round; });
      }
    }
    return processes.meet(2, 3) && good;
  });
  processes.expect_success();
}

}  // namespace
}  // namespace weft::test
