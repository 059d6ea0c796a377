#include "ompi-component/hook/versions.hpp"

#include <dlfcn.h>

#include <array>
#include <cstdio>

#include "ompi-component/hook/log.hpp"
#include "ompi-component/ompi.hpp"

namespace weft::ompi {
namespace {

struct Version {
  unsigned major = 0;
  unsigned minor = 0;
  unsigned release = 0;
};

// Private structures of these series are what redirect.cpp and ucx-tl/ were written against.
constexpr Version known_ompi{4, 1, 0};
constexpr Version known_ucx{1, 13, 0};

bool same_series(const Version& a, const Version& b) {
  return a.major == b.major && a.minor == b.minor;
}

void refuse(const char* library, const Version& found, const Version& known) {
  if (!speaks_for_the_job()) return;
  say(fmt::format("{} {}.{}.{} is not a version weft knows ({}.{}.x); MPI runs on without weft",
                  library, found.major, found.minor, found.release, known.major, known.minor));
}

Version running_ompi() {
  std::array<char, MPI_MAX_LIBRARY_VERSION_STRING> text{};
  int length = 0;
  Version version;
  PMPI_Get_library_version(text.data(), &length);
  if (std::sscanf(text.data(), "Open MPI v%u.%u.%u", &version.major, &version.minor,
                  &version.release) < 2)
    return {};
  return version;
}

using GetUcxVersion = void (*)(unsigned*, unsigned*, unsigned*);

// Null if there is no UCX to ask. The handle is kept: pml/ucx is about to load the library anyway.
GetUcxVersion ucx_version_call() {
  void* library = dlopen("libucp.so.0", RTLD_LAZY | RTLD_LOCAL);
  if (library == nullptr) {
    tell(1, "no UCX here ({}); MPI runs on without weft", dlerror());
    return nullptr;
  }
  return reinterpret_cast<GetUcxVersion>(dlsym(library, "ucp_get_version"));
}

}  // namespace

bool versions_are_known() {
  const Version ompi = running_ompi();
  if (!same_series(ompi, known_ompi)) {
    refuse("Open MPI", ompi, known_ompi);
    return false;
  }
  const GetUcxVersion get_ucx_version = ucx_version_call();
  if (get_ucx_version == nullptr) return false;
  Version ucx;
  get_ucx_version(&ucx.major, &ucx.minor, &ucx.release);
  if (!same_series(ucx, known_ucx)) {
    refuse("UCX", ucx, known_ucx);
    return false;
  }
  return true;
}

}  // namespace weft::ompi
