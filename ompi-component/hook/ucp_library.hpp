// UCX's calls, for those of Open MPI's components that are met here: Open MPI loads the library for
// its own components, and not for everyone.
#pragma once

#include <dlfcn.h>

namespace weft::ompi {

/// The library of UCP if the process has it; else null.
inline void* loaded_ucp() noexcept {
  return dlopen("libucp.so.0", RTLD_LAZY | RTLD_NOLOAD);
}

/// False when `library` has no such function.
template <typename Function>
bool look_up(void* library, const char* name, Function& function) noexcept {
  function = reinterpret_cast<Function>(dlsym(library, name));
  return function != nullptr;
}

}  // namespace weft::ompi
