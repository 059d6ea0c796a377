#include "tools/settings.hpp"

#include <fnmatch.h>

#include <algorithm>
#include <cstdlib>
#include <fstream>
#include <utility>

namespace weft::tools {
namespace {

std::string trimmed(std::string_view text) {
  const auto first = text.find_first_not_of(" \t\r");
  if (first == std::string_view::npos) return {};
  return std::string(text.substr(first, text.find_last_not_of(" \t\r") - first + 1));
}

std::optional<std::string> process_variable(const std::string& name) {
  const char* value = std::getenv(name.c_str());
  if (value == nullptr) return std::nullopt;
  return value;
}

}  // namespace

Settings Settings::of_process() {
  const char* home = std::getenv("HOME");
  return {process_variable,
          home == nullptr ? std::string() : std::string(home) + "/.openmpi/mca-params.conf"};
}

Settings::Settings(Variables variables, std::string parameter_file)
    : variables_(std::move(variables)), parameter_file_(std::move(parameter_file)) {}

std::optional<Setting> Settings::variable(const std::string& name) const {
  auto value = variables_(name);
  if (!value) return std::nullopt;
  return Setting{std::move(*value), name};
}

std::optional<Setting> Settings::mca(const std::string& name) const {
  if (auto found = variable("OMPI_MCA_" + name)) return found;
  std::ifstream file(parameter_file_);
  std::optional<Setting> found;
  for (std::string line; std::getline(file, line);) {
    const auto equals = line.find('=');
    if (equals == std::string::npos || trimmed(line.substr(0, equals)) != name) continue;
    found = Setting{trimmed(line.substr(equals + 1)), name + " in " + parameter_file_};
  }
  return found;
}

std::vector<std::string> split(std::string_view text, char separator) {
  std::vector<std::string> parts;
  while (!text.empty()) {
    const auto end = std::min(text.find(separator), text.size());
    if (auto part = trimmed(text.substr(0, end)); !part.empty()) parts.push_back(std::move(part));
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return parts;
}

bool component_list_allows(std::string_view list, std::string_view name) {
  const bool negated = list.starts_with('^');
  const auto names = split(negated ? list.substr(1) : list, ',');
  if (names.empty()) return true;
  return (std::find(names.begin(), names.end(), name) != names.end()) != negated;
}

bool ucx_list_allows(std::string_view list, std::string_view name) {
  const bool negated = list.starts_with('^');
  const auto names = split(negated ? list.substr(1) : list, ',');
  const std::string wanted(name);
  const bool named = std::any_of(names.begin(), names.end(), [&](const std::string& entry) {
    // A backslash asks UCX for the exact name instead of an alias.
    const std::string pattern = entry.starts_with('\\') ? entry.substr(1) : entry;
    return pattern == "all" || fnmatch(pattern.c_str(), wanted.c_str(), FNM_NOESCAPE) == 0;
  });
  return named != negated;
}

bool path_contains(std::string_view path, std::string_view folder) {
  const auto folders = split(path, ':');
  return std::find(folders.begin(), folders.end(), folder) != folders.end();
}

}  // namespace weft::tools
