// weft-info: the emulated device, its limits, who has it open, and why a message may not be
// offloaded.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <cstdio>
#include <exception>
#include <string>

#include "config.h"
#include "hca/emu/device_file.hpp"
#include "tools/device_report.hpp"
#include "tools/environment_check.hpp"

namespace {

using weft::tools::Finding;

struct Options {
  std::string device = weft::hca::emu::default_device;
  bool only_check = false;
  bool only_device = false;
};

const char* label(Finding::Level level) {
  switch (level) {
    case Finding::Level::good:
      return "ok";
    case Finding::Level::note:
      return "note";
    case Finding::Level::problem:
      return "PROBLEM";
  }
  return "";
}

/// Returns how many problems there are.
int print_check(const std::string& device) {
  fmt::print("why is my message not offloaded?\n");
  int problems = 0;
  for (const Finding& finding :
       weft::tools::check_environment(weft::tools::Settings::of_process(),
                                      weft::tools::Installation::of_this_program(), device)) {
    fmt::print("  {:<8}{}\n", label(finding.level), finding.text);
    if (!finding.advice.empty()) fmt::print("  {:<8}-> {}\n", "", finding.advice);
    problems += finding.level == Finding::Level::problem ? 1 : 0;
  }
  std::puts(problems == 0 ? "  Nothing here keeps messages from being offloaded. Per message: "
                            "--mca hook_weft_stats 1 names the reasons."
                          : "  Solve the problems above, then run weft-info again.");
  return problems;
}

}  // namespace

int main(int argc, char** argv) {
  Options options;
  CLI::App app{
      "Shows weft's emulated device, its limits, who has it open and what its device memory "
      "holds,\n"
      "and checks the environment: why is my message not offloaded?\n"
      "Run it as your programs run: weftrun weft-info"};
  app.name("weft-info");
  app.set_version_flag("--version", "weft-info (weft) " PACKAGE_VERSION);
  app.add_option("--device", options.device, "name of the device")
      ->envname("UCX_WEFT_DEVICE")
      ->capture_default_str();
  auto* check = app.add_flag("--check", options.only_check, "only the check of the environment");
  app.add_flag("--no-check", options.only_device, "only the device")->excludes(check);
  app.footer("Exit status: 0; 1 when the check found a problem; 2 for a wrong command line.");
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    return app.exit(error) == 0 ? 0 : 2;
  }
  try {
    if (!options.only_check) fmt::print("{}\n", weft::tools::device_report(options.device));
    if (!options.only_device && print_check(options.device) > 0) return 1;
  } catch (const std::exception& error) {
    fmt::print(stderr, "weft-info: {}\n", error.what());
    return 1;
  }
  return 0;
}
