// The layout of UCT's private objects is asserted when abi/uct_1_13.h is compiled; here it meets
// the library that is loaded.
#include "ucx-tl/abi/uct_1_13.h"

#include <gtest/gtest.h>

#include <cstring>
#include <string>

#include "ucx-tl/version.hpp"

namespace weft::ucx {
namespace {

TEST(Abi, sizes_that_the_library_states) {
  EXPECT_EQ(abi::uct_base_iface_t_class.size, sizeof(abi::BaseIface));
  EXPECT_EQ(abi::uct_base_ep_t_class.size, sizeof(abi::BaseEp));
  EXPECT_TRUE(abi::matches_loaded_library());
}

/// UCX's own components, read through our declarations, look as they do through its public calls.
TEST(Abi, components_read_as_ucx_shows_them) {
  uct_component_h* components = nullptr;
  unsigned count = 0;
  ASSERT_EQ(uct_query_components(&components, &count), UCS_OK);
  ASSERT_GT(count, 0u);
  for (unsigned i = 0; i < count; ++i) {
    uct_component_attr_t attr{};
    attr.field_mask = UCT_COMPONENT_ATTR_FIELD_NAME | UCT_COMPONENT_ATTR_FIELD_FLAGS;
    ASSERT_EQ(uct_component_query(components[i], &attr), UCS_OK);
    EXPECT_STREQ(components[i]->name, attr.name);
    EXPECT_EQ(components[i]->flags, attr.flags);
    EXPECT_NE(components[i]->md_open, nullptr);
    EXPECT_NE(components[i]->transports.next, nullptr);
  }
  uct_release_component_list(components);
}

/// `self` exists everywhere: its transport, domain and interface through our declarations.
TEST(Abi, an_interface_of_ucx_s_own) {
  uct_component_h* components = nullptr;
  unsigned count = 0;
  ASSERT_EQ(uct_query_components(&components, &count), UCS_OK);
  uct_component* self = nullptr;
  for (unsigned i = 0; i < count; ++i) {
    if (std::strcmp(components[i]->name, "self") == 0) self = components[i];
  }
  uct_release_component_list(components);
  ASSERT_NE(self, nullptr);
  const auto* transport = reinterpret_cast<const abi::Transport*>(
      reinterpret_cast<const char*>(self->transports.next) - offsetof(abi::Transport, list));
  EXPECT_STREQ(transport->name, "self");

  uct_md_config_t* md_config = nullptr;
  ASSERT_EQ(uct_md_config_read(self, nullptr, nullptr, &md_config), UCS_OK);
  uct_md_h md = nullptr;
  ASSERT_EQ(uct_md_open(self, "self", md_config, &md), UCS_OK);
  uct_config_release(md_config);
  EXPECT_EQ(md->component, self);
  uct_md_attr_t attr;
  ASSERT_EQ(md->ops->query(md, &attr), UCS_OK);
  EXPECT_NE(attr.cap.flags & UCT_MD_FLAG_REG, 0u);
  uct_md_close(md);
}

TEST(Version, this_one_is_known) {
  std::string why;
  EXPECT_TRUE(version_is_known(&why)) << why;
  EXPECT_TRUE(require_known_version());
  EXPECT_TRUE(loaded_version().starts_with(known_version() + "."));
}

}  // namespace
}  // namespace weft::ucx
