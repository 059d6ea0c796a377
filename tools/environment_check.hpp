// The environment check: why is my message not offloaded?
#pragma once

#include <string>
#include <vector>

#include "tools/installation.hpp"
#include "tools/settings.hpp"

namespace weft::tools {

struct Finding {
  enum class Level {
    good,
    note,    ///< works, but differently or more slowly
    problem  ///< nothing is offloaded
  };
  Level level;
  std::string text;
  std::string advice{};  ///< what to do; empty for good ones
};

using Findings = std::vector<Finding>;

/// All checks in the order in which they matter. `device`: the name of the emulated device.
Findings check_environment(const Settings& settings, const Installation& installation,
                           const std::string& device);

// The parts, for tests.
Findings check_libraries();
Findings check_installation(const Settings& settings, const Installation& installation);
Findings check_open_mpi_settings(const Settings& settings);
Findings check_ucx_settings(const Settings& settings);
/// Opens the device for a moment.
Findings check_machine(const std::string& device);

}  // namespace weft::tools
