// Settings: what a user told Open MPI and UCX by environment and parameter files, and what the
// lists among those settings let through.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace weft::tools {

/// Where a setting was found, with its value.
struct Setting {
  std::string value;
  std::string source;  ///< for people: "OMPI_MCA_pml" or "pml in ~/.openmpi/mca-params.conf"
};

class Settings {
 public:
  using Variables = std::function<std::optional<std::string>(const std::string&)>;

  /// The environment of this process and the user's own parameter file.
  static Settings of_process();
  /// For tests.
  Settings(Variables variables, std::string parameter_file);

  [[nodiscard]] std::optional<Setting> variable(const std::string& name) const;
  /// An MCA parameter as Open MPI would find it, weft's own additions and the system's file left
  /// out: the environment first, then the user's file.
  [[nodiscard]] std::optional<Setting> mca(const std::string& name) const;

 private:
  Variables variables_;
  std::string parameter_file_;
};

/// Whether a component list of Open MPI's ("a,b" or "^a,b"; empty: all) lets `name` through.
bool component_list_allows(std::string_view list, std::string_view name);

/// Whether UCX_TLS and its like ("all", "a,b", "^a,b") let `name` through.
bool ucx_list_allows(std::string_view list, std::string_view name);

/// Whether a folder is on a search path with colons.
bool path_contains(std::string_view path, std::string_view folder);

std::vector<std::string> split(std::string_view text, char separator);

}  // namespace weft::tools
