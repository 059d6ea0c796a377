#include "tools/device_report.hpp"

#include <fmt/format.h>

#include <fstream>

#include "hca/emu/context.hpp"
#include "hca/emu/device_file.hpp"

namespace weft::tools {
namespace {

using hca::emu::DeviceFile;
using hca::emu::DeviceSnapshot;

std::string limits() {
  using hca::emu::WireLimits;
  return fmt::format(
      "limits\n"
      "  active message   {} B short, {} B bcopy, {} B zcopy\n"
      "  put              {} B short, any length from registered memory\n"
      "  get              any length\n"
      "  atomics          32 and 64 bit\n"
      "  layouts          contiguous, strided, interleaved, SG list, nested\n"
      "  contexts         {} at a time\n"
      "  device memory    {} B unless WEFT_DM_SIZE is set, at most {} B, in units of {} B\n",
      WireLimits::max_short, WireLimits::max_bcopy, WireLimits::max_zcopy,
      WireLimits::max_write_short, hca::emu::directory_entries, hca::emu::default_dm_bytes,
      hca::emu::max_dm_bytes, hca::emu::dm_unit);
}

/// What the process was started as; empty for another user's or a dead one.
std::string command_of(std::uint32_t pid) {
  std::ifstream file(fmt::format("/proc/{}/comm", pid));
  std::string name;
  std::getline(file, name);
  return name;
}

std::string memory_in_use(const DeviceSnapshot& snapshot) {
  std::string text;
  for (const auto& use : snapshot.dm_uses) {
    if (!use.alive) continue;
    text += fmt::format("    pid {:<8} {:<16} {:<10} {:>8} B\n", use.pid, command_of(use.pid),
                        to_string(use.purpose), use.bytes);
  }
  if (snapshot.dm_left != 0) {
    text +=
        fmt::format("    {} B of dead processes: taken back by the next opener, or when needed\n",
                    snapshot.dm_left);
  }
  return text;
}

std::string openers(const DeviceSnapshot& snapshot) {
  std::string text = fmt::format("open in {} contexts\n", snapshot.openers.size());
  for (const auto& opener : snapshot.openers) {
    text +=
        fmt::format("  pid {:<8} {:<16} {:<10}{}\n", opener.pid, command_of(opener.pid),
                    opener.purpose, opener.alive ? "" : "  (dead: the next opener takes it back)");
  }
  return text;
}

}  // namespace

std::string device_report(const std::string& device) {
  std::string text = fmt::format("device {} (emulated HCA)\n  file             {}\n", device,
                                 DeviceFile::path_of(device));
  const auto snapshot = DeviceFile::inspect(device);
  if (snapshot) {
    text += fmt::format("  size             {} B\n  device memory    {} of {} B in use\n",
                        snapshot->file_bytes, snapshot->dm_used, snapshot->dm_bytes);
    text += memory_in_use(*snapshot);
  }
  text += limits();
  text += snapshot ? openers(*snapshot) : std::string("nobody has it open\n");
  return text;
}

}  // namespace weft::tools
