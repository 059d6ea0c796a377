// The device as text for people.
#pragma once

#include <string>

namespace weft::tools {

/// Name, file, limits, openers and device memory, some lines each. Opens nothing for writing.
/// Throws hca::Error when the device's file is there but cannot be read.
std::string device_report(const std::string& device);

}  // namespace weft::tools
