#include "tools/installation.hpp"

#include <filesystem>
#include <system_error>

namespace weft::tools {

std::string moved(const std::string& built, const std::string& built_prefix,
                  const std::string& prefix) {
  if (prefix.empty() || !built.starts_with(built_prefix + "/")) return built;
  return prefix + built.substr(built_prefix.size());
}

Installation Installation::of_this_program() {
  const std::string built_prefix = WEFT_PREFIX;
  const std::string built_bindir = WEFT_BINDIR;
  std::error_code error;
  const std::string bindir =
      std::filesystem::read_symlink("/proc/self/exe", error).parent_path().string();
  std::string prefix;
  if (built_bindir.starts_with(built_prefix + "/")) {
    const std::string inner = built_bindir.substr(built_prefix.size());
    if (bindir.ends_with(inner)) prefix = bindir.substr(0, bindir.size() - inner.size());
  }
  Installation found;
  found.transport = moved(WEFT_PKGLIBDIR, built_prefix, prefix) + "/libuct_weft.so";
  found.component_folder = moved(WEFT_OMPI_COMPONENT_DIR, built_prefix, prefix);
  found.component = found.component_folder + "/mca_hook_weft.so";
  return found;
}

}  // namespace weft::tools
