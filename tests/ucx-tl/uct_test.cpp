// The two transports through UCT's own calls, in one process: two interfaces of weft talk to each
// other, and one to itself.
#include <gtest/gtest.h>
#include <poll.h>
#include <ucs/async/async_fwd.h>

#include <cstring>
#include <memory>
#include <numeric>
#include <vector>

#include "ucx-tl/abi/uct_1_13.h"
#include "ucx-tl/activity.hpp"
#include "ucx-tl/weft_cp.hpp"
#include "ucx-tl/weft_iface.hpp"
#include "ucx-tl/weft_md.hpp"
#include "ucx-tl/window.hpp"
#include "ucx-tl/window_memory_type.hpp"

extern "C" {
ucs_status_t ucs_async_context_create(ucs_async_mode_t mode, ucs_async_context_t** async);
void ucs_async_context_destroy(ucs_async_context_t* async);
}

namespace weft::ucx {
namespace {

using hca::Dimension;
using hca::Layout;
using hca::LayoutPtr;

void register_once() {
  static const bool done = [] {
    abi::uct_component_register(&cp::component);
    abi::uct_tl_register(&cp::component, &cp::transport);
    abi::uct_component_register(&wire::component);
    abi::uct_tl_register(&wire::component, &wire::transport);
    return true;
  }();
  (void)done;
}

/// Interface with worker and domain of its own, as a process has them.
struct Node {
  ucs_async_context_t* async = nullptr;
  uct_worker_h worker = nullptr;
  uct_md_h md = nullptr;
  uct_iface_h iface = nullptr;
  uct_component* component;

  Node(uct_component* of, const char* transport, const char* device) : component(of) {
    EXPECT_EQ(ucs_async_context_create(UCS_ASYNC_MODE_THREAD_SPINLOCK, &async), UCS_OK);
    EXPECT_EQ(uct_worker_create(async, UCS_THREAD_MODE_SINGLE, &worker), UCS_OK);
    uct_md_config_t* md_config = nullptr;
    EXPECT_EQ(uct_md_config_read(component, nullptr, nullptr, &md_config), UCS_OK);
    EXPECT_EQ(uct_md_open(component, component->name, md_config, &md), UCS_OK);
    uct_config_release(md_config);
    uct_iface_config_t* config = nullptr;
    EXPECT_EQ(uct_md_iface_config_read(md, transport, nullptr, nullptr, &config), UCS_OK);
    uct_iface_params_t params{};
    params.field_mask = UCT_IFACE_PARAM_FIELD_OPEN_MODE | UCT_IFACE_PARAM_FIELD_DEVICE;
    params.open_mode = UCT_IFACE_OPEN_MODE_DEVICE;
    params.mode.device.tl_name = transport;
    params.mode.device.dev_name = device;
    EXPECT_EQ(uct_iface_open(md, worker, &params, config, &iface), UCS_OK);
    uct_config_release(config);
    uct_iface_progress_enable(iface, UCT_PROGRESS_SEND | UCT_PROGRESS_RECV);
  }
  ~Node() {
    uct_iface_close(iface);
    uct_md_close(md);
    uct_worker_destroy(worker);
    ucs_async_context_destroy(async);
  }
  Node(const Node&) = delete;

  uct_ep_h connect(const Node& peer) const {
    uct_iface_attr_t attr;
    EXPECT_EQ(uct_iface_query(peer.iface, &attr), UCS_OK);
    std::vector<char> device(attr.device_addr_len + 1);
    std::vector<char> address(attr.iface_addr_len + 1);
    auto* device_address = reinterpret_cast<uct_device_addr_t*>(device.data());
    auto* iface_address = reinterpret_cast<uct_iface_addr_t*>(address.data());
    EXPECT_EQ(uct_iface_get_device_address(peer.iface, device_address), UCS_OK);
    EXPECT_EQ(uct_iface_get_address(peer.iface, iface_address), UCS_OK);
    EXPECT_TRUE(uct_iface_is_reachable(iface, device_address, iface_address));
    uct_ep_params_t params{};
    params.field_mask =
        UCT_EP_PARAM_FIELD_IFACE | UCT_EP_PARAM_FIELD_DEV_ADDR | UCT_EP_PARAM_FIELD_IFACE_ADDR;
    params.iface = iface;
    params.dev_addr = device_address;
    params.iface_addr = iface_address;
    uct_ep_h ep = nullptr;
    EXPECT_EQ(uct_ep_create(&params, &ep), UCS_OK);
    return ep;
  }
};

struct Memory {
  Node& node;
  uct_mem_h memh = nullptr;
  uct_rkey_bundle_t key{};

