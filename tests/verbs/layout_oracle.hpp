// Layout MRs beside what they stand for byte by byte: an independent plain loop.
#pragma once

#include <infiniband/weft_verbs.h>
#include <sys/mman.h>

#include <algorithm>
#include <cstdint>
#include <memory>
#include <random>
#include <vector>

#include "tests/verbs/two_sides.hpp"

namespace weft::test {

/// Bytes by their places in a Memory, in the order in which an MR has them.
using Places = std::vector<std::uint32_t>;

/// An MR, the address of its first byte, and where its bytes are.
struct Node {
  ibv_mr* mr = nullptr;
  std::uint64_t first = 0;
  Places places{};

  [[nodiscard]] ibv_sge sge(std::uint64_t offset, std::uint64_t length) const {
    return {first + offset, static_cast<std::uint32_t>(length), mr->lkey};
  }
};

constexpr unsigned carrier_access = static_cast<unsigned>(all_access) | IBV_ACCESS_ZERO_BASED;

inline ibv_mr* carrier(ibv_pd* pd, unsigned access = carrier_access) {
  return ibv_reg_mr(pd, nullptr, 0, access);
}

/// An entry of an interleaved layout over a node, for the device and for the oracle.
struct Pattern {
  const Node* over = nullptr;
  std::uint64_t offset = 0;
  std::uint32_t length = 0;
  int repeat = 1;
  std::vector<ibv_mr_layout_interleaved_dimensions> dims{};  // innermost first

  [[nodiscard]] ibv_mr_layout_interleaved entry() {
    return {over->sge(offset, length), repeat, static_cast<int>(dims.size()), dims.data()};
  }
  /// Offsets of its items in the node, in order.
  [[nodiscard]] std::vector<std::uint64_t> items() const {
    std::vector<std::uint64_t> all{offset};
    for (const auto& dim : dims) {
      std::vector<std::uint64_t> more;
      for (std::uint64_t i = 0; i < dim.datum_count; ++i) {
        for (const std::uint64_t at : all) more.push_back(at + i * dim.offset_stride);
      }
      all = std::move(more);
    }
    return all;
  }
};

inline Places sg_places(const std::vector<std::pair<const Node*, ibv_sge>>& list) {
  Places result;
  for (const auto& [node, sge] : list) {
    for (std::uint32_t i = 0; i < sge.length; ++i) {
      result.push_back(node->places[sge.addr - node->first + i]);
    }
  }
  return result;
}

/// The RFC's pseudo-code.
inline Places interleaved_places(const std::vector<Pattern>& patterns) {
  Places result;
  std::vector<std::vector<std::uint64_t>> items;
  for (const Pattern& pattern : patterns) items.push_back(pattern.items());
  std::vector<std::size_t> next(patterns.size());
  for (bool more = true; more;) {
    more = false;
    for (std::size_t e = 0; e < patterns.size(); ++e) {
      for (int r = 0; r < patterns[e].repeat && next[e] < items[e].size(); ++r) {
        for (std::uint32_t i = 0; i < patterns[e].length; ++i) {
          result.push_back(patterns[e].over->places[items[e][next[e]] + i]);
        }
        ++next[e];
      }
      more = more || next[e] < items[e].size();
    }
  }
  return result;
}

/// One side's memory, host and device, and the MRs made over it.
class Memory {
 public:
  static constexpr std::size_t page = 4096;
  static constexpr std::size_t host_pages = 48;
  static constexpr std::size_t host_bytes = host_pages * page;
  static constexpr std::size_t dm_bytes = 2048;

