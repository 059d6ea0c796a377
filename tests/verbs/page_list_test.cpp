// Regions of scattered pages: rows N11 and N12 of the RFCs' verbs.
#include <numeric>

#include "tests/seed.hpp"
#include "tests/verbs/layout_oracle.hpp"

namespace weft::test {
namespace {

constexpr std::size_t page = Memory::page;
constexpr std::size_t many = 262'144;

class PagesTest : public LayoutTest {
 protected:
  /// Writes to some of `many` pages; `place(index)` is where in memory page `index` of the MR lies.
  template <class Place>
  void expect_pages(const ibv_mr* mr, std::uint64_t first, Place place) {
    const Node& mine = here->plain(0, page);
    for (int i = 0; i < 50; ++i) {
      const std::size_t index = random() % many;
      here->host()[5] = static_cast<std::uint8_t>(i);
      ASSERT_EQ(write(mine.sge(0, page), mr->rkey, first + index * page), IBV_WC_SUCCESS);
      ASSERT_EQ(std::memcmp(place(index), here->host(), page), 0);
    }
  }
};
class N11 : public PagesTest {};
class N12 : public PagesTest {};

void expect_none(const ibv_mr* mr, int error) {
  EXPECT_EQ(mr, nullptr);
  EXPECT_EQ(errno, error);
}

/// A range of pages that are mapped where they are touched.
class Range {
 public:
  explicit Range(std::size_t pages, int protection = PROT_READ | PROT_WRITE)
      : bytes_(pages * page),
        at_(static_cast<std::uint8_t*>(::mmap(
            nullptr, bytes_, protection, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0))) {}
  ~Range() { ::munmap(at_, bytes_); }
  Range(const Range&) = delete;
  Range& operator=(const Range&) = delete;
  [[nodiscard]] std::uint8_t* at(std::size_t index) const { return at_ + index * page; }