  Memory(Node& owner, void* address, std::size_t length) : node(owner) {
    EXPECT_EQ(uct_md_mem_reg(node.md, address, length, UCT_MD_MEM_ACCESS_ALL, &memh), UCS_OK);
    std::byte packed[8];
    EXPECT_EQ(uct_md_mkey_pack(node.md, memh, packed), UCS_OK);
    EXPECT_EQ(uct_rkey_unpack(node.component, packed, &key), UCS_OK);
  }
  ~Memory() {
    uct_rkey_release(node.component, &key);
    if (memh != nullptr) uct_md_mem_dereg(node.md, memh);
  }
  Memory(const Memory&) = delete;
};

struct Completion : uct_completion_t {
  bool done = false;
  Completion() : uct_completion_t{} {
    func = [](uct_completion_t* self) { static_cast<Completion*>(self)->done = true; };
    count = 1;
    status = UCS_OK;
  }
};

class Wire : public testing::TestWithParam<bool> {
 protected:
  void SetUp() override {
    register_once();
    ASSERT_TRUE(windows().open());
    a_ = std::make_unique<Node>(&wire::component, "weft", "weft0");
    if (!to_itself()) b_ = std::make_unique<Node>(&wire::component, "weft", "weft0");
    ep_ = a_->connect(target());
    // Ports are taken up by progress; the other side needs a port of ours for its answers.
    if (!to_itself()) back_ = b_->connect(*a_);
  }
  void TearDown() override {
    flush();
    uct_ep_destroy(ep_);
    if (back_ != nullptr) uct_ep_destroy(back_);
    b_.reset();
    a_.reset();
  }
  static bool to_itself() { return GetParam(); }
  Node& target() { return to_itself() ? *a_ : *b_; }
  void progress() {
    uct_worker_progress(a_->worker);
    if (b_) uct_worker_progress(b_->worker);
  }
  template <class Condition>
  void until(Condition condition) {
    for (int i = 0; i < 100'000'000 && !condition(); ++i) progress();
    ASSERT_TRUE(condition());
  }
  void flush() {
    until([this] { return uct_ep_flush(ep_, 0, nullptr) == UCS_OK; });
  }
  /// Waits for room as UCP does when a call finds none.
  template <class Call>
  ucs_status_t retry(Call call) {
    ucs_status_t status;
    while ((status = call()) == UCS_ERR_NO_RESOURCE) progress();
    return status;
  }

