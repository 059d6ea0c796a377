// The Open MPI of this process, and the one whose private structures were written down here.
#pragma once

#include <array>
#include <cstdio>

#include "ompi-component/ompi.hpp"

namespace weft::ompi {

struct Version {
  unsigned major = 0;
  unsigned minor = 0;
  unsigned release = 0;
};

constexpr bool same_series(const Version& a, const Version& b) {
  return a.major == b.major && a.minor == b.minor;
}

constexpr Version known_ompi{4, 1, 0};

/// All zero when it does not say.
inline Version running_ompi() {
  std::array<char, MPI_MAX_LIBRARY_VERSION_STRING> text{};
  int length = 0;
  Version version;
  PMPI_Get_library_version(text.data(), &length);
  if (std::sscanf(text.data(), "Open MPI v%u.%u.%u", &version.major, &version.minor,
                  &version.release) < 2)
    return {};
  return version;
}

}  // namespace weft::ompi
