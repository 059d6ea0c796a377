#include "tools/environment_check.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>

#include "tools/peer_read.hpp"

namespace weft::tools {
namespace {

Settings with(std::map<std::string, std::string> map) {
  return {[map = std::move(map)](const std::string& name) -> std::optional<std::string> {
            const auto found = map.find(name);
            if (found == map.end()) return std::nullopt;
            return found->second;
          },
          "/nonexistent/file"};
}

long count(const Findings& findings, Finding::Level level) {
  return std::count_if(findings.begin(), findings.end(),
                       [=](const Finding& finding) { return finding.level == level; });
}

long problems(const Findings& findings) {
  return count(findings, Finding::Level::problem);
}

TEST(OpenMpiSettings, NothingSetIsGood) {
  const auto findings = check_open_mpi_settings(with({}));
  ASSERT_EQ(findings.size(), 1u);
  EXPECT_EQ(findings[0].level, Finding::Level::good);
}

TEST(OpenMpiSettings, AnotherPmlIsAProblem) {
  EXPECT_EQ(problems(check_open_mpi_settings(with({{"OMPI_MCA_pml", "ob1"}}))), 1);
  EXPECT_EQ(problems(check_open_mpi_settings(with({{"OMPI_MCA_pml", "^ucx"}}))), 1);
  EXPECT_EQ(problems(check_open_mpi_settings(with({{"OMPI_MCA_pml", "^cm"}}))), 0);
  EXPECT_EQ(problems(check_open_mpi_settings(with({{"OMPI_MCA_pml", "ucx"}}))), 0);
}

TEST(OpenMpiSettings, DisabledHookIsAProblem) {
  EXPECT_EQ(problems(check_open_mpi_settings(with({{"OMPI_MCA_hook_weft_enable", "0"}}))), 1);
  EXPECT_EQ(problems(check_open_mpi_settings(with({{"OMPI_MCA_hook_weft_enable", "1"}}))), 0);
  EXPECT_EQ(problems(check_open_mpi_settings(with({{"OMPI_MCA_hook", "^weft"}}))), 1);
}

TEST(OpenMpiSettings, EveryFindingSaysWhatToDo) {
  const auto findings = check_open_mpi_settings(with({{"OMPI_MCA_pml", "ob1"},
                                                      {"OMPI_MCA_hook_weft_enable", "false"},
                                                      {"OMPI_MCA_opal_common_ucx_tls", "rc"},
                                                      {"OMPI_MCA_hook_weft_min_size", "4096"}}));
  EXPECT_EQ(problems(findings), 2);
  EXPECT_EQ(count(findings, Finding::Level::note), 2);
  for (const auto& finding : findings) EXPECT_FALSE(finding.advice.empty()) << finding.text;
}

TEST(UcxSettings, TransportsAndDevices) {
  EXPECT_EQ(problems(check_ucx_settings(with({}))), 0);
  EXPECT_EQ(problems(check_ucx_settings(with({{"UCX_TLS", "all"}}))), 0);
  EXPECT_EQ(problems(check_ucx_settings(with({{"UCX_TLS", "tcp,self"}}))), 2);
  EXPECT_EQ(problems(check_ucx_settings(with({{"UCX_TLS", "tcp,self,weft"}}))), 1);
  EXPECT_EQ(problems(check_ucx_settings(with({{"UCX_TLS", "self,weft,weft_cp"}}))), 0);
  EXPECT_EQ(problems(check_ucx_settings(with({{"UCX_SHM_DEVICES", "memory"}}))), 1);
}

TEST(Installation, MissingFilesAreNamed) {
  Installation nowhere;
  nowhere.transport = "/nonexistent/libuct_weft.so";
  nowhere.component = "/nonexistent/mca_hook_weft.so";
  const auto findings = check_installation(with({}), nowhere);
  ASSERT_EQ(findings.size(), 2u);
  EXPECT_NE(findings[0].text.find(nowhere.transport), std::string::npos);
  EXPECT_NE(findings[1].text.find(nowhere.component), std::string::npos);
}

TEST(Installation, MovesWithItsPrefix) {
  EXPECT_EQ(moved("/old/lib/weft", "/old", "/new place"), "/new place/lib/weft");
  EXPECT_EQ(moved("/usr/lib/openmpi", "/old", "/new"), "/usr/lib/openmpi");
  EXPECT_EQ(moved("/older/lib", "/old", "/new"), "/older/lib");
  EXPECT_EQ(moved("/old/lib", "/old", ""), "/old/lib");
}

TEST(Machine, PeerReadLeavesNoProcessBehind) {
  EXPECT_NE(try_peer_read(), PeerRead::unknown);
  EXPECT_EQ(check_machine("test-check").size(), 4u);
  EXPECT_EQ(problems(check_machine("test/check")), problems(check_machine("test-check")) + 1);
}

}  // namespace
}  // namespace weft::tools
