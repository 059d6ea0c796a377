#include "ucx-tl/version.hpp"

#include <dlfcn.h>

#include <atomic>
#include <cstdio>

#include "ucx-tl/abi/uct_1_13.h"

namespace weft::ucx {
namespace {

using GetVersion = void (*)(unsigned*, unsigned*, unsigned*);

GetVersion find_in(const char* library, int flags) {
  // The handle is kept: closing it could unload the library whose function is returned.
  void* handle = dlopen(library, flags);
  return handle == nullptr ? nullptr
                           : reinterpret_cast<GetVersion>(dlsym(handle, "ucp_get_version"));
}

GetVersion find_get_version() {
  // The libucp of the same installation as the libuct that is loaded; another one on the library
  // path would state another version.
  Dl_info where{};
  if (dladdr(reinterpret_cast<void*>(&abi::uct_component_register), &where) != 0 &&
      where.dli_fname != nullptr) {
    const std::string uct = where.dli_fname;
    const std::size_t slash = uct.rfind('/');
    if (slash != std::string::npos) {
      const std::string ucp = uct.substr(0, slash + 1) + "libucp.so.0";
      if (GetVersion found = find_in(ucp.c_str(), RTLD_LAZY | RTLD_LOCAL)) return found;
    }
  }
  return find_in("libucp.so.0", RTLD_LAZY | RTLD_LOCAL | RTLD_NOLOAD);
}

}  // namespace

std::string known_version() {
  return std::to_string(abi::uct_major) + "." + std::to_string(abi::uct_minor);
}

std::string loaded_version() {
  const GetVersion get_version = find_get_version();
  if (get_version == nullptr) return {};
  unsigned major = 0;
  unsigned minor = 0;
  unsigned release = 0;
  get_version(&major, &minor, &release);
  return std::to_string(major) + "." + std::to_string(minor) + "." + std::to_string(release);
}

bool version_is_known(std::string* why) {
  const std::string loaded = loaded_version();
  const std::string known = known_version();
  const bool same = loaded.starts_with(known + ".");
  if (same && abi::matches_loaded_library()) return true;
  if (why != nullptr) {
    *why = "weft: the UCX loaded is " + (loaded.empty() ? "of unknown version" : loaded) +
           ", weft knows " + known +
           (same ? " but with another layout of its objects (built with statistics?)" : "") +
           "; going on without weft";
  }
  return false;
}

bool require_known_version() {
  std::string why;
  if (version_is_known(&why)) return true;
  static std::atomic<bool> said{false};
  if (!said.exchange(true)) std::fprintf(stderr, "%s\n", why.c_str());
  return false;
}

}  // namespace weft::ucx
