#include "ompi-component/hook/versions.hpp"

#include <dlfcn.h>

#include "ompi-component/hook/log.hpp"
#include "ompi-component/ompi_version.hpp"

namespace weft::ompi {
namespace {

// Private structures of this series are what ucx-tl/ was written against.
constexpr Version known_ucx{1, 13, 0};

void refuse(const char* library, const Version& found, const Version& known) {
  if (!speaks_for_the_job()) return;
  say(fmt::format("{} {}.{}.{} is not a version weft knows ({}.{}.x); MPI runs on without weft",
                  library, found.major, found.minor, found.release, known.major, known.minor));
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
