// Lists of names as MCA and UCX write them: `a,b` for what is wanted, `^a,b` for what is not.
#pragma once

#include <algorithm>
#include <string>
#include <string_view>
#include <vector>

namespace weft::ompi {

/// The parts of a text between separators, without empty ones.
inline std::vector<std::string> split(std::string_view text, char separator) {
  std::vector<std::string> parts;
  while (!text.empty()) {
    const std::size_t end = std::min(text.find(separator), text.size());
    if (end > 0) parts.emplace_back(text.substr(0, end));
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return parts;
}

inline bool list_allows(std::string_view list, std::string_view name) {
  const bool negated = list.starts_with('^');
  if (negated) list.remove_prefix(1);
  const std::vector<std::string> names = split(list, ',');
  const bool named = std::find(names.begin(), names.end(), name) != names.end();
  return named != negated;
}

/// UCX_TLS: like any list, but `all` is everything.
inline bool ucx_list_allows(std::string_view list, std::string_view name) {
  return list_allows(list, name) || (!list.starts_with('^') && list_allows(list, "all"));
}

}  // namespace weft::ompi
