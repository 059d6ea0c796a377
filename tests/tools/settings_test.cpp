#include "tools/settings.hpp"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <map>

namespace weft::tools {
namespace {

Settings::Variables variables(std::map<std::string, std::string> map) {
  return [map = std::move(map)](const std::string& name) -> std::optional<std::string> {
    const auto found = map.find(name);
    if (found == map.end()) return std::nullopt;
    return found->second;
  };
}

TEST(ComponentList, EmptyLetsAllThrough) {
  EXPECT_TRUE(component_list_allows("", "ucx"));
  EXPECT_TRUE(component_list_allows("^", "ucx"));
}

TEST(ComponentList, NamesAndNegation) {
  EXPECT_TRUE(component_list_allows("ob1, ucx", "ucx"));
  EXPECT_FALSE(component_list_allows("ob1", "ucx"));
  EXPECT_FALSE(component_list_allows("^cm,ucx", "ucx"));
  EXPECT_TRUE(component_list_allows("^cm", "ucx"));
  EXPECT_FALSE(component_list_allows("ucx2", "ucx"));
}

TEST(UcxList, AllNamesNegationAndExactNames) {
  EXPECT_TRUE(ucx_list_allows("all", "weft"));
  EXPECT_TRUE(ucx_list_allows("tcp,self,weft", "weft"));
  EXPECT_FALSE(ucx_list_allows("tcp,self,weft", "weft_cp"));
  EXPECT_TRUE(ucx_list_allows("\\weft", "weft"));
  EXPECT_FALSE(ucx_list_allows("shm,self", "weft"));
  EXPECT_FALSE(ucx_list_allows("^weft,tcp", "weft"));
  EXPECT_TRUE(ucx_list_allows("^tcp", "weft"));
  EXPECT_FALSE(ucx_list_allows("", "weft"));
}

TEST(Path, WholeFoldersOnly) {
  EXPECT_TRUE(path_contains("/a:/b c:/d", "/b c"));
  EXPECT_FALSE(path_contains("/a/b:/d", "/a"));
  EXPECT_FALSE(path_contains("", "/a"));
}

class ParameterFile : public ::testing::Test {
 protected:
  ParameterFile() : file_(::testing::TempDir() + "/weft-mca-params.conf") {
    std::ofstream(file_) << "# pml = cm\n  pml = ob1 \nbtl=self\npml = ucx,ob1\n";
  }
  ~ParameterFile() override { std::filesystem::remove(file_); }
  std::string file_;
};

TEST_F(ParameterFile, LastLineHolds) {
  const auto pml = Settings(variables({}), file_).mca("pml");
  ASSERT_TRUE(pml);
  EXPECT_EQ(pml->value, "ucx,ob1");
  EXPECT_EQ(pml->source, "pml in " + file_);
}

TEST_F(ParameterFile, EnvironmentComesFirst) {
  const auto pml = Settings(variables({{"OMPI_MCA_pml", "^ucx"}}), file_).mca("pml");
  ASSERT_TRUE(pml);
  EXPECT_EQ(pml->value, "^ucx");
  EXPECT_EQ(pml->source, "OMPI_MCA_pml");
}

TEST(Settings, NothingSet) {
  const Settings settings(variables({}), "/nonexistent/file");
  EXPECT_FALSE(settings.mca("pml"));
  EXPECT_FALSE(settings.variable("UCX_TLS"));
}

}  // namespace
}  // namespace weft::tools
