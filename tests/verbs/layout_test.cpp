// Layouts of memory regions: rows N1 to N4 and N9 of the RFCs' verbs.
#include "tests/seed.hpp"
#include "tests/verbs/layout_oracle.hpp"

namespace weft::test {
namespace {

class N1 : public LayoutTest {};
class N2 : public LayoutTest {};
class N3 : public LayoutTest {};
class N4 : public LayoutTest {};
class N9 : public LayoutTest {};
class Layouts : public LayoutTest {};

/// Both calls fail with a code and an errno value, and say so in one line.
void expect_refused(int result, int code, int error) {
  EXPECT_EQ(result, code);
  EXPECT_EQ(errno, error);
}

TEST_F(N1, OneKeySpansSeveralRegionsInTheOrderOfTheList) {
  const Node& a = here->plain(5000, 700);
  const Node& b = here->plain(100, 900);
  expect_layout(here->sg({{&a, a.sge(0, 700)}, {&b, b.sge(17, 300)}, {&a, a.sge(600, 1)}}));
}

TEST_F(N1, AnAddressIsAnOffsetWhereTheRegionIsZeroBased) {
  const Node& a = here->plain(5000, 700, carrier_access);
  const Node& b = here->plain(1000, 700);
  expect_layout(here->sg({{&a, {3, 100, a.mr->lkey}}, {&b, b.sge(0, 100)}}));
}

TEST_F(N1, ThousandsOfPiecesOfManyLengths) {
  const Node& a = here->plain(0, Memory::host_bytes / 2);
  std::vector<std::pair<const Node*, ibv_sge>> list;
  for (std::uint64_t at = 0; at + 40 < Memory::host_bytes / 2; at += 40) {
    list.emplace_back(&a, a.sge(at, 1 + random() % 30));
  }
  ASSERT_GT(list.size(), 2000u);
  expect_layout(here->sg(list));
}

TEST_F(N1, BytesOutsideOfTheLayoutAreAProtectionError) {
  const Node& a = there->plain(0, 1000);
  const Node& sg = there->sg({{&a, a.sge(10, 20)}, {&a, a.sge(100, 20)}});
  const Node& mine = here->plain(0, 100);
  EXPECT_EQ(write(mine.sge(0, 40), sg.mr->rkey, 0), IBV_WC_SUCCESS);
  EXPECT_EQ(write(mine.sge(0, 40), sg.mr->rkey, 1), IBV_WC_REM_ACCESS_ERR);
  reconnect();
  EXPECT_EQ(write(mine.sge(0, 1), sg.mr->rkey, ~std::uint64_t{0}), IBV_WC_REM_ACCESS_ERR);
  reconnect();
  const Node& own = here->sg({{&mine, mine.sge(0, 10)}});
  EXPECT_EQ(write({5, 6, own.mr->lkey}, sg.mr->rkey, 0), IBV_WC_LOC_PROT_ERR);
}

TEST_F(N1, TheCarriersAccessIsTheLayouts) {
  const Node& a = there->plain(0, 1000);
  ibv_mr* mr = carrier(right->pd, IBV_ACCESS_ZERO_BASED | IBV_ACCESS_REMOTE_READ);
  ibv_sge sge = a.sge(0, 100);
  ASSERT_EQ(ibv_mr_set_layout_sg(mr, 0, 1, &sge), 0);
  there->keep({mr, 0, {}});
  const Node& mine = here->plain(0, 100);
  EXPECT_EQ(read(mine.sge(0, 50), mr->rkey, 0), IBV_WC_SUCCESS);
  EXPECT_EQ(write(mine.sge(0, 50), mr->rkey, 0), IBV_WC_REM_ACCESS_ERR);
}

TEST_F(N1, BadListsAreRefused) {
  const Node& a = here->plain(1000, 500);
  const Node& read_only = here->plain(1000, 500, IBV_ACCESS_REMOTE_READ);
  ibv_pd* other = ibv_alloc_pd(left->context);
  ibv_mr* foreign = ibv_reg_mr(other, here->host(), 100, all_access);
  const Node& kept = here->sg({{&a, a.sge(0, 64)}});
  ibv_mr* const mr = kept.mr;
  const std::uint32_t key = mr->lkey;
  const auto refused = [&](int flags, int num_sge, const ibv_sge& sge, int error) {
    expect_refused(ibv_mr_set_layout_sg(mr, flags, num_sge, &sge), IBV_MR_SET_LAYOUT_ERR_INPUT,
                   error);
  };
  refused(0, 0, a.sge(0, 10), EINVAL);
  refused(0, -1, a.sge(0, 10), EINVAL);
  refused(1 << 3, 1, a.sge(0, 10), EINVAL);
  refused(0, 1, a.sge(0, 0), EINVAL);
  expect_refused(ibv_mr_set_layout_sg(mr, 0, 1, nullptr), IBV_MR_SET_LAYOUT_ERR_INPUT, EINVAL);
  refused(0, 1, {a.first, 10, a.mr->lkey + 1}, EINVAL);
  refused(0, 1, {a.first, 10, 0}, EINVAL);
  refused(0, 1, {a.first, 10, 0xffffffff}, EINVAL);
  refused(0, 1, {0, 10, mr->lkey}, EINVAL);
  refused(0, 1, {reinterpret_cast<std::uint64_t>(here->host()), 10, foreign->lkey}, EINVAL);
  refused(0, 1, read_only.sge(0, 10), EACCES);
  refused(0, 1, {a.first - 1, 10, a.mr->lkey}, ERANGE);
  refused(0, 1, {a.first + 491, 10, a.mr->lkey}, ERANGE);
  refused(0, 1, {~std::uint64_t{0} - 3, 10, a.mr->lkey}, ERANGE);
  refused(0, 1, {~std::uint64_t{0}, 0xffffffff, a.mr->lkey}, ERANGE);
  EXPECT_EQ(mr->lkey, key);
  EXPECT_EQ(mr->length, 64u);
  expect_layout(kept);
  EXPECT_EQ(ibv_dereg_mr(foreign), 0);
  EXPECT_EQ(ibv_dealloc_pd(other), 0);
}

TEST_F(N1, OnlyOrdinaryRegionsCarryLayouts) {
  const Node& a = here->plain(0, 100);
  const Node& dm = here->device(0, 100);
  const Node& pages = here->page_list({1, 0}, 0, 0, 8000);
  ibv_mr* null = ibv_alloc_null_mr(left->pd);
  for (ibv_mr* mr : {dm.mr, pages.mr, null}) {
    ibv_sge sge = a.sge(0, 10);
    expect_refused(ibv_mr_set_layout_sg(mr, 0, 1, &sge), IBV_MR_SET_LAYOUT_ERR_INPUT, EINVAL);
  }
  EXPECT_EQ(ibv_dereg_mr(null), 0);
}

TEST_F(N1, ACarrierThatIsNotZeroBasedKeepsItsFirstAddress) {
  const Node& a = here->plain(0, 1000);
  const Node& ordinary = here->plain(2000, 100);
  ibv_sge list[2] = {a.sge(500, 100), a.sge(0, 100)};
  ASSERT_EQ(ibv_mr_set_layout_sg(ordinary.mr, 0, 2, list), 0);
  EXPECT_EQ(ordinary.mr->length, 200u);
  EXPECT_EQ(reinterpret_cast<std::uint64_t>(ordinary.mr->addr), ordinary.first);
  const Node layout{ordinary.mr, ordinary.first, sg_places({{&a, list[0]}, {&a, list[1]}})};
  expect_layout(layout);
}

TEST_F(N1, ALayoutThatWouldPassTheEndOfTheAddressSpaceIsRefused) {
  const Node& a = here->plain(0, 8192);
  ibv_mr* mr = ibv_reg_mr_iova(left->pd, here->host(), 4096, ~std::uint64_t{0} - 4096, all_access);
  ASSERT_NE(mr, nullptr);
  ibv_sge sge = a.sge(0, 4096);
  EXPECT_EQ(ibv_mr_set_layout_sg(mr, 0, 1, &sge), 0);
  sge.length = 4098;
  expect_refused(ibv_mr_set_layout_sg(mr, 0, 1, &sge), IBV_MR_SET_LAYOUT_ERR_INPUT, EOVERFLOW);
  here->keep({mr, ~std::uint64_t{0} - 4096, {}});
  const Node& target = there->plain(0, 100);
  EXPECT_EQ(write({~std::uint64_t{0} - 100, 100, mr->lkey}, target.mr->rkey, target.first),
            IBV_WC_SUCCESS);
}

TEST_F(N1, OverlappingEntriesAreReadAsDescribed) {
  const Node& a = here->plain(0, 1000);
  const Node& twice = here->sg({{&a, a.sge(0, 500)}, {&a, a.sge(250, 500)}, {&a, a.sge(0, 1000)}});
  const Node& flat = there->plain(0, twice.places.size());
  transfer(IBV_WR_RDMA_WRITE, twice, 0, flat, 0, twice.places.size());
  // Written to, each byte is one of those that were meant for it; nothing else changes.
  const auto before = here->image();
  ASSERT_EQ(read(twice.sge(0, 2000), flat.mr->rkey, flat.first), IBV_WC_SUCCESS);
  const auto sent = there->image();
  const auto after = here->image();
  std::vector<bool> meant(1000);
  for (std::size_t i = 0; i < twice.places.size(); ++i) {
    const std::uint32_t at = twice.places[i];
    if (after[at] == sent[flat.places[i]]) meant[at] = true;
  }
  EXPECT_EQ(std::count(meant.begin(), meant.end(), true), 1000);
  EXPECT_TRUE(std::equal(before.begin() + 1000, before.end(), after.begin() + 1000));
}

TEST_F(N2, ItemsAreTakenInRoundRobin) {
  // The RFC's example: odd and even items are swapped.
  constexpr std::uint32_t item = 24;
  const Node& items = here->plain(300, 100 * item, carrier_access);
  const ibv_mr_layout_interleaved_dimensions every_second{2 * item, 50};
  const Node& swapped = here->interleaved(
      {{&items, item, item, 1, {every_second}}, {&items, 0, item, 1, {every_second}}});
  EXPECT_EQ(swapped.mr->length, 100u * item);
  expect_layout(swapped);
  EXPECT_EQ(swapped.places[0], 300 + item);
  EXPECT_EQ(swapped.places[item], 300u);
}

TEST_F(N2, EntriesOfDifferentItemsRegionsAndStrides) {
  const Node& a = here->plain(0, 20000);
  const Node& b = here->plain(20000, 40000);
  const Node& dm = here->device(0, 2000);
  expect_layout(here->interleaved(
      {{&a, 5, 8, 1, {{24, 200}}}, {&b, 0, 100, 1, {{180, 200}}}, {&dm, 0, 3, 1, {{9, 200}}}}));
}

TEST_F(N2, AColumnOfAMatrix) {
  constexpr std::size_t rows = 100;
  constexpr std::size_t row = 800;
  const Node& matrix = here->plain(0, rows * row);
  expect_layout(here->interleaved({{&matrix, 56, 8, 1, {{row, rows}}}}));
}

TEST_F(N2, BadEntriesAreRefused) {
  const Node& a = here->plain(1000, 5000);
  const Node& kept = here->interleaved({{&a, 0, 8, 1, {{16, 10}}}});
  const std::uint32_t key = kept.mr->lkey;
  ibv_mr_layout_interleaved_dimensions dim{16, 10};
  const ibv_mr_layout_interleaved good{a.sge(0, 8), 1, 1, &dim};
  const auto refused = [&](auto spoil, int error) {
    ibv_mr_layout_interleaved bad = good;
    dim = {16, 10};
    spoil(bad);
    expect_refused(ibv_mr_set_layout_interleaved(kept.mr, 0, 1, &bad), IBV_MR_SET_LAYOUT_ERR_INPUT,
                   error);
    EXPECT_EQ(kept.mr->lkey, key);
  };
  refused([](auto& e) { e.first_datum.length = 0; }, EINVAL);
  refused([](auto& e) { e.num_repeated = 0; }, EINVAL);
  refused([](auto& e) { e.num_repeated = -3; }, EINVAL);
  refused([](auto& e) { e.num_dimensions = -1; }, EINVAL);
  refused([](auto& e) { e.dims = nullptr; }, EINVAL);
  refused([](auto& e) { e.first_datum.lkey ^= 0x55500; }, EINVAL);
  refused([&](auto&) { dim.datum_count = 0; }, EINVAL);
  refused([&](auto&) { dim = {499, 12}; }, ERANGE);
  refused([&](auto&) { dim = {~std::uint64_t{0} >> 3, 2}; }, ERANGE);
  refused([&](auto&) { dim = {~std::uint64_t{0} >> 3, 100}; }, EOVERFLOW);
  refused([&](auto&) { dim = {std::uint64_t{1} << 33, std::uint64_t{1} << 33}; }, EOVERFLOW);
  refused([&](auto&) { dim = {0, ~std::uint64_t{0}}; }, EOVERFLOW);
  expect_refused(ibv_mr_set_layout_interleaved(kept.mr, 0, 0, &good), IBV_MR_SET_LAYOUT_ERR_INPUT,
                 EINVAL);
  expect_refused(ibv_mr_set_layout_interleaved(kept.mr, 0, -7, &good), IBV_MR_SET_LAYOUT_ERR_INPUT,
                 EINVAL);
  expect_refused(ibv_mr_set_layout_interleaved(kept.mr, 0, 1, nullptr), IBV_MR_SET_LAYOUT_ERR_INPUT,
                 EINVAL);
  // A stride of more than 63 bits is one over the device's limit.
  ibv_mr_layout_interleaved_dimensions back{~std::uint64_t{0} - 15, 2};
  const ibv_mr_layout_interleaved backwards{a.sge(100, 8), 1, 1, &back};
  expect_refused(ibv_mr_set_layout_interleaved(kept.mr, 0, 1, &backwards),
                 IBV_MR_SET_LAYOUT_ERR_UNSUPPORTED, EOPNOTSUPP);
  expect_layout(kept);
}

TEST_F(N2, ItemsWhoseTotalOverflowsAreRefused) {
  // Each entry is small; their sum is not.
  ibv_mr* null = ibv_alloc_null_mr(left->pd);
  ibv_mr* mr = carrier(left->pd, IBV_ACCESS_ZERO_BASED | IBV_ACCESS_LOCAL_WRITE);
  ibv_mr_layout_interleaved_dimensions dims[2] = {{0, std::uint64_t{1} << 31},
                                                  {0, std::uint64_t{1} << 31}};
  ibv_mr_layout_interleaved entry{{0, 1, null->lkey}, 1, 2, dims};
  EXPECT_EQ(ibv_mr_set_layout_interleaved(mr, 0, 1, &entry), 0) << "2^62 bytes";
  const ibv_mr_layout_interleaved both[2] = {entry, entry};
  expect_refused(ibv_mr_set_layout_interleaved(mr, 0, 2, both), IBV_MR_SET_LAYOUT_ERR_INPUT,
                 EOVERFLOW);
  entry.first_datum.length = 3;
  expect_refused(ibv_mr_set_layout_interleaved(mr, 0, 1, &entry), IBV_MR_SET_LAYOUT_ERR_INPUT,
                 EOVERFLOW);
  EXPECT_EQ(mr->length, std::uint64_t{1} << 62);
  EXPECT_EQ(ibv_dereg_mr(mr), 0);
  EXPECT_EQ(ibv_dereg_mr(null), 0);
}

TEST_F(N2, OverlappingItemsAreReadAsDescribed) {
  const Node& a = here->plain(0, 1000);
  const Node& layout = here->interleaved({{&a, 0, 100, 1, {{10, 50}}}, {&a, 0, 50, 1, {{0, 50}}}});
  transfer(IBV_WR_RDMA_WRITE, layout, 0, there->plain(0, layout.places.size()), 0,
           layout.places.size());
}

TEST_F(N3, SeveralDimensions) {
  // A face of a cube of 16 x 16 x 16 items of 8 bytes, across its rows.
  const Node& cube = here->plain(64, 16 * 16 * 16 * 8);
  expect_layout(here->interleaved({{&cube, 40, 8, 1, {{16 * 8, 16}, {16 * 16 * 8, 16}}}}));
  expect_layout(here->interleaved({{&cube, 0, 4, 1, {{8, 3}, {16 * 8, 5}, {16 * 16 * 8, 4}}},
                                   {&cube, 4, 4, 1, {{8, 5}, {16 * 8, 4}, {16 * 16 * 8, 3}}}}));
}

TEST_F(N3, AnEntryWithoutDimensionsIsOneItem) {
  const Node& a = here->plain(0, 1000);
  expect_layout(here->interleaved({{&a, 10, 30, 1, {}}, {&a, 100, 5, 1, {{10, 7}}}}));
}

TEST_F(N3, RepeatsUniformOrNot) {
  const Node& a = here->plain(0, 4000);
  const Node& b = here->plain(4000, 4000);
  expect_layout(here->interleaved({{&a, 0, 8, 2, {{16, 60}}}, {&b, 0, 8, 2, {{16, 60}}}}));
  expect_layout(here->interleaved({{&a, 0, 8, 3, {{16, 60}}}, {&b, 0, 5, 1, {{48, 20}}}}));
  expect_layout(here->interleaved({{&a, 0, 8, 3, {{16, 60}}}, {&b, 0, 5, 1, {{11, 20}}}}));
}

TEST_F(N3, EntriesThatRunOutArePassedOver) {
  const Node& a = here->plain(0, 4000);
  const Node& b = here->plain(4000, 4000);
  expect_layout(here->interleaved({{&a, 0, 8, 1, {{16, 10}}}, {&b, 0, 8, 1, {{16, 100}}}}));
  expect_layout(here->interleaved({{&a, 0, 8, 3, {{16, 100}}}, {&b, 0, 7, 2, {{16, 11}}}}));
  expect_layout(here->interleaved({{&a, 0, 8, 7, {{16, 3}}}, {&b, 0, 7, 2, {{16, 1}}}}));
}

TEST_F(N4, LayoutsOverLayoutsToTheDeepestLevel) {
  ibv_mr_layout_caps caps{};
  ASSERT_EQ(ibv_query_mr_layout_caps(left->context, &caps), 0);
  const Node* under = &here->plain(100, 30000);
  for (std::uint32_t level = 0; level < caps.max_mr_nesting_level; ++level) {
    const std::uint64_t n = under->places.size();
    under =
        level % 2 == 0
            ? &here->sg({{under, under->sge(n / 2, n - n / 2)}, {under, under->sge(1, n / 2 - 1)}})
            : &here->interleaved({{under, 3, 50, 1, {{101, n / 101 - 1}}},
                                  {under, 60, 30, 2, {{101, n / 101 - 1}}}});
  }
  expect_layout(*under);
  ibv_mr* mr = carrier(left->pd);
  ibv_sge sge = under->sge(0, 1);
  expect_refused(ibv_mr_set_layout_sg(mr, 0, 1, &sge), IBV_MR_SET_LAYOUT_ERR_UNSUPPORTED,
                 EOPNOTSUPP);
  EXPECT_EQ(ibv_dereg_mr(mr), 0);
}

TEST_F(N4, ALayoutCannotContainItself) {
  const Node& a = here->plain(0, 1000);
  const Node& low = here->sg({{&a, a.sge(0, 100)}});
  const Node& high = here->sg({{&low, low.sge(0, 50)}});
  ibv_sge sge = high.sge(0, 10);
  expect_refused(ibv_mr_set_layout_sg(low.mr, 0, 1, &sge), IBV_MR_SET_LAYOUT_ERR_INPUT, EINVAL);
  expect_layout(high);
}

TEST_F(N4, ALayoutBelowCannotGrowPastTheDeepestLevel) {
  ibv_mr_layout_caps caps{};
  ASSERT_EQ(ibv_query_mr_layout_caps(left->context, &caps), 0);
  const Node& a = here->plain(0, 1000);
  const Node& bottom = here->sg({{&a, a.sge(0, 100)}});
  const Node* top = &bottom;
  for (std::uint32_t level = 1; level < caps.max_mr_nesting_level; ++level) {
    top = &here->sg({{top, top->sge(0, 100)}});
  }
  const Node& other = here->sg({{&a, a.sge(500, 100)}});
  ibv_sge sge = other.sge(0, 100);
  expect_refused(ibv_mr_set_layout_sg(bottom.mr, 0, 1, &sge), IBV_MR_SET_LAYOUT_ERR_UNSUPPORTED,
                 EOPNOTSUPP);
  expect_layout(*top);
}

TEST_F(N4, ALayoutFollowsTheOneBelowAndFailsWhileThatIsTooShort) {
  const Node& a = there->plain(0, 1000);
  const Node& low = there->sg({{&a, a.sge(0, 100)}});
  const Node& middle = there->sg({{&low, low.sge(50, 50)}});
  const Node& high = there->sg({{&middle, middle.sge(10, 40)}});
  const Node& mine = here->plain(0, 100);
  const auto set = [&](std::uint64_t offset, std::uint32_t length) {
    ibv_sge sge = a.sge(offset, length);
    ASSERT_EQ(ibv_mr_set_layout_sg(low.mr, 0, 1, &sge), 0);
  };
  set(300, 100);
  const Node moved{high.mr, 0, sg_places({{&a, a.sge(360, 40)}})};
  transfer(IBV_WR_RDMA_WRITE, mine, 0, moved, 0, 40);
  set(300, 99);
  const auto before = there->image();
  EXPECT_EQ(write(mine.sge(0, 1), high.mr->rkey, 0), IBV_WC_REM_ACCESS_ERR);
  EXPECT_EQ(there->image(), before);
  reconnect();
  set(400, 100);
  const Node again{high.mr, 0, sg_places({{&a, a.sge(460, 40)}})};
  transfer(IBV_WR_RDMA_WRITE, mine, 0, again, 0, 40);
}

TEST_F(N4, ALayoutOverAKeyThatWasInvalidatedIsAProtectionError) {
  const Node& a = there->plain(0, 1000);
  const Node& low = there->sg({{&a, a.sge(0, 100)}});
  const Node& high = there->sg({{&low, low.sge(0, 100)}});
  const Node& mine = here->plain(0, 100);
  EXPECT_EQ(write(mine.sge(0, 10), high.mr->rkey, 0), IBV_WC_SUCCESS);
  const ibv_sge two[2] = {a.sge(0, 60), a.sge(200, 60)};
  const std::uint32_t old = low.mr->lkey;
  ASSERT_EQ(ibv_mr_set_layout_sg(low.mr, 0, 2, two), 0);
  EXPECT_NE(low.mr->lkey, old);
  const auto before = there->image();
  EXPECT_EQ(write(mine.sge(0, 10), high.mr->rkey, 0), IBV_WC_REM_ACCESS_ERR);
  EXPECT_EQ(there->image(), before);
  reconnect();
  ibv_sge again = low.sge(0, 100);
  ASSERT_EQ(ibv_mr_set_layout_sg(high.mr, 0, 1, &again), 0);
  EXPECT_EQ(write(mine.sge(0, 10), high.mr->rkey, 0), IBV_WC_SUCCESS);
}

TEST_F(N9, AnEmptyZeroBasedRegionIsTheCarrier) {
  ibv_mr* mr = carrier(left->pd);
  ASSERT_NE(mr, nullptr);
  EXPECT_EQ(mr->length, 0u);
  const Node& target = there->plain(0, 100);
  EXPECT_EQ(write({0, 1, mr->lkey}, target.mr->rkey, target.first), IBV_WC_LOC_PROT_ERR)
      << "nothing is behind it yet";
  reconnect();
  const Node& a = here->plain(0, 100);
  for (std::uint32_t length = 100; length != 0; length /= 3) {
    ibv_sge sge = a.sge(0, length);
    EXPECT_EQ(ibv_mr_set_layout_sg(mr, 0, 1, &sge), 0) << "each overrides the one before";
    EXPECT_EQ(mr->length, length);
    EXPECT_EQ(write({0, length, mr->lkey}, target.mr->rkey, target.first), IBV_WC_SUCCESS);
  }
  EXPECT_EQ(ibv_dereg_mr(mr), 0);
  errno = 0;
  EXPECT_EQ(ibv_reg_mr(left->pd, nullptr, 0, IBV_ACCESS_LOCAL_WRITE), nullptr);
  EXPECT_EQ(errno, EINVAL) << "empty, and not zero-based";
}

TEST_F(Layouts, AtomicsWorkWhereTheirBytesAreAdjacentAndAligned) {
  const Node& a = there->plain(0, 4096, carrier_access);
  const Node& sg = there->sg({{&a, a.sge(800, 16)}, {&a, a.sge(8, 24)}});
  const Node& pages = there->page_list({3, 2}, 0x5000, 8, 8000);
  const Node& nested = there->interleaved({{&sg, 0, 8, 1, {{16, 2}}}, {&a, 64, 8, 1, {{80, 2}}}});
  const Node& mine = here->plain(0, 64);
  const auto add = [&](const Node& node, std::uint64_t at) {
    ibv_send_wr wr = request(IBV_WR_ATOMIC_FETCH_AND_ADD);
    wr.wr.atomic.remote_addr = node.first + at;
    wr.wr.atomic.rkey = node.mr->rkey;
    wr.wr.atomic.compare_add = 5;
    EXPECT_EQ(left->post(wr, mine.sge(0, 8)), 0);
    return left->wait(right.get()).status;
  };
  for (const auto& [node, at] :
       {std::pair{&sg, 8}, std::pair{&sg, 16}, std::pair{&pages, 4080}, std::pair{&pages, 4088},
        std::pair{&nested, 8}, std::pair{&nested, 16}}) {
    const auto before = there->image();
    std::uint64_t value = 0;
    std::memcpy(&value, &before[node->places[static_cast<std::size_t>(at)]], 8);
    ASSERT_EQ(add(*node, static_cast<std::uint64_t>(at)), IBV_WC_SUCCESS) << at;
    const auto after = there->image();
    std::uint64_t now = 0;
    std::memcpy(&now, &after[node->places[static_cast<std::size_t>(at)]], 8);
    EXPECT_EQ(now, value + 5);
    std::uint64_t old = 0;
    const auto own = here->image();
    std::memcpy(&old, own.data(), 8);
    EXPECT_EQ(old, value);
  }
  EXPECT_EQ(add(sg, 12), IBV_WC_REM_INV_REQ_ERR) << "two pieces";
  reconnect();
  EXPECT_EQ(add(sg, 1), IBV_WC_REM_INV_REQ_ERR) << "not aligned";
  reconnect();
  EXPECT_EQ(add(sg, 36), IBV_WC_REM_ACCESS_ERR) << "beyond its end";
}

TEST_F(Layouts, AWindowOpensAPartOfALayout) {
  const Node& a = there->plain(0, 4096, carrier_access);
  const Node& sg = there->sg({{&a, a.sge(800, 16)}, {&a, a.sge(8, 24)}});
  ibv_mw* mw = ibv_alloc_mw(right->pd, IBV_MW_TYPE_1);
  ibv_mw_bind bind{};
  bind.send_flags = IBV_SEND_SIGNALED;
  bind.bind_info = {sg.mr, 10, 20, IBV_ACCESS_REMOTE_WRITE};
  ASSERT_EQ(ibv_bind_mw(right->qp, mw, &bind), 0);
  EXPECT_EQ(right->wait().status, IBV_WC_SUCCESS);
  ibv_sge sge = a.sge(0, 40);
  expect_refused(ibv_mr_set_layout_sg(sg.mr, 0, 1, &sge), IBV_MR_SET_LAYOUT_ERR_INPUT, EBUSY);
  EXPECT_EQ(ibv_dereg_mr(sg.mr), EBUSY);
  auto expected = there->image();
  const Node& mine = here->plain(0, 64);
  for (std::size_t i = 0; i < 18; ++i) expected[sg.places[12 + i]] = here->image()[i];
  EXPECT_EQ(write(mine.sge(0, 18), mw->rkey, 12), IBV_WC_SUCCESS);
  EXPECT_EQ(there->image(), expected);
  EXPECT_EQ(write(mine.sge(0, 19), mw->rkey, 12), IBV_WC_REM_ACCESS_ERR);
  EXPECT_EQ(ibv_dealloc_mw(mw), 0);
}

bool has_twice(const Places& places, std::uint64_t from, std::uint64_t length) {
  std::vector<bool> seen(Memory::host_bytes + Memory::dm_bytes);
  for (std::uint64_t i = from; i < from + length; ++i) {
    if (seen[places[i]]) return true;
    seen[places[i]] = true;
  }
  return false;
}

TEST_F(Layouts, AWindowOverALayoutKeepsTheLayoutsBelowAsTheyAre) {
  const Node& a = there->plain(0, 4096);
  const Node& low = there->sg({{&a, a.sge(800, 100)}});
  const Node& high = there->sg({{&low, low.sge(8, 24)}});
  ibv_mw* mw = ibv_alloc_mw(right->pd, IBV_MW_TYPE_1);
  ibv_mw_bind bind{};
  bind.send_flags = IBV_SEND_SIGNALED;
  bind.bind_info = {high.mr, 0, 20, IBV_ACCESS_REMOTE_WRITE};
  ASSERT_EQ(ibv_bind_mw(right->qp, mw, &bind), 0);
  EXPECT_EQ(right->wait().status, IBV_WC_SUCCESS);
  ibv_sge sge = a.sge(0, 100);
  expect_refused(ibv_mr_set_layout_sg(low.mr, 0, 1, &sge), IBV_MR_SET_LAYOUT_ERR_INPUT, EBUSY);
  EXPECT_EQ(ibv_dealloc_mw(mw), 0);
  EXPECT_EQ(ibv_mr_set_layout_sg(low.mr, 0, 1, &sge), 0);
}

/// Layouts of every kind on both ends of every operation, at any offset and length.
TEST_F(Layouts, RandomTransfersAgreeWithTheOracle) {
  constexpr std::array operations{IBV_WR_RDMA_WRITE, IBV_WR_RDMA_READ, IBV_WR_SEND};
  for (std::uint64_t round = 0; round < 100 && !HasFatalFailure(); ++round) {
    SCOPED_TRACE(seed_note(round));
    random.seed(seed() * 1000003 + round);
    here->fill(random);
    there->fill(random);
    const Node& mine = here->any(random, 1 + static_cast<unsigned>(random() % 3));
    const Node& peers = there->any(random, 1 + static_cast<unsigned>(random() % 3));
    for (int i = 0; i < 6; ++i) {
      const ibv_wr_opcode opcode = operations[random() % operations.size()];
      const std::uint64_t at = random() % mine.places.size();
      const std::uint64_t to = random() % peers.places.size();
      const std::uint64_t most = std::min(mine.places.size() - at, peers.places.size() - to);
      const std::uint64_t length = 1 + random() % most;
      // Of what is written twice, which remains is undefined.
      const Node& written = opcode == IBV_WR_RDMA_READ ? mine : peers;
      const std::uint64_t from = opcode == IBV_WR_RDMA_READ ? at : to;
      if (has_twice(written.places, from, length)) continue;
      transfer(opcode, mine, at, peers, to, length);
    }
    here->drop();
    there->drop();
  }
}

}  // namespace
}  // namespace weft::test