  explicit Memory(Side& side) : side_(side) {
    host_ = static_cast<std::uint8_t*>(
        ::mmap(nullptr, host_bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
    ibv_alloc_dm_attr attr{dm_bytes, 0, 0};
    dm_ = ibv_alloc_dm(side.context, &attr);
    EXPECT_NE(dm_, nullptr);
  }
  ~Memory() {
    drop();
    EXPECT_EQ(ibv_free_dm(dm_), 0);
    ::munmap(host_, host_bytes);
  }
  Memory(const Memory&) = delete;
  Memory& operator=(const Memory&) = delete;

  /// Deregisters what was made, in inverse order.
  void drop() {
    for (; !nodes_.empty(); nodes_.pop_back()) EXPECT_EQ(ibv_dereg_mr(nodes_.back()->mr), 0);
  }
  [[nodiscard]] std::uint8_t* host() const { return host_; }
  [[nodiscard]] ibv_dm* dm() const { return dm_; }
  [[nodiscard]] Side& side() const { return side_; }

  [[nodiscard]] std::vector<std::uint8_t> image() const {
    side_.hand_over();
    std::vector<std::uint8_t> bytes(host_, host_ + host_bytes);
    bytes.resize(host_bytes + dm_bytes);
    EXPECT_EQ(ibv_memcpy_from_dm(bytes.data() + host_bytes, dm_, 0, dm_bytes), 0);
    side_.hand_over();
    return bytes;
  }
  void fill(std::mt19937_64& random) {
    std::vector<std::uint8_t> bytes(host_bytes + dm_bytes);
    for (auto& byte : bytes) byte = static_cast<std::uint8_t>(random());
    std::copy_n(bytes.begin(), host_bytes, host_);
    EXPECT_EQ(ibv_memcpy_to_dm(dm_, 0, bytes.data() + host_bytes, dm_bytes), 0);
    side_.hand_over();
  }

  const Node& keep(Node node) {
    EXPECT_NE(node.mr, nullptr);
    return *nodes_.emplace_back(std::make_unique<Node>(std::move(node)));
  }
  const Node& plain(std::size_t offset, std::size_t length, unsigned access = all_access) {
    const bool zero_based = (access & IBV_ACCESS_ZERO_BASED) != 0;
    return keep({ibv_reg_mr(side_.pd, host_ + offset, length, access),
                 zero_based ? 0 : reinterpret_cast<std::uint64_t>(host_ + offset),
                 range(offset, length)});
  }
  const Node& device(std::size_t offset, std::size_t length) {
    constexpr unsigned access = IBV_ACCESS_ZERO_BASED | IBV_ACCESS_LOCAL_WRITE |
                                IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ |
                                IBV_ACCESS_REMOTE_ATOMIC;
    return keep({ibv_reg_dm_mr(side_.pd, dm_, offset, length, access), 0,
                 range(host_bytes + offset, length)});
  }
  const Node& sg(const std::vector<std::pair<const Node*, ibv_sge>>& list, int flags = 0,
                 int expected = 0) {
    std::vector<ibv_sge> sges;
    for (const auto& entry : list) sges.push_back(entry.second);
    ibv_mr* mr = carrier(side_.pd);
    EXPECT_EQ(ibv_mr_set_layout_sg(mr, flags, static_cast<int>(sges.size()), sges.data()),
              expected);
    return keep({mr, 0, sg_places(list)});
  }
  const Node& interleaved(std::vector<Pattern> patterns, int flags = 0) {
    std::vector<ibv_mr_layout_interleaved> entries;
    for (Pattern& pattern : patterns) entries.push_back(pattern.entry());
    ibv_mr* mr = carrier(side_.pd);
    EXPECT_EQ(
        ibv_mr_set_layout_interleaved(mr, flags, static_cast<int>(entries.size()), entries.data()),
        0);
    return keep({mr, 0, interleaved_places(patterns)});
  }
  const Node& page_list(const std::vector<std::size_t>& pages, std::uint64_t first,
                        std::size_t offset, std::size_t length) {
    std::vector<void*> addresses;
    Places places;
    for (const std::size_t index : pages) {
      addresses.push_back(host_ + index * page);
      const Places more = range(index * page, page);
      places.insert(places.end(), more.begin(), more.end());
    }
    places.erase(places.begin(), places.begin() + static_cast<std::ptrdiff_t>(offset));
    places.resize(length);
    return keep({ibv_reg_mr_sg(side_.pd, addresses.data(), addresses.size(), first, offset, length,
                               all_access),
                 first, places});
  }

  /// Any MR, of layouts at most `depth` deep.
  const Node& any(std::mt19937_64& random, unsigned depth) {
    const auto below = [&](std::uint64_t n) { return random() % n; };
    switch (depth == 0 ? below(4) : 4 + below(3)) {
      case 0:
        return plain(below(4096), 1 + below(host_bytes - 4096));
      case 1:
        return plain(below(4096), 1 + below(host_bytes - 4096), carrier_access);
      case 2:
        return device(below(dm_bytes / 2), 1 + below(dm_bytes / 2));
      case 3: {
        std::vector<std::size_t> pages(host_pages);
        for (std::size_t i = 0; i < host_pages; ++i) pages[i] = i;
        std::shuffle(pages.begin(), pages.end(), random);
        pages.resize(1 + below(host_pages));
        const std::size_t offset = below(page);
        return page_list(pages, below(2) * 0x7000'0000 + below(1000), offset,
                         1 + below(pages.size() * page - offset));
      }
      case 4: {
        std::vector<std::pair<const Node*, ibv_sge>> list;
        for (std::uint64_t n = 1 + below(9); n != 0; --n) {
          const Node& over = any(random, below(depth));
          const std::uint64_t offset = below(over.places.size());
          const std::uint64_t length =
              1 + below(std::min<std::uint64_t>(over.places.size() - offset, 1 + below(8000)));
          list.emplace_back(&over, over.sge(offset, length));
        }
        return sg(list);
      }
      default:
        return interleaved(any_patterns(random, depth));
    }
  }

 private:
  std::vector<Pattern> any_patterns(std::mt19937_64& random, unsigned depth) {
    const auto below = [&](std::uint64_t n) { return random() % n; };
    std::vector<Pattern> patterns(1 + below(4));
    const std::uint64_t count = 1 + below(60);
    const bool uniform = below(2) == 0;
    for (Pattern& pattern : patterns) {
      const Node& over = any(random, below(depth));
      std::uint64_t room = over.places.size();
      pattern.over = &over;
      pattern.length = static_cast<std::uint32_t>(1 + below(std::min<std::uint64_t>(room, 100)));
      pattern.offset = below(room - pattern.length + 1);
      pattern.repeat = uniform ? 1 : 1 + static_cast<int>(below(3));
      room -= pattern.offset + pattern.length;
      for (std::uint64_t dims = uniform ? 1 : below(4); dims != 0; --dims) {
        const std::uint64_t items = uniform ? count : 1 + below(9);
        const std::uint64_t stride = items == 1 ? below(1000) : below(room / (items - 1) / 2 + 1);
        room -= (items - 1) * stride;
        pattern.dims.push_back({stride, items});
      }
    }
    return patterns;
  }
  static Places range(std::size_t first, std::size_t length) {
    Places result(length);
    for (std::size_t i = 0; i < length; ++i) result[i] = static_cast<std::uint32_t>(first + i);
    return result;
  }

  Side& side_;
  std::uint8_t* host_;
  ibv_dm* dm_;
  std::vector<std::unique_ptr<Node>> nodes_;
};

/// Two connected sides with their memories.
class LayoutTest : public ::testing::Test {
 protected:
  void SetUp() override {
    left = std::make_unique<Side>();
    right = std::make_unique<Side>();
    here = std::make_unique<Memory>(*left);
    there = std::make_unique<Memory>(*right);
    here->fill(random);
    there->fill(random);
    reconnect();
  }
  void reconnect() {
    for (Side* side : {left.get(), right.get()}) {
      ibv_qp_attr attr{};
      attr.qp_state = IBV_QPS_RESET;
      ASSERT_EQ(ibv_modify_qp(side->qp, &attr, IBV_QP_STATE), 0);
    }
    connect(left->qp, right->qp);
    connect(right->qp, left->qp);
  }
  void hand_over() const {
    left->hand_over();
    right->hand_over();
  }
  ibv_wc_status rdma(ibv_wr_opcode opcode, ibv_sge sge, std::uint32_t rkey, std::uint64_t addr) {
    hand_over();
    ibv_send_wr wr = request(opcode);
    wr.wr.rdma = {addr, rkey};
    EXPECT_EQ(left->post(wr, sge), 0);
    return left->wait(right.get()).status;
  }
  ibv_wc_status write(ibv_sge from, std::uint32_t rkey, std::uint64_t addr) {
    return rdma(IBV_WR_RDMA_WRITE, from, rkey, addr);
  }
  ibv_wc_status read(ibv_sge to, std::uint32_t rkey, std::uint64_t addr) {
    return rdma(IBV_WR_RDMA_READ, to, rkey, addr);
  }

  /// WRITE, READ or SEND of `length` bytes between two MRs, checked byte by byte, as is all that
  /// must not have changed.
  void transfer(ibv_wr_opcode opcode, const Node& mine, std::uint64_t at, const Node& peers,
                std::uint64_t to, std::uint64_t length) {
    std::vector<std::uint8_t> expected_here = here->image();
    std::vector<std::uint8_t> expected_there = there->image();
    for (std::uint64_t i = 0; i < length; ++i) {
      if (opcode == IBV_WR_RDMA_READ) {
        expected_here[mine.places[at + i]] = expected_there[peers.places[to + i]];
      } else {
        expected_there[peers.places[to + i]] = expected_here[mine.places[at + i]];
      }
    }
    if (opcode == IBV_WR_SEND) {
      ASSERT_EQ(right->post_recv(1, peers.sge(to, length)), 0);
      ASSERT_EQ(left->post(request(opcode), mine.sge(at, length)), 0);
      const ibv_wc wc = right->wait(left.get());
      ASSERT_EQ(wc.status, IBV_WC_SUCCESS);
      ASSERT_EQ(wc.byte_len, length);
      ASSERT_EQ(left->wait(right.get()).status, IBV_WC_SUCCESS);
    } else if (opcode == IBV_WR_RDMA_READ) {
      ASSERT_EQ(read(mine.sge(at, length), peers.mr->rkey, peers.first + to), IBV_WC_SUCCESS);
    } else {
      ASSERT_EQ(write(mine.sge(at, length), peers.mr->rkey, peers.first + to), IBV_WC_SUCCESS);
    }
    ASSERT_EQ(here->image(), expected_here);
    ASSERT_EQ(there->image(), expected_there);
  }
  /// All of `mine` to the peer's plain memory and back into another place.
  void expect_layout(const Node& mine) {
    const Node& flat = there->plain(0, mine.places.size());
    transfer(IBV_WR_RDMA_WRITE, mine, 0, flat, 0, mine.places.size());
    there->fill(random);
    transfer(IBV_WR_RDMA_READ, mine, 0, flat, 0, mine.places.size());
  }

  std::mt19937_64 random{1};
  std::unique_ptr<Side> left;
  std::unique_ptr<Side> right;
  std::unique_ptr<Memory> here;
  std::unique_ptr<Memory> there;
};

}  // namespace weft::test
