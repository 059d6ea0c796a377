// Installation: where weft's files are, found from the place of the running program so that a moved
// tree works.
#pragma once

#include <string>

namespace weft::tools {

struct Installation {
  std::string transport;         ///< libuct_weft.so
  std::string component;         ///< mca_hook_weft.so
  std::string component_folder;  ///< the latter's folder

  static Installation of_this_program();
};

/// `built` moved from below `built_prefix` to below `prefix`; unchanged when it was not below it.
std::string moved(const std::string& built, const std::string& built_prefix,
                  const std::string& prefix);

}  // namespace weft::tools