 private:
  std::size_t bytes_;
  std::uint8_t* at_;
};

TEST_F(N11, PagesInAnyOrderAtAnyBaseAddress) {
  for (const std::uint64_t first :
       {std::uint64_t{0}, std::uint64_t{0x1234567}, ~std::uint64_t{0} - 5 * page}) {
    expect_layout(here->page_list({7, 3, 4, 20, 1}, first, 0, 5 * page));
    expect_layout(here->page_list({7, 3, 4, 20, 1}, first, 1234, 4 * page));
    expect_layout(here->page_list({9}, first, 4095, 1));
  }
}

TEST_F(N11, NeighboursAndRepeats) {
  expect_layout(here->page_list({3, 4, 5, 6}, 0x10000, 100, 3 * page));
  const Node& twice = here->page_list({3, 8, 3}, 0x10000, 0, 3 * page);
  transfer(IBV_WR_RDMA_WRITE, twice, 0, there->plain(0, 3 * page), 0, 3 * page);
}

TEST_F(N11, RandomListsOnBothEnds) {
  for (std::uint64_t round = 0; round < 40 && !HasFatalFailure(); ++round) {
    SCOPED_TRACE(seed_note(round));
    random.seed(seed() * 1000003 + round);
    const auto any = [&](Memory& memory) -> const Node& {
      std::vector<std::size_t> pages(Memory::host_pages);
      std::iota(pages.begin(), pages.end(), 0);
      std::shuffle(pages.begin(), pages.end(), random);
      pages.resize(1 + random() % pages.size());
      const std::size_t offset = random() % page;
      return memory.page_list(pages, random() % 100000, offset,
                              1 + random() % (pages.size() * page - offset));
    };
    const Node& mine = any(*here);
    const Node& peers = any(*there);
    const std::uint64_t at = random() % mine.places.size();
    const std::uint64_t to = random() % peers.places.size();
    const std::uint64_t most = std::min(mine.places.size() - at, peers.places.size() - to);
    for (const auto opcode : {IBV_WR_RDMA_WRITE, IBV_WR_RDMA_READ, IBV_WR_SEND}) {
      transfer(opcode, mine, at, peers, to, 1 + random() % most);
    }
    here->drop();
    there->drop();
  }
}

TEST_F(N11, OnlyItsOwnBytesAreReached) {
  const Node& pages = there->page_list({3, 2}, 0x5000, 8, 8000);
  const Node& mine = here->plain(0, 8192);
  EXPECT_EQ(write(mine.sge(0, 8000), pages.mr->rkey, 0x5000), IBV_WC_SUCCESS);
  for (const auto& [at, length] : {std::pair{0x4fff, 1}, std::pair{0x5000, 8001},
                                   std::pair{0x5000 + 8000, 1}, std::pair{0, 1}}) {
    EXPECT_EQ(write(mine.sge(0, static_cast<std::uint64_t>(length)), pages.mr->rkey,
                    static_cast<std::uint64_t>(at)),
              IBV_WC_REM_ACCESS_ERR);
    reconnect();
  }
}

TEST_F(N11, BadListsAreRefused) {
  const auto reg = [&](std::vector<void*> pages, std::uint64_t addr, std::size_t offset,
                       std::size_t length, int access = all_access) {
    errno = 0;
    return ibv_reg_mr_sg(left->pd, pages.data(), pages.size(), addr, offset, length, access);
  };
  std::uint8_t* const p = here->host();
  expect_none(reg({p, p + page}, 0, 0, 0), EINVAL);
  expect_none(reg({p, p + page}, 0, page, 10), EINVAL);
  expect_none(reg({p, p + page}, 0, 0, 2 * page + 1), EINVAL);
  expect_none(reg({p, p + page}, 0, 1, 2 * page), EINVAL);
  expect_none(reg({}, 0, 0, 1), EINVAL);
  expect_none(reg({p, p + page + 8}, 0, 0, 2 * page), EINVAL);
  expect_none(reg({p, p + page}, ~std::uint64_t{0} - page, 0, 2 * page), EINVAL);
  expect_none(reg({p}, 0, 0, ~std::size_t{0}), EINVAL);
  expect_none(reg({p}, 0, page - 1, ~std::size_t{0} - page), EINVAL);
  expect_none(reg({p}, 5, 0, 1, all_access | IBV_ACCESS_ZERO_BASED), EINVAL);
  expect_none(reg({p}, 0, 0, 1, IBV_ACCESS_REMOTE_WRITE), EINVAL);
  expect_none(reg({p}, 0, 0, 1, 1 << 19), EOPNOTSUPP);
  expect_none(reg({p, nullptr}, 0, 0, 2 * page), EFAULT);
  expect_none(reg({p, reinterpret_cast<void*>(~std::uint64_t{0} - page + 1)}, 0, 0, 2 * page),
              EFAULT);
  errno = 0;
  expect_none(ibv_reg_mr_sg(left->pd, nullptr, 3, 0, 0, 10, all_access), EINVAL);
  const Range read_only(1, PROT_READ);
  expect_none(reg({p, read_only.at(0)}, 0, 0, 2 * page), EFAULT);
  ibv_mr* mr = reg({p, read_only.at(0)}, 0, 0, 2 * page, IBV_ACCESS_REMOTE_READ);
  ASSERT_NE(mr, nullptr);
  EXPECT_EQ(ibv_dereg_mr(mr), 0);
}

TEST_F(N11, ItIsAnMrLikeOthers) {
  const Node& pages = here->page_list({3, 2, 7}, 0x5000, 8, 12000);
  EXPECT_EQ(reinterpret_cast<std::uint64_t>(pages.mr->addr), 0x5000u);
  EXPECT_EQ(pages.mr->length, 12000u);
  EXPECT_EQ(pages.mr->pd, left->pd);
  EXPECT_EQ(ibv_dealloc_pd(left->pd), EBUSY);
  EXPECT_EQ(ibv_rereg_mr(pages.mr, IBV_REREG_MR_CHANGE_ACCESS, nullptr, nullptr, 0, 0),
            IBV_REREG_MR_ERR_INPUT);
  const Node& sg = here->sg({{&pages, pages.sge(4000, 200)}, {&pages, pages.sge(0, 5000)}});
  EXPECT_EQ(ibv_dereg_mr(pages.mr), EBUSY);
  transfer(IBV_WR_RDMA_WRITE, sg, 0, there->plain(0, 5200), 0, 5200);
}

/// A range of that many pages over one file of 1024 pages again and again: large, and cheap.
class Aliased : public Range {
 public:
  static constexpr std::size_t file_pages = 1024;
  explicit Aliased(std::size_t pages) : Range(pages, PROT_NONE) {
    const int file = ::memfd_create("pages", MFD_CLOEXEC);
    EXPECT_EQ(::ftruncate(file, static_cast<off_t>(file_pages * page)), 0);
    for (std::size_t first = 0; first < pages; first += file_pages) {
      EXPECT_NE(::mmap(at(first), file_pages * page, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED,
                       file, 0),
                MAP_FAILED);
    }
    ::close(file);
  }
};

TEST_F(N11, AGigabyteOfScatteredPagesInOneCall) {
  const Aliased range(many);
  std::vector<void*> pages(many);
  for (std::size_t i = 0; i < many; ++i) pages[i] = range.at(i);
  std::shuffle(pages.begin(), pages.end(), random);
  constexpr std::uint64_t first = 0x4000'0000;
  ibv_mr* mr = ibv_reg_mr_sg(right->pd, pages.data(), many, first, 0, many * page, all_access);
  ASSERT_NE(mr, nullptr);
  EXPECT_EQ(mr->length, std::size_t{1} << 30);
  expect_pages(mr, first, [&](std::size_t index) { return pages[index]; });
  EXPECT_EQ(ibv_dereg_mr(mr), 0);
}

TEST_F(N12, PagesArePickedByABitmap) {
  const std::uint64_t bits[1] = {0b1011'0000'0001'1000'0000'1010};
  Places places;
  for (std::uint32_t index = 0; index < Memory::host_pages; ++index) {
    if ((bits[0] >> index & 1) == 0) continue;
    for (std::uint32_t i = 0; i < page; ++i) places.push_back(index * page + i);
  }
  ASSERT_EQ(places.size(), 7 * page);
  ibv_mr* mr = ibv_reg_mr_bitmap(left->pd, here->host(), Memory::host_pages, bits, 0x8000, 100,
                                 6 * page, all_access);
  ASSERT_NE(mr, nullptr);
  expect_layout(here->keep({mr, 0x8000, {places.begin() + 100, places.begin() + 100 + 6 * page}}));
}

TEST_F(N12, RandomBitmaps) {
  for (std::uint64_t round = 0; round < 20 && !HasFatalFailure(); ++round) {
    SCOPED_TRACE(seed_note(round));
    random.seed(seed() * 1000003 + round);
    const std::size_t first = random() % 8;
    const std::size_t range = 1 + random() % (Memory::host_pages - first);
    // What lies behind the range is all ones, and means nothing.
    std::uint64_t bits[1] = {random() | (range == 64 ? 0 : ~std::uint64_t{0} << range)};
    bits[0] |= 1;
    Places places;
    for (std::size_t index = 0; index < range; ++index) {
      if ((bits[0] >> index & 1) == 0) continue;
      for (std::size_t i = 0; i < page; ++i) {
        places.push_back(static_cast<std::uint32_t>((first + index) * page + i));
      }
    }
    const std::size_t offset = random() % page;
    places.erase(places.begin(), places.begin() + static_cast<std::ptrdiff_t>(offset));
    errno = 0;
    expect_none(ibv_reg_mr_bitmap(left->pd, here->host() + first * page, range, bits, 0, offset,
                                  places.size() + 1, all_access),
                EINVAL);
    places.resize(1 + random() % places.size());
    ibv_mr* mr = ibv_reg_mr_bitmap(left->pd, here->host() + first * page, range, bits, 77, offset,
                                   places.size(), all_access);
    ASSERT_NE(mr, nullptr);
    expect_layout(here->keep({mr, 77, places}));
    here->drop();
    there->drop();
  }
}

TEST_F(N12, BadBitmapsAreRefused) {
  const std::uint64_t bits[2] = {0b110, 1};
  const auto reg = [&](void* range, std::size_t pages, const std::uint64_t* bitmap,
                       std::size_t length, std::uint64_t addr = 0) {
    errno = 0;
    return ibv_reg_mr_bitmap(left->pd, range, pages, bitmap, addr, 0, length, all_access);
  };
  std::uint8_t* const p = here->host();
  expect_none(reg(p, 48, nullptr, 10), EINVAL);
  expect_none(reg(p + 1, 48, bits, 10), EINVAL);
  expect_none(reg(p, 0, bits, 10), EINVAL);
  expect_none(reg(p, 48, bits, 0), EINVAL);
  expect_none(reg(p, 48, bits, 2 * page + 1), EINVAL);
  expect_none(reg(p, 2, bits, 2 * page), EINVAL);
  expect_none(reg(p, ~std::size_t{0}, bits, 10), EINVAL);
  expect_none(reg(reinterpret_cast<void*>(~std::uint64_t{0} - page + 1), 2, bits, 10), EINVAL);
  expect_none(reg(p, 48, bits, page, ~std::uint64_t{0} - 10), EINVAL);
  expect_none(reg(nullptr, 48, bits, 10), EINVAL);
}

TEST_F(N12, PagesThatAreNotPickedNeedNotBeThere) {
  const Range range(64);
  ASSERT_EQ(::munmap(range.at(10), 20 * page), 0);
  std::uint64_t bits[1] = {~std::uint64_t{0} >> 30 << 30 | 0x3ff};
  ibv_mr* mr = ibv_reg_mr_bitmap(left->pd, range.at(0), 64, bits, 0, 0, 44 * page, all_access);
  ASSERT_NE(mr, nullptr);
  EXPECT_EQ(ibv_dereg_mr(mr), 0);
  bits[0] |= 1u << 10;
  errno = 0;
  expect_none(ibv_reg_mr_bitmap(left->pd, range.at(0), 64, bits, 0, 0, 45 * page, all_access),
              EFAULT);
}

TEST_F(N12, AGigabyteOfScatteredPagesInOneCall) {
  const Aliased range(2 * many);
  const std::vector<std::uint64_t> bits(2 * many / 64, 0x5555'5555'5555'5555);
  constexpr std::uint64_t first = 0x4000'0000;
  ibv_mr* mr = ibv_reg_mr_bitmap(right->pd, range.at(0), 2 * many, bits.data(), first, 0,
                                 many * page, all_access);
  ASSERT_NE(mr, nullptr);
  EXPECT_EQ(mr->length, std::size_t{1} << 30);
  expect_pages(mr, first, [&](std::size_t index) { return range.at(2 * index); });
  EXPECT_EQ(write(here->plain(0, page).sge(0, page), mr->rkey, first + (many - 1) * page + 1),
            IBV_WC_REM_ACCESS_ERR);
  EXPECT_EQ(ibv_dereg_mr(mr), 0);
}

}  // namespace
}  // namespace weft::test
