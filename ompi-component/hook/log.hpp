// What the component says to people: whole lines on stderr.
#pragma once

#ifndef FMT_HEADER_ONLY
#define FMT_HEADER_ONLY 1
#endif
#include <fmt/format.h>

#include <string_view>
#include <utility>

#include "ompi-component/hook/params.hpp"

namespace weft::ompi {

/// Writes `weft: TEXT` as one line.
void say(std::string_view text);

/// True in one process of a job (and in every process that was started without mpirun).
bool speaks_for_the_job();

/// A datatype's name (MPI_Type_set_name), for people.
inline std::string_view name_or_unnamed(const char* name) {
  return *name != '\0' ? name : "unnamed";
}

/// Says something if hook_weft_verbose is at least `level`.
template <typename... Args>
void tell(int level, fmt::format_string<Args...> format, Args&&... args) {
  if (params.verbose >= level) say(fmt::format(format, std::forward<Args>(args)...));
}

}  // namespace weft::ompi
