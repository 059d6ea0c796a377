// What a region with a layout states and keeps: capabilities (N5), posted layouts (N6), keys (N7),
// errors and the order of deregistration (N8), buffers without regions of their own (N10).
#include "tests/verbs/layout_oracle.hpp"
#include "verbs/limits.hpp"

namespace weft::test {
namespace {

/// Back to the profile of the environment when the test ends.
class ProfileTest : public LayoutTest {
 protected:
  void TearDown() override { verbs::choose_profile(std::getenv("WEFT_HCA_PROFILE")); }
};

class N5 : public ProfileTest {};
class N6 : public LayoutTest {};
class N7 : public ProfileTest {};
class N8 : public LayoutTest {};
class N10 : public ProfileTest {};

int set_sg(ibv_mr* mr, int flags, const std::vector<ibv_sge>& list) {
  return ibv_mr_set_layout_sg(mr, flags, static_cast<int>(list.size()), list.data());
}

int set_interleaved(ibv_mr* mr, int flags, std::vector<Pattern> patterns) {
  std::vector<ibv_mr_layout_interleaved> entries;
  for (Pattern& pattern : patterns) entries.push_back(pattern.entry());
  return ibv_mr_set_layout_interleaved(mr, flags, static_cast<int>(entries.size()), entries.data());
}

void expect_unsupported(int result) {
  EXPECT_EQ(result, IBV_MR_SET_LAYOUT_ERR_UNSUPPORTED);
  EXPECT_EQ(errno, EOPNOTSUPP);
}

ibv_mr_layout_caps caps_of(ibv_context* context) {
  ibv_mr_layout_caps caps{};
  EXPECT_EQ(ibv_query_mr_layout_caps(context, &caps), 0);
  return caps;
}

TEST_F(N5, TheDefaultProfileHasEverything) {
  verbs::choose_profile("default");
  const ibv_mr_layout_caps caps = caps_of(left->context);
  EXPECT_EQ(caps.cap_flags, std::uint64_t{IBV_MR_SET_LAYOUT_SG} | IBV_MR_SET_LAYOUT_INTERLEAVED |
                                IBV_MR_SET_LAYOUT_INTERLEAVED_REPEAT |
                                IBV_MR_SET_LAYOUT_INTERLEAVED_NONUNIFORM_REPEAT |
                                IBV_MR_SET_LAYOUT_INTERLEAVED_NONUNIFORM_DATUM_TOTAL |
                                IBV_MR_SET_LAYOUT_INTERNAL_REGISTRATION);
  EXPECT_GT(caps.max_num_sg, caps.max_inline_num_sg);
  EXPECT_GT(caps.max_num_interleaved, caps.max_inline_num_interleaved);
  EXPECT_GT(caps.max_mr_stride_dimension, 1u);
  EXPECT_GT(caps.max_mr_nesting_level, 1u);
  errno = 0;
  EXPECT_EQ(ibv_query_mr_layout_caps(left->context, nullptr), EINVAL);
  EXPECT_EQ(errno, EINVAL);
}

TEST_F(N5, EachCapabilityCanBeMissing) {
  const Node& a = here->plain(0, 4000);
  ibv_mr* mr = carrier(left->pd);
  const std::vector<ibv_sge> list{a.sge(0, 10)};
  const std::vector<Pattern> plain{{&a, 0, 8, 1, {{16, 12}}}, {&a, 8, 8, 1, {{16, 12}}}};
  std::vector<Pattern> repeat = plain;
  repeat[0].repeat = repeat[1].repeat = 2;
  std::vector<Pattern> nonuniform_repeat = plain;  // both run out in the same round
  nonuniform_repeat[0].repeat = 2;
  nonuniform_repeat[0].dims[0].datum_count = 24;
  std::vector<Pattern> nonuniform_total = plain;
  nonuniform_total[0].dims[0].datum_count = 20;
  std::vector<Pattern> part_of_a_round = plain;
  part_of_a_round[0].repeat = part_of_a_round[1].repeat = 5;
  const std::vector<ibv_sge> raw{{reinterpret_cast<std::uint64_t>(here->host()), 10, 0}};
  struct Case {
    const char* without;
    int (*set)(ibv_mr*, const Case&);
    std::vector<Pattern> patterns;
    std::vector<ibv_sge> sges;
  };
  const auto interleaved = [](ibv_mr* to, const Case& c) {
    return set_interleaved(to, 0, c.patterns);
  };
  const auto sg = [](ibv_mr* to, const Case& c) {
    return set_sg(to, c.sges[0].lkey == 0 ? IBV_MR_SET_LAYOUT_REGISTER_BUFFERS : 0, c.sges);
  };
  const std::vector<Case> cases{
      {"sg", sg, {}, list},
      {"interleaved", interleaved, plain, {}},
      {"interleaved_repeat", interleaved, repeat, {}},
      {"interleaved_nonuniform_repeat", interleaved, nonuniform_repeat, {}},
      {"interleaved_nonuniform_datum_total", interleaved, nonuniform_total, {}},
      {"interleaved_nonuniform_datum_total", interleaved, part_of_a_round, {}},
      {"internal_registration", sg, {}, raw}};
  for (const Case& with : cases) {
    for (const Case& tried : cases) {
      SCOPED_TRACE(std::string(tried.without) + " without " + with.without);
      verbs::choose_profile(("default,-" + std::string(with.without)).c_str());
      const int result = tried.set(mr, tried);
      const std::string missing = with.without;
      const std::string needed = tried.without;
      if (missing == needed || (missing == "sg" && needed == "internal_registration") ||
          (missing == "interleaved" && needed.starts_with(missing)) ||
          (missing == "interleaved_repeat" &&
           std::any_of(tried.patterns.begin(), tried.patterns.end(),
                       [](const Pattern& p) { return p.repeat > 1; }))) {
        expect_unsupported(result);
      } else {
        EXPECT_EQ(result, 0);
      }
    }
  }
  EXPECT_EQ(ibv_dereg_mr(mr), 0);
}

TEST_F(N5, LimitsAreThoseOfTheProfile) {
  verbs::choose_profile(
      "default,max_num_sg=3,max_num_interleaved=2,max_mr_stride_dimension=2,"
      "max_mr_nesting_level=1,max_inline_num_sg=1,max_inline_num_interleaved=1");
  const ibv_mr_layout_caps caps = caps_of(left->context);
  EXPECT_EQ(caps.max_num_sg, 3u);
  EXPECT_EQ(caps.max_inline_num_sg, 1u);
  EXPECT_EQ(caps.max_num_interleaved, 2u);
  EXPECT_EQ(caps.max_inline_num_interleaved, 1u);
  EXPECT_EQ(caps.max_mr_stride_dimension, 2u);
  EXPECT_EQ(caps.max_mr_nesting_level, 1u);
  const Node& a = here->plain(0, 4000);
  const ibv_sge sge = a.sge(0, 10);
  const Pattern one{&a, 0, 1, 1, {{1, 2}, {2, 2}}};
  const Pattern deep{&a, 0, 1, 1, {{1, 2}, {2, 2}, {4, 2}}};
  ibv_mr* mr = carrier(left->pd);
  EXPECT_EQ(set_sg(mr, 0, {sge, sge, sge}), 0);
  expect_unsupported(set_sg(mr, 0, {sge, sge, sge, sge}));
  EXPECT_EQ(set_interleaved(mr, 0, {one, one}), 0);
  expect_unsupported(set_interleaved(mr, 0, {one, one, one}));
  expect_unsupported(set_interleaved(mr, 0, {deep}));
  ibv_mr* over = carrier(left->pd);
  expect_unsupported(set_sg(over, 0, {{0, 1, mr->lkey}}));
  EXPECT_EQ(ibv_dereg_mr(over), 0);
  EXPECT_EQ(ibv_dereg_mr(mr), 0);
}

TEST_F(N5, TheConnectxProfileTakesWhatItsWorkRequestsExpress) {
  verbs::choose_profile("connectx");
  const ibv_mr_layout_caps caps = caps_of(left->context);
  EXPECT_EQ(caps.cap_flags, std::uint64_t{IBV_MR_SET_LAYOUT_SG} | IBV_MR_SET_LAYOUT_INTERLEAVED);
  EXPECT_EQ(caps.max_num_sg, 65535u);
  EXPECT_EQ(caps.max_inline_num_sg, 4u);
  EXPECT_EQ(caps.max_inline_num_interleaved, 3u);
  EXPECT_EQ(caps.max_datum_length, 65535u);
  EXPECT_EQ(caps.max_offset_stride, 65535u);
  const Node& a = here->plain(0, Memory::host_bytes);
  const Node& good = here->interleaved({{&a, 7, 65, 1, {{65535, 3}}}, {&a, 99, 10, 1, {{10, 3}}}});
  for (const Pattern& bad :
       {Pattern{&a, 0, 8, 1, {{65536, 2}}}, Pattern{&a, 0, 65536, 1, {}},
        Pattern{&a, 0, 8, 1, {{7, 3}}}, Pattern{&a, 0, 8, 1, {{8, 3}, {24, 3}}}}) {
    expect_unsupported(set_interleaved(good.mr, 0, {bad}));
  }
  expect_layout(good);
}

TEST_F(N6, APostedLayoutIsValidInOrderOnItsQueue) {
  const Node& a = here->plain(0, 1000);
  const Node& target = there->plain(0, 1000);
  ibv_mr* mr = carrier(left->pd);
  ASSERT_EQ(set_sg(mr, IBV_MR_SET_LAYOUT_WITH_POST_WR, {a.sge(500, 100), a.sge(0, 100)}), 0);
  EXPECT_EQ(mr->length, 200u);
  const Node layout{mr, 0, sg_places({{&a, a.sge(500, 100)}, {&a, a.sge(0, 100)}})};
  // All three are posted before the first completion is looked for.
  ibv_sge into = a.sge(900, 50);
  ibv_send_wr load = request(IBV_WR_RDMA_READ, 1);
  load.wr.rdma = {target.first, target.mr->rkey};
  ASSERT_EQ(left->post(load, into), 0);
  ASSERT_EQ(ibv_post_mr_layout(left->qp, mr, 2, IBV_SEND_SIGNALED | IBV_SEND_FENCE), 0);
  ibv_send_wr store = request(IBV_WR_RDMA_WRITE, 3);
  store.wr.rdma = {target.first + 300, target.mr->rkey};
  ASSERT_EQ(left->post(store, layout.sge(0, 200)), 0);
  constexpr std::array opcodes{IBV_WC_RDMA_READ, IBV_WC_BIND_MR, IBV_WC_RDMA_WRITE};
  for (std::uint64_t id = 1; id <= 3; ++id) {
    const ibv_wc wc = left->wait(right.get());
    EXPECT_EQ(wc.wr_id, id);
    EXPECT_EQ(wc.status, IBV_WC_SUCCESS);
    EXPECT_EQ(wc.opcode, opcodes[id - 1]);
  }
  const auto from = here->image();
  const auto to = there->image();
  for (std::size_t i = 0; i < 200; ++i) EXPECT_EQ(to[300 + i], from[layout.places[i]]);
  EXPECT_EQ(ibv_dereg_mr(mr), 0);
}

TEST_F(N6, UntilItIsExecutedTheOldLayoutIsValidUnderTheOldKeys) {
  const Node& a = there->plain(0, 1000);
  const Node& mine = here->plain(0, 100);
  ibv_mr* mr = carrier(right->pd);
  ASSERT_EQ(set_sg(mr, 0, {a.sge(0, 100)}), 0);
  const std::uint32_t old = mr->rkey;
  ASSERT_EQ(set_sg(mr, IBV_MR_SET_LAYOUT_WITH_POST_WR, {a.sge(500, 20), a.sge(600, 20)}), 0);
  EXPECT_NE(mr->rkey, old);
  const Node before{nullptr, 0, sg_places({{&a, a.sge(0, 100)}})};
  auto expected = there->image();
  for (std::size_t i = 0; i < 100; ++i) expected[before.places[i]] = here->image()[i];
  EXPECT_EQ(write(mine.sge(0, 100), old, 0), IBV_WC_SUCCESS);
  EXPECT_EQ(there->image(), expected);
  EXPECT_EQ(write(mine.sge(0, 1), mr->rkey, 0), IBV_WC_REM_ACCESS_ERR) << "not yet";
  reconnect();
  ASSERT_EQ(ibv_post_mr_layout(right->qp, mr, 7, IBV_SEND_SIGNALED), 0);
  const ibv_wc wc = right->wait(left.get());
  EXPECT_EQ(wc.wr_id, 7u);
  EXPECT_EQ(wc.status, IBV_WC_SUCCESS);
  for (std::size_t i = 0; i < 20; ++i) expected[500 + i] = here->image()[i];
  EXPECT_EQ(write(mine.sge(0, 20), mr->rkey, 0), IBV_WC_SUCCESS);
  EXPECT_EQ(there->image(), expected);
  EXPECT_EQ(write(mine.sge(0, 1), old, 0), IBV_WC_REM_ACCESS_ERR) << "invalid from now on";
  EXPECT_EQ(ibv_dereg_mr(mr), 0);
}

TEST_F(N6, AnUnsignalledOneCompletesSilently) {
  const Node& a = here->plain(0, 1000);
  const Node& target = there->plain(0, 1000);
  ibv_mr* mr = carrier(left->pd);
  ASSERT_EQ(set_sg(mr, IBV_MR_SET_LAYOUT_WITH_POST_WR, {a.sge(5, 5)}), 0);
  ASSERT_EQ(ibv_post_mr_layout(left->qp, mr, 1, 0), 0);
  EXPECT_EQ(write({0, 5, mr->lkey}, target.mr->rkey, target.first), IBV_WC_SUCCESS);
  EXPECT_EQ(ibv_dereg_mr(mr), 0);
}

TEST_F(N6, WhatCannotBePostedIsRefused) {
  const Node& a = here->plain(0, 1000);
  ibv_mr* mr = carrier(left->pd);
  EXPECT_EQ(ibv_post_mr_layout(left->qp, mr, 1, 0), EINVAL) << "no layout was set";
  ASSERT_EQ(set_sg(mr, 0, {a.sge(0, 10)}), 0);
  EXPECT_EQ(ibv_post_mr_layout(left->qp, mr, 1, 0), EINVAL) << "it is valid already";
  ASSERT_EQ(set_sg(mr, IBV_MR_SET_LAYOUT_WITH_POST_WR, {a.sge(0, 20)}), 0);
  EXPECT_EQ(ibv_post_mr_layout(left->qp, mr, 1, IBV_SEND_INLINE), EINVAL);
  EXPECT_EQ(ibv_post_mr_layout(left->qp, mr, 1, 1u << 30), EINVAL);
  EXPECT_EQ(ibv_post_mr_layout(right->qp, mr, 1, 0), EINVAL) << "another PD";
  Side unconnected;
  ASSERT_EQ(set_sg(mr, IBV_MR_SET_LAYOUT_WITH_POST_WR, {a.sge(0, 30)}), 0);
  ibv_qp_init_attr attr{};
  attr.send_cq = left->cq;
  attr.recv_cq = left->cq;
  attr.cap = {4, 4, 1, 1, 0};
  attr.qp_type = IBV_QPT_RC;
  ibv_qp* reset = ibv_create_qp(left->pd, &attr);
  EXPECT_EQ(ibv_post_mr_layout(reset, mr, 1, 0), EINVAL) << "state RESET";
  EXPECT_EQ(ibv_destroy_qp(reset), 0);
  attr.qp_type = IBV_QPT_UD;
  ibv_qp* datagrams = ibv_create_qp(left->pd, &attr);
  ASSERT_EQ(to_init(datagrams), 0);
  ASSERT_EQ(to_rtr(datagrams, 0), 0);
  ASSERT_EQ(to_rts(datagrams), 0);
  EXPECT_EQ(ibv_post_mr_layout(datagrams, mr, 1, 0), EINVAL) << "UD";
  EXPECT_EQ(ibv_destroy_qp(datagrams), 0);
  ASSERT_EQ(ibv_post_mr_layout(left->qp, mr, 9, IBV_SEND_SIGNALED), 0) << "it still waits";
  EXPECT_EQ(left->wait().wr_id, 9u);
  EXPECT_EQ(ibv_post_mr_layout(left->qp, mr, 1, 0), EINVAL) << "posted once";
  EXPECT_EQ(ibv_dereg_mr(mr), 0);
}

TEST_F(N6, ALayoutInAQueueKeepsItsRegions) {
  const Node& a = here->plain(0, 1000);
  const Node& target = there->plain(0, Memory::host_bytes);
  ibv_mr* mr = carrier(left->pd);
  ASSERT_EQ(set_sg(mr, IBV_MR_SET_LAYOUT_WITH_POST_WR, {a.sge(0, 20)}), 0);
  EXPECT_EQ(ibv_dereg_mr(a.mr), EBUSY) << "it waits to be posted";
  // SQD: nothing that is posted is begun.
  ibv_qp_attr attr{};
  attr.qp_state = IBV_QPS_SQD;
  ASSERT_EQ(ibv_modify_qp(left->qp, &attr, IBV_QP_STATE), 0);
  ASSERT_EQ(ibv_post_mr_layout(left->qp, mr, 1, IBV_SEND_SIGNALED), 0);
  EXPECT_EQ(ibv_post_mr_layout(left->qp, mr, 1, 0), EBUSY);
  EXPECT_EQ(set_sg(mr, 0, {a.sge(0, 30)}), IBV_MR_SET_LAYOUT_ERR_INPUT);
  EXPECT_EQ(errno, EBUSY);
  EXPECT_EQ(ibv_dereg_mr(mr), EBUSY);
  EXPECT_EQ(ibv_dereg_mr(a.mr), EBUSY);
  // Flushed: the old state stays, and the layout may be posted again.
  attr.qp_state = IBV_QPS_ERR;
  ASSERT_EQ(ibv_modify_qp(left->qp, &attr, IBV_QP_STATE), 0);
  EXPECT_EQ(left->wait().status, IBV_WC_WR_FLUSH_ERR);
  reconnect();
  EXPECT_EQ(write({0, 1, mr->lkey}, target.mr->rkey, target.first), IBV_WC_LOC_PROT_ERR);
  reconnect();
  ASSERT_EQ(ibv_post_mr_layout(left->qp, mr, 2, IBV_SEND_SIGNALED), 0);
  EXPECT_EQ(left->wait().status, IBV_WC_SUCCESS);
  EXPECT_EQ(write({0, 20, mr->lkey}, target.mr->rkey, target.first), IBV_WC_SUCCESS);
  EXPECT_EQ(ibv_dereg_mr(a.mr), EBUSY) << "the layout refers to it";
  EXPECT_EQ(ibv_dereg_mr(mr), 0);
}

TEST_F(N6, AQueueThatGoesTakesItsLayoutsWithIt) {
  const Node& a = here->plain(0, 1000);
  ibv_mr* mr = carrier(left->pd);
  ASSERT_EQ(set_sg(mr, IBV_MR_SET_LAYOUT_WITH_POST_WR, {a.sge(0, 20)}), 0);
  ibv_qp_attr attr{};
  attr.qp_state = IBV_QPS_SQD;
  ASSERT_EQ(ibv_modify_qp(left->qp, &attr, IBV_QP_STATE), 0);
  ASSERT_EQ(ibv_post_mr_layout(left->qp, mr, 1, IBV_SEND_SIGNALED), 0);
  EXPECT_EQ(ibv_dereg_mr(mr), EBUSY);
  attr.qp_state = IBV_QPS_RESET;
  ASSERT_EQ(ibv_modify_qp(left->qp, &attr, IBV_QP_STATE), 0);
  EXPECT_EQ(ibv_dereg_mr(mr), 0);
}

TEST_F(N6, AnInvalidatedRegionUnderAPostedLayoutFailsTheBind) {
  const Node& a = here->plain(0, 1000);
  const Node& low = here->sg({{&a, a.sge(0, 100)}});
  ibv_mr* mr = carrier(left->pd);
  ASSERT_EQ(set_sg(mr, IBV_MR_SET_LAYOUT_WITH_POST_WR, {low.sge(0, 100)}), 0);
  ASSERT_EQ(set_sg(low.mr, 0, {a.sge(0, 50), a.sge(60, 50)}), 0) << "its keys change";
  ASSERT_EQ(ibv_post_mr_layout(left->qp, mr, 1, 0), 0);
  EXPECT_EQ(left->wait().status, IBV_WC_MW_BIND_ERR);
  EXPECT_EQ(state_of(left->qp), IBV_QPS_ERR);
  EXPECT_EQ(ibv_dereg_mr(mr), 0);
}

TEST_F(N7, KeysStayWhileTheNumberOfEntriesAndRepeatsDoes) {
  const Node& a = here->plain(0, 1000);
  ibv_mr* mr = carrier(left->pd);
  const std::uint32_t first = mr->lkey;
  ASSERT_EQ(set_sg(mr, 0, {a.sge(0, 10), a.sge(20, 10)}), 0);
  EXPECT_EQ(mr->lkey, first) << "an empty carrier has room for it";
  ASSERT_EQ(set_sg(mr, 0, {a.sge(500, 100), a.sge(0, 3)}), 0);
  EXPECT_EQ(mr->lkey, first);
  ASSERT_EQ(set_sg(mr, 0, {a.sge(0, 10)}), 0);
  const std::uint32_t second = mr->lkey;
  EXPECT_NE(second, first) << "another number of entries";
  EXPECT_EQ(mr->rkey, second);
  const Pattern pattern{&a, 0, 4, 2, {{8, 10}}};
  ASSERT_EQ(set_interleaved(mr, 0, {pattern}), 0);
  const std::uint32_t third = mr->lkey;
  EXPECT_NE(third, second) << "another kind";
  const Pattern longer{&a, 100, 10, 2, {{30, 8}, {1, 1}}};
  ASSERT_EQ(set_interleaved(mr, 0, {longer}), 0);
  EXPECT_EQ(mr->lkey, third) << "the same num_repeated";
  const Pattern once{&a, 0, 4, 1, {{8, 10}}};
  ASSERT_EQ(set_interleaved(mr, 0, {once}), 0);
  EXPECT_NE(mr->lkey, third);
  EXPECT_EQ(ibv_dereg_mr(mr), 0);
}

TEST_F(N7, AnOldKeyIsAProtectionErrorOnBothEnds) {
  const Node& a = there->plain(0, 1000);
  const Node& mine = here->plain(0, 100);
  const Node& sg = there->sg({{&a, a.sge(0, 50)}});
  const std::uint32_t old = sg.mr->rkey;
  ASSERT_EQ(set_sg(sg.mr, 0, {a.sge(0, 50), a.sge(100, 50)}), 0);
  const auto before = there->image();
  EXPECT_EQ(write(mine.sge(0, 10), old, 0), IBV_WC_REM_ACCESS_ERR);
  EXPECT_EQ(there->image(), before);
  reconnect();
  EXPECT_EQ(write(mine.sge(0, 10), sg.mr->rkey, 0), IBV_WC_SUCCESS);
  const Node& own = here->sg({{&mine, mine.sge(0, 50)}});
  const std::uint32_t old_lkey = own.mr->lkey;
  ASSERT_EQ(set_sg(own.mr, 0, {mine.sge(0, 5), mine.sge(9, 5)}), 0);
  EXPECT_EQ(write({0, 5, old_lkey}, sg.mr->rkey, 0), IBV_WC_LOC_PROT_ERR);
  reconnect();
  EXPECT_EQ(write({0, 5, own.mr->lkey}, sg.mr->rkey, 0), IBV_WC_SUCCESS);
}

TEST_F(N7, AllVariantsOfAKeyAreGoneThrough) {
  const Node& a = here->plain(0, 1000);
  const Node& target = there->plain(0, 1000);
  ibv_mr* mr = carrier(left->pd);
  for (int i = 0; i < 600; ++i) {
    const std::uint32_t old = mr->lkey;
    std::vector<ibv_sge> list(static_cast<std::size_t>(1 + i % 2), a.sge(0, 10));
    ASSERT_EQ(set_sg(mr, 0, list), 0);
    ASSERT_EQ(mr->lkey == old, i == 0);
    ASSERT_NE(mr->lkey, 0u);
    ASSERT_EQ(write({0, 10, mr->lkey}, target.mr->rkey, target.first), IBV_WC_SUCCESS);
  }
  EXPECT_EQ(ibv_dereg_mr(mr), 0);
}

TEST_F(N7, InvalidationCanBeForbidden) {
  verbs::choose_profile("default,max_inline_num_sg=2,max_inline_num_interleaved=1");
  constexpr int avoid = IBV_MR_SET_LAYOUT_AVOID_INVALIDATION;
  const Node& a = here->plain(0, 1000);
  ibv_mr* mr = carrier(left->pd);
  const std::uint32_t key = mr->lkey;
  const auto refused = [&](int result) {
    EXPECT_EQ(result, IBV_MR_SET_LAYOUT_ERR_WOULD_INVALIDATE);
    EXPECT_EQ(errno, ENOSPC);
    EXPECT_EQ(mr->lkey, key);
    EXPECT_EQ(mr->rkey, key);
  };
  refused(set_sg(mr, avoid, {a.sge(0, 10), a.sge(20, 10), a.sge(40, 10)}));
  EXPECT_EQ(mr->length, 0u);
  EXPECT_EQ(set_sg(mr, avoid, {a.sge(0, 10), a.sge(20, 10)}), 0);
  EXPECT_EQ(set_sg(mr, avoid, {a.sge(40, 10), a.sge(20, 10)}), 0);
  refused(set_sg(mr, avoid, {a.sge(0, 10)}));
  refused(set_sg(mr, avoid | IBV_MR_SET_LAYOUT_WITH_POST_WR, {a.sge(0, 10)}));
  const Pattern pattern{&a, 0, 4, 2, {{8, 10}}};
  refused(set_interleaved(mr, avoid, {pattern, pattern}));
  expect_layout({mr, 0, sg_places({{&a, a.sge(40, 10)}, {&a, a.sge(20, 10)}})});
  EXPECT_EQ(ibv_dereg_mr(mr), 0);
  mr = carrier(left->pd);
  const std::uint32_t fresh = mr->lkey;
  EXPECT_EQ(set_interleaved(mr, 0, {pattern, pattern}), 0);
  EXPECT_NE(mr->lkey, fresh) << "more than an empty carrier has room for";
  EXPECT_EQ(ibv_dereg_mr(mr), 0);
}

TEST_F(N8, AFailureLeavesTheOldLayoutValid) {
  const Node& a = here->plain(0, 1000);
  const Node& sg = here->sg({{&a, a.sge(0, 50)}, {&a, a.sge(100, 50)}});
  const ibv_mr before = *sg.mr;
  EXPECT_EQ(set_sg(sg.mr, 0, {a.sge(0, 50), {a.first + 999, 2, a.mr->lkey}}),
            IBV_MR_SET_LAYOUT_ERR_INPUT);
  EXPECT_EQ(IBV_MR_SET_LAYOUT_ERR_INPUT, -1);
  EXPECT_EQ(IBV_MR_SET_LAYOUT_ERR_WOULD_INVALIDATE, -2);
  EXPECT_EQ(IBV_MR_SET_LAYOUT_ERR_UNSUPPORTED, -3);
  EXPECT_EQ(std::memcmp(&before, sg.mr, sizeof before), 0);
  expect_layout(sg);
}

TEST_F(N8, DeregistrationIsInTheInverseOrder) {
  ibv_mr* plain = ibv_reg_mr(left->pd, here->host(), 1000, all_access);
  ibv_mr* low = carrier(left->pd);
  ibv_mr* high = carrier(left->pd);
  const auto address = reinterpret_cast<std::uint64_t>(here->host());
  ASSERT_EQ(set_sg(low, 0, {{address, 10, plain->lkey}, {address + 50, 10, plain->lkey}}), 0);
  ASSERT_EQ(set_sg(high, 0, {{5, 10, low->lkey}}), 0);
  EXPECT_EQ(ibv_dereg_mr(plain), EBUSY);
  EXPECT_EQ(errno, EBUSY);
  EXPECT_EQ(ibv_dereg_mr(low), EBUSY);
  expect_layout({high, 0, {5, 6, 7, 8, 9, 50, 51, 52, 53, 54}});
  EXPECT_EQ(ibv_dereg_mr(high), 0);
  EXPECT_EQ(ibv_dereg_mr(plain), EBUSY);
  EXPECT_EQ(ibv_dereg_mr(low), 0);
  EXPECT_EQ(ibv_dereg_mr(plain), 0);
}

TEST_F(N8, AnotherLayoutReleasesTheRegionsOfTheOldOne) {
  ibv_mr* one = ibv_reg_mr(left->pd, here->host(), 1000, all_access);
  ibv_mr* two = ibv_reg_mr(left->pd, here->host(), 1000, all_access);
  ibv_mr* mr = carrier(left->pd);
  const auto address = reinterpret_cast<std::uint64_t>(here->host());
  ASSERT_EQ(set_sg(mr, 0, {{address, 10, one->lkey}}), 0);
  ASSERT_EQ(set_sg(mr, 0, {{address, 10, two->lkey}}), 0);
  EXPECT_EQ(ibv_dereg_mr(one), 0);
  EXPECT_EQ(ibv_dereg_mr(two), EBUSY);
  EXPECT_EQ(ibv_dereg_mr(mr), 0);
  EXPECT_EQ(ibv_dereg_mr(two), 0);
}

TEST_F(N8, ACarrierIsDeregisteredAlsoAfterAFailure) {
  ibv_mr* mr = carrier(left->pd);
  EXPECT_EQ(set_sg(mr, 0, {{0, 10, 0x12345}}), IBV_MR_SET_LAYOUT_ERR_INPUT);
  EXPECT_EQ(ibv_dereg_mr(mr), 0);
}

/// What is under way when a region goes ends, with success or a protection error, before the call
/// returns: nothing touches the memory afterwards.
TEST_F(N8, NothingUsesARegionOnceItIsGone) {
  constexpr std::size_t bytes = 8u << 20;
  const auto map = [] {
    return static_cast<std::uint8_t*>(
        ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
  };
  std::uint8_t* const theirs = map();
  ibv_mr* target = ibv_reg_mr(right->pd, theirs, bytes, all_access);
  for (int round = 0; round < 24; ++round) {
    SCOPED_TRACE(round);
    std::uint8_t* const memory = map();
    ibv_mr* under = ibv_reg_mr(left->pd, memory, bytes, all_access);
    ibv_mr* layout = carrier(left->pd);
    const auto address = reinterpret_cast<std::uint64_t>(memory);
    ASSERT_EQ(set_sg(layout, 0,
                     {{address + bytes / 2, bytes / 2, under->lkey}, {address, 4096, under->lkey}}),
              0);
    const ibv_sge sge{0, bytes / 2 + 4096, layout->lkey};
    const bool receives = round % 3 == 2;
    const Side& sender = receives ? *right : *left;
    ibv_send_wr wr = request(round % 3 == 0 ? IBV_WR_RDMA_READ
                             : receives     ? IBV_WR_SEND
                                            : IBV_WR_RDMA_WRITE);
    wr.wr.rdma = {reinterpret_cast<std::uint64_t>(theirs), target->rkey};
    if (receives) {
      ASSERT_EQ(left->post_recv(1, sge), 0);
    }
    ASSERT_EQ(sender.post(wr, receives ? ibv_sge{reinterpret_cast<std::uint64_t>(theirs),
                                                 sge.length, target->lkey}
                                       : sge),
              0);
    for (unsigned polls = static_cast<unsigned>(random() % 20); polls != 0; --polls) {
      ibv_poll_cq(right->cq, 0, nullptr);
      ibv_poll_cq(left->cq, 0, nullptr);
    }
    ASSERT_EQ(ibv_dereg_mr(layout), 0);
    ASSERT_EQ(ibv_dereg_mr(under), 0);
    ASSERT_EQ(::munmap(memory, bytes), 0);
    const ibv_wc wc = left->wait(right.get());
    EXPECT_TRUE(wc.status == IBV_WC_SUCCESS || wc.status == IBV_WC_LOC_PROT_ERR)
        << ibv_wc_status_str(wc.status);
    if (receives) {
      EXPECT_EQ(right->wait(left.get()).status == IBV_WC_SUCCESS, wc.status == IBV_WC_SUCCESS);
    }
    reconnect();
  }
  EXPECT_EQ(ibv_dereg_mr(target), 0);
  ::munmap(theirs, bytes);
}

TEST_F(N8, EveryFailureSaysWhichValueAndLimit) {
  // WEFT_LOG is read once in a process: a child, which prints and ends.
  ::testing::FLAGS_gtest_death_test_style = "threadsafe";
  EXPECT_EXIT(
      {
        ::setenv("WEFT_LOG", "info", 1);
        ibv_context* context = open_device();
        ibv_mr* mr = carrier(ibv_alloc_pd(context));
        ibv_sge sge{};
        ibv_mr_set_layout_sg(mr, 0, 300000, &sge);
        ::_exit(0);
      },
      ::testing::ExitedWithCode(0),
      "weft: ibv_mr_set_layout_sg: num_sge 300000, limit 262144 .*\n$");
}

TEST_F(N10, BuffersNeedNoRegionsOfTheirOwn) {
  const auto host = reinterpret_cast<std::uint64_t>(here->host());
  ibv_mr* mr = carrier(left->pd);
  ASSERT_EQ(set_sg(mr, IBV_MR_SET_LAYOUT_REGISTER_BUFFERS,
                   {{host + 5000, 300, 0}, {host + 7, 100, 0xdeadbeef}}),
            0);
  Places places;
  for (std::uint32_t i = 0; i < 300; ++i) places.push_back(5000 + i);
  for (std::uint32_t i = 0; i < 100; ++i) places.push_back(7 + i);
  expect_layout({mr, 0, places});
  EXPECT_EQ(ibv_dereg_mr(mr), 0);
}

TEST_F(N10, InterleavedBuffersAsWell) {
  const auto host = reinterpret_cast<std::uint64_t>(here->host());
  ibv_mr* mr = carrier(left->pd);
  ibv_mr_layout_interleaved_dimensions dims[2] = {{20, 30}, {1000, 4}};
  const ibv_mr_layout_interleaved list[2] = {{{host + 3, 8, 0}, 1, 2, dims},
                                             {{host + 40000, 5, 0}, 1, 2, dims}};
  ASSERT_EQ(ibv_mr_set_layout_interleaved(mr, IBV_MR_SET_LAYOUT_REGISTER_BUFFERS, 2, list), 0);
  Places places;
  for (std::uint32_t j = 0; j < 4; ++j) {
    for (std::uint32_t i = 0; i < 30; ++i) {
      for (std::uint32_t b = 0; b < 8; ++b) places.push_back(3 + i * 20 + j * 1000 + b);
      for (std::uint32_t b = 0; b < 5; ++b) places.push_back(40000 + i * 20 + j * 1000 + b);
    }
  }
  expect_layout({mr, 0, places});
  EXPECT_EQ(ibv_dereg_mr(mr), 0);
}

TEST_F(N10, TheAccessIsTheCarriers) {
  const auto host = reinterpret_cast<std::uint64_t>(there->host());
  ibv_mr* mr = carrier(right->pd, IBV_ACCESS_ZERO_BASED | IBV_ACCESS_REMOTE_READ);
  ASSERT_EQ(set_sg(mr, IBV_MR_SET_LAYOUT_REGISTER_BUFFERS, {{host, 300, 0}}), 0);
  const Node& mine = here->plain(0, 100);
  EXPECT_EQ(read(mine.sge(0, 10), mr->rkey, 0), IBV_WC_SUCCESS);
  EXPECT_EQ(write(mine.sge(0, 10), mr->rkey, 0), IBV_WC_REM_ACCESS_ERR);
  EXPECT_EQ(ibv_dereg_mr(mr), 0);
}

TEST_F(N10, MemoryThatIsNotThereIsRefused) {
  auto* mapped = static_cast<std::uint8_t*>(
      ::mmap(nullptr, 8192, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
  ASSERT_EQ(::munmap(mapped + 4096, 4096), 0);
  const auto address = reinterpret_cast<std::uint64_t>(mapped);
  constexpr int flags = IBV_MR_SET_LAYOUT_REGISTER_BUFFERS;
  ibv_mr* mr = carrier(left->pd);
  ibv_mr* reader = carrier(left->pd, IBV_ACCESS_ZERO_BASED | IBV_ACCESS_REMOTE_READ);
  const auto refused = [](int result, int error) {
    EXPECT_EQ(result, IBV_MR_SET_LAYOUT_ERR_INPUT);
    EXPECT_EQ(errno, error);
  };
  refused(set_sg(reader, flags, {{address + 4000, 100, 0}}), EFAULT);
  refused(set_sg(mr, flags, {{address, 100, 0}}), EFAULT);
  refused(set_sg(mr, flags, {{~std::uint64_t{0} - 50, 100, 0}}), EINVAL);
  refused(set_sg(mr, flags, {{~std::uint64_t{0} - 8191, 100, 0}}), EFAULT);
  ibv_mr_layout_interleaved_dimensions dim{100, 60};
  const ibv_mr_layout_interleaved entry{{address, 8, 0}, 1, 1, &dim};
  refused(ibv_mr_set_layout_interleaved(reader, flags, 1, &entry), EFAULT);
  EXPECT_EQ(set_sg(reader, flags, {{address, 4096, 0}}), 0);
  EXPECT_EQ(mr->length, 0u);
  EXPECT_EQ(ibv_dereg_mr(mr), 0);
  EXPECT_EQ(ibv_dereg_mr(reader), 0);
  ::munmap(mapped, 4096);
}

TEST_F(N8, NullObjectsAreRefused) {
  const auto expect_einval = [](bool refused) {
    EXPECT_TRUE(refused);
    EXPECT_EQ(errno, EINVAL);
    errno = 0;
  };
  ibv_mr_layout_caps caps;
  std::uint64_t bitmap = 1;
  expect_einval(ibv_query_mr_layout_caps(nullptr, &caps) == EINVAL);
  expect_einval(ibv_mr_set_layout_sg(nullptr, 0, 0, nullptr) == IBV_MR_SET_LAYOUT_ERR_INPUT);
  expect_einval(ibv_mr_set_layout_interleaved(nullptr, 0, 0, nullptr) ==
                IBV_MR_SET_LAYOUT_ERR_INPUT);
  expect_einval(ibv_post_mr_layout(nullptr, nullptr, 0, 0) == EINVAL);
  expect_einval(ibv_reg_mr_sg(nullptr, nullptr, 0, 0, 0, 0, 0) == nullptr);
  expect_einval(ibv_reg_mr_bitmap(nullptr, nullptr, 0, &bitmap, 0, 0, 0, 0) == nullptr);
  expect_einval(ibv_reg_mr_bitmap(left->pd, nullptr, 1, &bitmap, 0, 0, 10, 0) == nullptr);
  expect_einval(ibv_memcpy_dm(nullptr, nullptr) == EINVAL);
  expect_einval(ibv_reg_mr_ex(nullptr, nullptr) == nullptr);
}

}  // namespace
}  // namespace weft::test
