#include "ompi-component/hook/report.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>

namespace weft::ompi {
namespace {

using ::testing::ContainsRegex;
using ::testing::HasSubstr;
using ::testing::Not;

constexpr auto strided = static_cast<std::size_t>(hca::LayoutKind::strided);
constexpr auto sg_list = static_cast<std::size_t>(hca::LayoutKind::sg_list);
constexpr auto bsend = static_cast<std::size_t>(Fallback::bsend);

Report active_process() {
  Report report{};
  report.processes = report.active = 1;
  return report;
}

Report inactive_process(const char* why) {
  Report report{};
  report.processes = 1;
  std::strcpy(report.why_inactive.data(), why);
  return report;
}

TEST(Report, AddsUpProcesses) {
  Report one = active_process();
  one.offloaded[0][strided] = {3, 300};
  Report two = active_process();
  two.offloaded[0][strided] = {1, 11};
  two.offloaded[1][sg_list] = {2, 22};
  two.fallen_back[0][bsend] = {1, 5};
  one += two;
  EXPECT_EQ(one.processes, 2u);
  EXPECT_EQ(one.active, 2u);
  EXPECT_EQ(one.offloaded[0][strided].messages, 4u);
  EXPECT_EQ(one.offloaded[0][strided].bytes, 311u);
  const std::string text = table(one, 2);
  EXPECT_THAT(text, ContainsRegex("  strided +4 +311 +0 +0\n"));
  EXPECT_THAT(text, ContainsRegex("  sg_list +0 +0 +2 +22\n"));
  EXPECT_THAT(text, ContainsRegex("  offloaded +4 +311 +2 +22\n"));
  EXPECT_THAT(text, ContainsRegex("  buffered send +1 +5 +0 +0\n"));
  EXPECT_THAT(text, ContainsRegex("  fell back +1 +5 +0 +0\n"));
  EXPECT_THAT(text, Not(HasSubstr("interleaved")));
  EXPECT_THAT(text, Not(HasSubstr("nothing")));
}

TEST(Report, SaysWhyNothingWasOffloaded) {
  EXPECT_THAT(table(active_process(), 1),
              HasSubstr("nothing was offloaded: no message had a non-contiguous datatype"));
  EXPECT_THAT(table(inactive_process("the sky fell"), 1),
              HasSubstr("nothing was offloaded: the sky fell"));
  Report buffered = active_process();
  buffered.fallen_back[0][bsend] = {1, 5};
  EXPECT_THAT(table(buffered, 1), HasSubstr("datatype fell back"));
}

TEST(Report, SaysWhoIsMissing) {
  Report sum = active_process();
  sum.offloaded[0][strided] = {1, 8};
  sum += inactive_process("no room");
  const std::string text = table(sum, 4);
  EXPECT_THAT(text, HasSubstr("1 of 2 processes could not offload: no room"));
  EXPECT_THAT(text, HasSubstr("2 of 4 processes did not report"));
}

}  // namespace
}  // namespace weft::ompi
