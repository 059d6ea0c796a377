#include "ompi-component/hook/name_list.hpp"

#include <gtest/gtest.h>

namespace weft::ompi {
namespace {

TEST(NameList, SplitsWithoutEmptyParts) {
  EXPECT_EQ(split("a,,bc,", ','), (std::vector<std::string>{"a", "bc"}));
  EXPECT_TRUE(split("", ',').empty());
}

TEST(NameList, NamesWhatIsWanted) {
  EXPECT_TRUE(list_allows("ob1,ucx", "ucx"));
  EXPECT_FALSE(list_allows("ob1", "ucx"));
  EXPECT_FALSE(list_allows("ucx_other", "ucx"));
}

TEST(NameList, NegatedNamesWhatIsNot) {
  EXPECT_FALSE(list_allows("^ucx", "ucx"));
  EXPECT_FALSE(list_allows("^cm,ucx", "ucx"));
  EXPECT_TRUE(list_allows("^cm", "ucx"));
}

TEST(NameList, AllOfUcxIsEverything) {
  EXPECT_TRUE(ucx_list_allows("all", "weft"));
  EXPECT_TRUE(ucx_list_allows("tcp,all", "weft"));
  EXPECT_TRUE(ucx_list_allows("tcp,self,weft", "weft"));
  EXPECT_FALSE(ucx_list_allows("tcp,self,weft", "weft_cp"));
  EXPECT_FALSE(ucx_list_allows("^weft", "weft"));
  EXPECT_TRUE(ucx_list_allows("^tcp", "weft"));
}

}  // namespace
}  // namespace weft::ompi
