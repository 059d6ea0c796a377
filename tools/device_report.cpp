#include "tools/device_report.hpp"

#include <fmt/format.h>

#include "hca/emu/context.hpp"

namespace weft::tools {
namespace {

std::string limits() {
  using hca::emu::WireLimits;
  return fmt::format(
      "limits\n"
      "  active message   {} B short, {} B bcopy\n"
      "  put              {} B short, any length from registered memory\n"
      "  get              any length\n"
      "  atomics          32 and 64 bit\n"
      "  layouts          contiguous, strided, interleaved, SG list, nested; offsets of 63 bits\n",
      WireLimits::max_short, WireLimits::max_bcopy, WireLimits::max_write_short);
}

}  // namespace

std::string device_report(const std::string& device) {
  return fmt::format("device {} (emulated HCA)\n{}", device, limits());
}

}  // namespace weft::tools