  std::unique_ptr<Node> a_;
  std::unique_ptr<Node> b_;
  uct_ep_h ep_ = nullptr;
  uct_ep_h back_ = nullptr;
};

INSTANTIATE_TEST_SUITE_P(, Wire, testing::Bool(),
                         [](const auto& parameter) { return parameter.param ? "self" : "pair"; });

struct Received {
  std::vector<std::vector<std::byte>> messages;
  static ucs_status_t take(void* arg, void* data, std::size_t length, unsigned) {
    const auto* bytes = static_cast<std::byte*>(data);
    static_cast<Received*>(arg)->messages.emplace_back(bytes, bytes + length);
    return UCS_OK;
  }
};

TEST_P(Wire, active_messages_of_every_kind_and_length_in_order) {
  Received received;
  ASSERT_EQ(uct_iface_set_am_handler(target().iface, 5, Received::take, &received, 0), UCS_OK);
  uct_iface_attr_t attr;
  uct_iface_query(a_->iface, &attr);
  std::vector<std::byte> payload(attr.cap.am.max_bcopy);
  for (std::size_t i = 0; i < payload.size(); ++i) payload[i] = static_cast<std::byte>(i * 13);
  std::vector<std::size_t> lengths;
  for (const std::size_t length : {0, 1, 8, 48, 56, 57, 500, 504, 505, 1016}) {
    ASSERT_EQ(retry([&] {
                return uct_ep_am_short(ep_, 5, 0x1122334455667788, payload.data(),
                                       static_cast<unsigned>(length));
              }),
              UCS_OK);
    lengths.push_back(8 + length);
  }
  struct Pack {
    const std::byte* data;
    std::size_t length;
  };
  for (const std::size_t length : {std::size_t{1}, std::size_t{512}, std::size_t{513},
                                   std::size_t{8192}, attr.cap.am.max_bcopy}) {
    Pack pack{payload.data(), length};
    const auto packer = [](void* to, void* arg) {
      const auto* what = static_cast<const Pack*>(arg);
      std::memcpy(to, what->data, what->length);
      return what->length;
    };
    ssize_t sent;
    while ((sent = uct_ep_am_bcopy(ep_, 5, packer, &pack, 0)) == UCS_ERR_NO_RESOURCE) progress();
    ASSERT_EQ(sent, static_cast<ssize_t>(length));
    lengths.push_back(length);
  }
  const std::uint64_t header = 42;
  const uct_iov_t iov[2] = {{payload.data(), 100, nullptr, 0, 1},
                            {payload.data() + 100, 1500, nullptr, 0, 1}};
  ASSERT_EQ(
      retry([&] { return uct_ep_am_zcopy(ep_, 5, &header, sizeof header, iov, 2, 0, nullptr); }),
      UCS_OK);
  lengths.push_back(8 + 1600);
  const uct_iov_t most = {payload.data(), attr.cap.am.max_zcopy - sizeof header, nullptr, 0, 1};
  ASSERT_EQ(
      retry([&] { return uct_ep_am_zcopy(ep_, 5, &header, sizeof header, &most, 1, 0, nullptr); }),
      UCS_OK);
  lengths.push_back(attr.cap.am.max_zcopy);
  const uct_iov_t too_much = {payload.data(), most.length + 1, nullptr, 0, 1};
  EXPECT_EQ(uct_ep_am_zcopy(ep_, 5, &header, sizeof header, &too_much, 1, 0, nullptr),
            UCS_ERR_INVALID_PARAM);
  const uct_iov_t little = {payload.data(), 3, nullptr, 0, 1};
  ASSERT_EQ(retry([&] { return uct_ep_am_short_iov(ep_, 5, &little, 1); }), UCS_OK);
  lengths.push_back(3);
  until([&] { return received.messages.size() == lengths.size(); });
  for (std::size_t i = 0; i < lengths.size(); ++i) {
    const auto& message = received.messages[i];
    ASSERT_EQ(message.size(), lengths[i]) << "message " << i;
    const bool headed = i < 10 || lengths[i] == 1608 || lengths[i] == attr.cap.am.max_zcopy;
    const std::size_t skip = headed ? 8 : 0;
    EXPECT_EQ(std::memcmp(message.data() + skip, payload.data(), message.size() - skip), 0)
        << "message " << i;
  }
}

TEST_P(Wire, what_waits_is_not_overtaken) {
  Received received;
  ASSERT_EQ(uct_iface_set_am_handler(target().iface, 6, Received::take, &received, 0), UCS_OK);
  struct Request : uct_pending_req_t {
    uct_ep_h ep;
    std::uint64_t number;
  };
  constexpr std::uint64_t count = 3000;
  std::vector<Request> requests(count);
  bool waits = false;
  for (std::uint64_t i = 0; i < count; ++i) {
    const ucs_status_t status = uct_ep_am_short(ep_, 6, i, nullptr, 0);
    if (status == UCS_OK) {
      EXPECT_FALSE(waits) << "message " << i << " overtook one that waits";
      continue;
    }
    ASSERT_EQ(status, UCS_ERR_NO_RESOURCE);
    waits = true;
    requests[i].ep = ep_;
    requests[i].number = i;
    requests[i].func = [](uct_pending_req_t* self) {
      auto* request = static_cast<Request*>(self);
      return uct_ep_am_short(request->ep, 6, request->number, nullptr, 0);
    };
    ASSERT_EQ(uct_ep_pending_add(ep_, &requests[i], 0), UCS_OK);
  }
  EXPECT_TRUE(waits);
  EXPECT_EQ(uct_ep_flush(ep_, 0, nullptr), UCS_ERR_NO_RESOURCE);
  until([&] { return received.messages.size() == count; });
  for (std::uint64_t i = 0; i < count; ++i) {
    std::uint64_t number;
    std::memcpy(&number, received.messages[i].data(), sizeof number);
    ASSERT_EQ(number, i);
  }
}

TEST_P(Wire, purged_requests_come_back) {
  struct Request : uct_pending_req_t {};
  Request requests[3];
  for (auto& request : requests) {
    request.func = [](uct_pending_req_t*) { return UCS_ERR_NO_RESOURCE; };
    ASSERT_EQ(uct_ep_pending_add(ep_, &request, 0), UCS_OK);
  }
  progress();
  EXPECT_EQ(uct_ep_am_short(ep_, 1, 0, nullptr, 0), UCS_ERR_NO_RESOURCE);
  std::vector<uct_pending_req_t*> back;
  uct_ep_pending_purge(
      ep_,
      [](uct_pending_req_t* request, void* arg) {
        static_cast<std::vector<uct_pending_req_t*>*>(arg)->push_back(request);
      },
      &back);
  EXPECT_EQ(back, (std::vector<uct_pending_req_t*>{&requests[0], &requests[1], &requests[2]}));
}

/// Every pair of {host, window}; `to_remote` puts, else gets.
TEST_P(Wire, zero_copy_between_host_and_windows) {
  for (const std::size_t rows : {1u, 100u, 5000u, 100'000u}) {
    const std::size_t bytes = rows * 8;
    const Dimension dim{rows, 24};
    const LayoutPtr layout = Layout::strided(0, 8, {&dim, 1});
    for (int kind = 0; kind < 8; ++kind) {
      const bool local_window = (kind & 1) != 0;
      const bool remote_window = (kind & 2) != 0;
      const bool put = (kind & 4) != 0;
      std::vector<std::byte> local(rows * 24);
      std::vector<std::byte> remote(rows * 24);
      void* local_address = local_window ? windows().bind(local.data(), *layout) : local.data();
      void* remote_address = remote_window ? windows().bind(remote.data(), *layout) : remote.data();
      auto& source = put ? local : remote;
      for (std::size_t i = 0; i < source.size(); ++i)
        source[i] = static_cast<std::byte>(i * 31 >> 3);
      {
        Memory memory(target(), remote_address, bytes);
        Completion comp;
        const uct_iov_t iov{local_address, bytes, nullptr, 0, 1};
        const auto addr = reinterpret_cast<std::uint64_t>(remote_address);
        const ucs_status_t status = retry([&] {
          return put ? uct_ep_put_zcopy(ep_, &iov, 1, addr, memory.key.rkey, &comp)
                     : uct_ep_get_zcopy(ep_, &iov, 1, addr, memory.key.rkey, &comp);
        });
        ASSERT_EQ(status, UCS_INPROGRESS);
        until([&] { return comp.done; });
        EXPECT_EQ(comp.status, UCS_OK);
        std::vector<std::byte> sent(bytes);
        std::vector<std::byte> arrived(bytes);
        const auto pack = [&](bool window, const std::vector<std::byte>& from,
                              std::vector<std::byte>& to) {
          if (window) {
            layout->gather(from.data(), 0, to);
          } else {
            std::memcpy(to.data(), from.data(), bytes);
          }
        };
        pack(put ? local_window : remote_window, source, sent);
        pack(put ? remote_window : local_window, put ? remote : local, arrived);
        EXPECT_EQ(sent, arrived) << rows << " rows, kind " << kind;
      }
      if (local_window) windows().release(local_address);
      if (remote_window) windows().release(remote_address);
    }
  }
}

TEST_P(Wire, short_and_buffered_put_and_get) {
  std::vector<std::byte> remote(64 * 1024);
  Memory memory(target(), remote.data(), remote.size());
  const auto addr = reinterpret_cast<std::uint64_t>(remote.data());
  std::vector<std::byte> data(16 * 1024);
  for (std::size_t i = 0; i < data.size(); ++i) data[i] = static_cast<std::byte>(i * 3 + 1);
  for (const unsigned length : {1u, 8u, 333u, 512u}) {
    ASSERT_EQ(retry([&] {
                return uct_ep_put_short(ep_, data.data(), length, addr + length, memory.key.rkey);
              }),
              UCS_OK);
    flush();
    EXPECT_EQ(std::memcmp(remote.data() + length, data.data(), length), 0);
  }
  // Many, so that some are packed and find no room.
  for (int i = 0; i < 500; ++i) {
    const auto packer = [](void* to, void* arg) {
      std::memcpy(to, arg, 100);
      return std::size_t{100};
    };
    ssize_t put;
    while ((put = uct_ep_put_bcopy(ep_, packer, data.data() + i,
                                   addr + 100u * static_cast<unsigned>(i), memory.key.rkey)) ==
           UCS_ERR_NO_RESOURCE) {
      progress();
    }
    ASSERT_EQ(put, 100);
  }
  flush();
  for (std::size_t i = 0; i < 500; ++i) {
    ASSERT_EQ(std::memcmp(remote.data() + 100 * i, data.data() + i, 100), 0) << i;
  }
  std::vector<std::byte> got(16 * 1024);
  for (const std::size_t length : {std::size_t{1}, std::size_t{100}, std::size_t{16 * 1024}}) {
    Completion comp;
    const auto unpacker = [](void* to, const void* from, std::size_t bytes) {
      std::memcpy(to, from, bytes);
    };
    ASSERT_EQ(retry([&] {
                return uct_ep_get_bcopy(ep_, unpacker, got.data(), length, addr + 7,
                                        memory.key.rkey, &comp);
              }),
              UCS_INPROGRESS);
    until([&] { return comp.done; });
    EXPECT_EQ(std::memcmp(got.data(), remote.data() + 7, length), 0);
  }
}

TEST_P(Wire, atomics) {
  alignas(8) std::uint64_t value = 100;
  alignas(4) std::uint32_t value32 = 7;
  Memory memory(target(), &value, sizeof value);
  Memory memory32(target(), &value32, sizeof value32);
  const auto addr = reinterpret_cast<std::uint64_t>(&value);
  const auto addr32 = reinterpret_cast<std::uint64_t>(&value32);
  const auto fetch = [&](unsigned code, std::uint64_t operand) {
    Completion comp;
    std::uint64_t result = 0;
    EXPECT_EQ(retry([&] {
                return uct_ep_atomic64_fetch(ep_, static_cast<uct_atomic_op_t>(code), operand,
                                             &result, addr, memory.key.rkey, &comp);
              }),
              UCS_INPROGRESS);
    until([&] { return comp.done; });
    return result;
  };
  for (int i = 0; i < 1000; ++i) {
    ASSERT_EQ(retry([&] {
                return uct_ep_atomic64_post(ep_, UCT_ATOMIC_OP_ADD, 1, addr, memory.key.rkey);
              }),
              UCS_OK);
  }
  EXPECT_EQ(fetch(UCT_ATOMIC_OP_ADD, 5), 1100u);
  EXPECT_EQ(fetch(UCT_ATOMIC_OP_AND, 0xff0), 1105u);
  EXPECT_EQ(fetch(UCT_ATOMIC_OP_OR, 1), 1104u);
  EXPECT_EQ(fetch(UCT_ATOMIC_OP_XOR, 3), 1105u);
  EXPECT_EQ(fetch(UCT_ATOMIC_OP_SWAP, ~0ull), 1106u);
  Completion comp;
  std::uint64_t old = 0;
  ASSERT_EQ(uct_ep_atomic_cswap64(ep_, ~0ull, 9, addr, memory.key.rkey, &old, &comp),
            UCS_INPROGRESS);
  until([&] { return comp.done; });
  EXPECT_EQ(old, ~0ull);
  EXPECT_EQ(value, 9u);
  Completion comp32;
  std::uint32_t old32 = 0;
  ASSERT_EQ(uct_ep_atomic32_fetch(ep_, UCT_ATOMIC_OP_ADD, ~0u, &old32, addr32, memory32.key.rkey,
                                  &comp32),
            UCS_INPROGRESS);
  until([&] { return comp32.done; });
  EXPECT_EQ(old32, 7u);
  EXPECT_EQ(value32, 6u);
}

// What the domain allocates is reached at once, without the target's progress.
TEST_P(Wire, allocated_memory_needs_no_help_of_its_owner) {
  constexpr std::size_t bytes = 10'000;
  std::size_t length = bytes;
  void* address = nullptr;
  uct_mem_h memh = nullptr;
  Node& owner = target();
  ASSERT_EQ(owner.md->ops->mem_alloc(owner.md, &length, &address, UCS_MEMORY_TYPE_HOST,
                                     UCT_MD_MEM_ACCESS_ALL, "test", &memh),
            UCS_OK);
  ASSERT_GE(length, bytes);
  std::byte packed[8];
  uct_rkey_bundle_t key{};
  ASSERT_EQ(uct_md_mkey_pack(owner.md, memh, packed), UCS_OK);
  ASSERT_EQ(uct_rkey_unpack(owner.component, packed, &key), UCS_OK);
  const auto addr = reinterpret_cast<std::uint64_t>(address);
  auto* remote = static_cast<std::byte*>(address);
  std::vector<std::byte> local(bytes);
  for (std::size_t i = 0; i < bytes; ++i) local[i] = static_cast<std::byte>(i * 13 + 1);

  EXPECT_EQ(uct_ep_put_short(ep_, local.data(), 100, addr + 1, key.rkey), UCS_OK);
  EXPECT_EQ(std::memcmp(remote + 1, local.data(), 100), 0);
  const uct_iov_t iov{local.data(), bytes, nullptr, 0, 1};
  EXPECT_EQ(uct_ep_put_zcopy(ep_, &iov, 1, addr, key.rkey, nullptr), UCS_OK);
  EXPECT_EQ(std::memcmp(remote, local.data(), bytes), 0);
  std::vector<std::byte> got(bytes);
  const uct_iov_t back{got.data(), bytes, nullptr, 0, 1};
  EXPECT_EQ(uct_ep_get_zcopy(ep_, &back, 1, addr, key.rkey, nullptr), UCS_OK);
  EXPECT_EQ(got, local);

  std::memset(address, 0, 16);
  EXPECT_EQ(uct_ep_atomic64_post(ep_, UCT_ATOMIC_OP_ADD, 5, addr, key.rkey), UCS_OK);
  std::uint64_t old = 0;
  EXPECT_EQ(uct_ep_atomic64_fetch(ep_, UCT_ATOMIC_OP_ADD, 1, &old, addr, key.rkey, nullptr),
            UCS_OK);
  EXPECT_EQ(old, 5u);
  EXPECT_EQ(uct_ep_atomic_cswap64(ep_, 6, 9, addr, key.rkey, &old, nullptr), UCS_OK);
  EXPECT_EQ(old, 6u);
  std::uint32_t old32 = 0;
  EXPECT_EQ(uct_ep_atomic32_fetch(ep_, UCT_ATOMIC_OP_SWAP, 3, &old32, addr + 8, key.rkey, nullptr),
            UCS_OK);
  std::uint64_t words[2];
  std::memcpy(words, address, sizeof words);
  EXPECT_EQ(words[0], 9u);
  EXPECT_EQ(words[1], 3u);

  // Outside of it the owner decides, and refuses.
  Completion outside;
  const uct_iov_t one{got.data(), 8, nullptr, 0, 1};
  ASSERT_EQ(
      retry([&] { return uct_ep_get_zcopy(ep_, &one, 1, addr + length - 4, key.rkey, &outside); }),
      UCS_INPROGRESS);
  until([&] { return outside.done; });
  EXPECT_NE(outside.status, UCS_OK);
  // And so it does once the memory is freed, also for those who have it mapped.
  ASSERT_EQ(owner.md->ops->mem_free(owner.md, memh), UCS_OK);
  Completion freed;
  ASSERT_EQ(retry([&] { return uct_ep_get_zcopy(ep_, &one, 1, addr, key.rkey, &freed); }),
            UCS_INPROGRESS);
  until([&] { return freed.done; });
  EXPECT_NE(freed.status, UCS_OK);
  uct_rkey_release(owner.component, &key);
}

TEST_P(Wire, a_message_comes_after_the_puts_before_it) {
  constexpr std::size_t bytes = 1 << 20;
  std::vector<std::byte> remote(bytes);
  std::vector<std::byte> local(bytes, std::byte{1});
  struct Check {
    std::vector<std::byte>* memory;
    int seen = 0;
    int right = 0;
  } check{&remote};
  ASSERT_EQ(uct_iface_set_am_handler(
                target().iface, 9,
                [](void* arg, void* data, std::size_t, unsigned) {
                  auto* self = static_cast<Check*>(arg);
                  std::uint64_t round;
                  std::memcpy(&round, data, sizeof round);
                  const auto want = static_cast<std::byte>(round);
                  ++self->seen;
                  if (self->memory->front() == want && self->memory->back() == want) ++self->right;
                  return UCS_OK;
                },
                &check, 0),
            UCS_OK);
  Memory memory(target(), remote.data(), bytes);
  for (std::uint64_t round = 1; round <= 5; ++round) {
    std::fill(local.begin(), local.end(), static_cast<std::byte>(round));
    Completion comp;
    const uct_iov_t iov{local.data(), bytes, nullptr, 0, 1};
    ASSERT_EQ(uct_ep_put_zcopy(ep_, &iov, 1, reinterpret_cast<std::uint64_t>(remote.data()),
                               memory.key.rkey, &comp),
              UCS_INPROGRESS);
    ASSERT_EQ(retry([&] { return uct_ep_am_short(ep_, 9, round, nullptr, 0); }), UCS_OK);
    until([&] { return check.seen == static_cast<int>(round) && comp.done; });
  }
  EXPECT_EQ(check.right, 5);
}

TEST_P(Wire, flush_reports_through_its_completion) {
  std::vector<std::byte> remote(1 << 20);
  std::vector<std::byte> local(1 << 20, std::byte{3});
  Memory memory(target(), remote.data(), remote.size());
  EXPECT_EQ(uct_ep_flush(ep_, 0, nullptr), UCS_OK);
  EXPECT_EQ(uct_iface_flush(a_->iface, 0, nullptr), UCS_OK);
  Completion put;
  Completion flushed;
  const uct_iov_t iov{local.data(), local.size(), nullptr, 0, 1};
  ASSERT_EQ(uct_ep_put_zcopy(ep_, &iov, 1, reinterpret_cast<std::uint64_t>(remote.data()),
                             memory.key.rkey, &put),
            UCS_INPROGRESS);
  EXPECT_EQ(uct_iface_flush(a_->iface, 0, nullptr), UCS_INPROGRESS);
  ASSERT_EQ(uct_ep_flush(ep_, 0, &flushed), UCS_INPROGRESS);
  EXPECT_EQ(uct_ep_fence(ep_, 0), UCS_OK);
  until([&] { return flushed.done; });
  EXPECT_TRUE(put.done);
  EXPECT_EQ(remote, local);
  EXPECT_EQ(uct_iface_flush(a_->iface, 0, nullptr), UCS_OK);
}

TEST_P(Wire, keys_are_checked) {
  std::vector<std::byte> remote(4096);
  std::vector<std::byte> local(8192);
  uct_rkey_t stale;
  const auto addr = reinterpret_cast<std::uint64_t>(remote.data());
  const auto get = [&](std::uint64_t from, std::size_t length, uct_rkey_t key) {
    Completion comp;
    const uct_iov_t iov{local.data(), length, nullptr, 0, 1};
    EXPECT_EQ(retry([&] { return uct_ep_get_zcopy(ep_, &iov, 1, from, key, &comp); }),
              UCS_INPROGRESS);
    until([&] { return comp.done; });
    return comp.status;
  };
  {
    Memory memory(target(), remote.data(), remote.size());
    EXPECT_EQ(get(addr, 4096, memory.key.rkey), UCS_OK);
    EXPECT_NE(get(addr, 4097, memory.key.rkey), UCS_OK);
    EXPECT_NE(get(addr - 1, 8, memory.key.rkey), UCS_OK);
    EXPECT_NE(get(addr, 8, memory.key.rkey + 256), UCS_OK);
    stale = memory.key.rkey;
  }
  EXPECT_NE(get(addr, 8, stale), UCS_OK);
}

TEST_P(Wire, an_event_wakes_a_sleeper) {
  Received received;
  ASSERT_EQ(uct_iface_set_am_handler(target().iface, 3, Received::take, &received, 0), UCS_OK);
  int fd = -1;
  ASSERT_EQ(uct_iface_event_fd_get(target().iface, &fd), UCS_OK);
  ASSERT_EQ(uct_ep_am_short(ep_, 3, 1, nullptr, 0), UCS_OK);
  until([&] { return received.messages.size() == 1; });
  while (uct_iface_event_arm(target().iface, UCT_EVENT_RECV) == UCS_ERR_BUSY) progress();
  pollfd poller{fd, POLLIN, 0};
  EXPECT_EQ(poll(&poller, 1, 0), 0);
  ASSERT_EQ(uct_ep_am_short(ep_, 3, 2, nullptr, 0), UCS_OK);
  EXPECT_EQ(poll(&poller, 1, 5000), 1);
  until([&] { return received.messages.size() == 2; });
}

TEST(Copies, weft_cp_reaches_its_own_process_only) {
  register_once();
  ASSERT_TRUE(windows().open());
  Node node(&cp::component, "weft_cp", "weft_cp");
  Node other(&cp::component, "weft_cp", "weft_cp");
  std::uint64_t address = 0;
  ASSERT_EQ(uct_iface_get_address(other.iface, reinterpret_cast<uct_iface_addr_t*>(&address)),
            UCS_OK);
  EXPECT_FALSE(uct_iface_is_reachable(node.iface, nullptr,
                                      reinterpret_cast<const uct_iface_addr_t*>(&address)));
  uct_ep_h ep = node.connect(node);
  const Dimension dim{1000, 16};
  const LayoutPtr layout = Layout::strided(0, 4, {&dim, 1});
  std::vector<std::byte> memory(16000, std::byte{7});
  void* window = windows().bind(memory.data(), *layout);
  std::vector<std::byte> packed(4000, std::byte{9});
  EXPECT_EQ(uct_ep_put_short(ep, packed.data(), 4000, reinterpret_cast<std::uint64_t>(window), 0),
            UCS_OK);
  EXPECT_EQ(memory[0], std::byte{9});
  EXPECT_EQ(memory[4], std::byte{7});
  memory[16] = std::byte{1};
  EXPECT_EQ(uct_ep_get_short(ep, packed.data(), 4000, reinterpret_cast<std::uint64_t>(window), 0),
            UCS_OK);
  EXPECT_EQ(packed[4], std::byte{1});
  uct_md_mem_attr_t attr{};
  attr.field_mask = UCT_MD_MEM_ATTR_FIELD_MEM_TYPE | UCT_MD_MEM_ATTR_FIELD_BASE_ADDRESS |
                    UCT_MD_MEM_ATTR_FIELD_ALLOC_LENGTH;
  EXPECT_EQ(uct_md_mem_query(node.md, static_cast<char*>(window) + 5, 10, &attr), UCS_OK);
  EXPECT_EQ(attr.mem_type, window_memory_type);
  EXPECT_EQ(attr.base_address, window);
  EXPECT_EQ(attr.alloc_length, 4000u);
  EXPECT_EQ(uct_md_mem_query(node.md, memory.data(), 10, &attr), UCS_ERR_INVALID_ADDR);
  uct_ep_destroy(ep);
  windows().release(window);
}

TEST(Activity, needs_both) {
  register_once();
  ASSERT_TRUE(windows().open());
  EXPECT_FALSE(activity().both_open());
  EXPECT_STRNE(activity().why_not(), "");
  {
    Node copies(&cp::component, "weft_cp", "weft_cp");
    EXPECT_FALSE(activity().both_open());
    Node wire(&wire::component, "weft", "weft0");
    EXPECT_TRUE(activity().both_open());
    EXPECT_STREQ(activity().why_not(), "");
  }
  EXPECT_FALSE(activity().both_open());
}

}  // namespace
}  // namespace weft::ucx
