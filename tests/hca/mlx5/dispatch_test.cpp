// What the verbs front does with layouts on a device that is not its own. The backend is played by
// the test, and so are the device and its objects: nobody looks into them.
#include <gtest/gtest.h>

#include <cerrno>
#include <string>
#include <vector>

#include "hca/mlx5/backend.h"
#include "verbs/infiniband/weft_verbs.h"

namespace weft::test {
namespace {

bool is_card = true;
std::vector<ibv_sge> sg_list;
std::vector<weft_mlx5_interleaved> interleaved;
weft_mlx5_dimension first_dimension;
ibv_mr carrier;
bool registered = false;
unsigned registered_access = 0;
int answer = 0;

int say(char* why, std::size_t size) {
  std::snprintf(why, size, "the card says so");
  return answer;
}

const weft_mlx5_table table = {
    WEFT_MLX5_BACKEND_ABI,
    [](const ibv_context*) { return is_card ? 1 : 0; },
    [](ibv_context*, weft_mlx5_caps* caps, char* why, std::size_t size) {
      *caps = {32, 31, 1, 1, 65535, 65534};
      return say(why, size);
    },
    [](ibv_pd* pd, unsigned access, ibv_mr** mr, char* why, std::size_t size) {
      carrier = {};
      carrier.context = pd->context;
      registered = true;
      registered_access = access;
      *mr = &carrier;
      return say(why, size);
    },
    [](const ibv_mr* mr) { return registered && mr == &carrier ? 1 : 0; },
    [](ibv_mr*) {
      registered = false;
      return 0;
    },
    [](ibv_mr*, std::uint32_t num_sge, const ibv_sge* list, char* why, std::size_t size) {
      sg_list.assign(list, list + num_sge);
      return say(why, size);
    },
    [](ibv_mr*, std::uint32_t count, const weft_mlx5_interleaved* list, char* why,
       std::size_t size) {
      interleaved.assign(list, list + count);
      first_dimension = *list->dims;
      return say(why, size);
    }};

class CardLayouts : public ::testing::Test {
 protected:
  void SetUp() override {
    is_card = true;
    answer = 0;
    sg_list.clear();
    interleaved.clear();
    context.device = &device;
    pd.context = &context;
    mr = ibv_reg_mr(&pd, nullptr, 0, IBV_ACCESS_ZERO_BASED | IBV_ACCESS_LOCAL_WRITE);
    ASSERT_EQ(mr, &carrier);
  }
  void TearDown() override {
    EXPECT_EQ(ibv_dereg_mr(mr), 0);
    EXPECT_FALSE(registered);
  }
  ibv_device device{};
  ibv_context context{};
  ibv_pd pd{};
  ibv_mr* mr = nullptr;
};

TEST_F(CardLayouts, GoToTheBackend) {
  EXPECT_EQ(registered_access, unsigned{IBV_ACCESS_ZERO_BASED} | IBV_ACCESS_LOCAL_WRITE);
  const ibv_sge list[] = {{1, 2, 3}, {4, 5, 6}};
  EXPECT_EQ(ibv_mr_set_layout_sg(mr, IBV_MR_SET_LAYOUT_AVOID_INVALIDATION, 2, list), 0);
  ASSERT_EQ(sg_list.size(), 2u);
  EXPECT_EQ(sg_list[1].addr, 4u);
  ibv_mr_layout_interleaved_dimensions dim{16, 50};
  const ibv_mr_layout_interleaved entries[] = {{{8, 8, 3}, 2, 1, &dim}, {{0, 8, 3}, 1, 1, &dim}};
  EXPECT_EQ(ibv_mr_set_layout_interleaved(mr, 0, 2, entries), 0);
  ASSERT_EQ(interleaved.size(), 2u);
  EXPECT_EQ(interleaved[0].num_repeated, 2u);
  EXPECT_EQ(interleaved[0].num_dimensions, 1u);
  EXPECT_EQ(first_dimension.offset_stride, 16u);
  EXPECT_EQ(first_dimension.datum_count, 50u);
}

TEST_F(CardLayouts, Capabilities) {
  ibv_mr_layout_caps caps{};
  ASSERT_EQ(ibv_query_mr_layout_caps(&context, &caps), 0);
  EXPECT_EQ(caps.max_num_sg, 32u);
  EXPECT_EQ(caps.max_num_interleaved, 31u);
  EXPECT_EQ(caps.max_datum_length, 65535u);
  EXPECT_EQ(caps.max_offset_stride, 65534u);
  EXPECT_EQ(caps.cap_flags & (IBV_MR_SET_LAYOUT_INTERLEAVED_NONUNIFORM_DATUM_TOTAL |
                              IBV_MR_SET_LAYOUT_INTERNAL_REGISTRATION),
            0u);
  EXPECT_EQ(ibv_query_mr_layout_caps(&context, nullptr), EINVAL);
}

TEST_F(CardLayouts, ErrorsAreThoseOfTheHeader) {
  const ibv_sge list[] = {{1, 2, 3}};
  const auto refused = [&](int result, int expected, int code) {
    EXPECT_EQ(result, expected);
    EXPECT_EQ(errno, code);
  };
  refused(ibv_mr_set_layout_sg(mr, 1 << 10, 1, list), IBV_MR_SET_LAYOUT_ERR_INPUT, EINVAL);
  refused(ibv_mr_set_layout_sg(mr, 0, 0, list), IBV_MR_SET_LAYOUT_ERR_INPUT, EINVAL);
  refused(ibv_mr_set_layout_sg(mr, 0, 1, nullptr), IBV_MR_SET_LAYOUT_ERR_INPUT, EINVAL);
  refused(ibv_mr_set_layout_sg(mr, IBV_MR_SET_LAYOUT_WITH_POST_WR, 1, list),
          IBV_MR_SET_LAYOUT_ERR_UNSUPPORTED, EOPNOTSUPP);
  const ibv_mr_layout_interleaved never[] = {{{8, 8, 3}, 0, 0, nullptr}};
  refused(ibv_mr_set_layout_interleaved(mr, 0, 1, never), IBV_MR_SET_LAYOUT_ERR_INPUT, EINVAL);
  const ibv_mr_layout_interleaved no_dims[] = {{{8, 8, 3}, 1, 1, nullptr}};
  refused(ibv_mr_set_layout_interleaved(mr, 0, 1, no_dims), IBV_MR_SET_LAYOUT_ERR_INPUT, EINVAL);
  EXPECT_TRUE(sg_list.empty() && interleaved.empty());
  answer = EOPNOTSUPP;
  refused(ibv_mr_set_layout_sg(mr, 0, 1, list), IBV_MR_SET_LAYOUT_ERR_UNSUPPORTED, EOPNOTSUPP);
  answer = EIO;
  refused(ibv_mr_set_layout_sg(mr, 0, 1, list), IBV_MR_SET_LAYOUT_ERR_INPUT, EIO);
  refused(ibv_rereg_mr(mr, IBV_REREG_MR_CHANGE_ACCESS, nullptr, nullptr, 0, 0),
          IBV_REREG_MR_ERR_INPUT, EINVAL);
}

TEST_F(CardLayouts, ADeviceOfAnotherKindHasNone) {
  is_card = false;
  const ibv_sge list[] = {{1, 2, 3}};
  EXPECT_EQ(ibv_mr_set_layout_sg(mr, 0, 1, list), IBV_MR_SET_LAYOUT_ERR_UNSUPPORTED);
  EXPECT_EQ(errno, EOPNOTSUPP);
  ibv_mr_layout_caps caps{};
  EXPECT_EQ(ibv_query_mr_layout_caps(&context, &caps), EOPNOTSUPP);
  EXPECT_TRUE(sg_list.empty());
}

}  // namespace
}  // namespace weft::test

// The front finds it in the program before it looks for the library.
extern "C" __attribute__((visibility("default"))) const weft_mlx5_table* weft_mlx5_backend() {
  return &weft::test::table;
}
