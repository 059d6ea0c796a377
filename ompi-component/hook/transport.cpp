#include "ompi-component/hook/transport.hpp"

#include <dlfcn.h>

#include <cstdlib>
#include <string>

#include "ompi-component/hook/component.h"
#include "ompi-component/hook/log.hpp"

namespace weft::ompi {
namespace {

constexpr const char* file_name = "libuct_weft.so";

bool exists(const std::string& path) {
  if (FILE* file = std::fopen(path.c_str(), "rb")) {
    std::fclose(file);
    return true;
  }
  return false;
}

// LIBDIR/openmpi/mca_hook_weft.so and LIBDIR/weft/libuct_weft.so: a tree that was moved holds.
std::string beside_the_component() {
  Dl_info self{};
  if (dladdr(reinterpret_cast<const void*>(&weft_hook_register), &self) == 0) return {};
  const std::string component = self.dli_fname;
  const std::size_t folder = component.rfind('/');
  if (folder == std::string::npos) return {};
  return component.substr(0, folder) + "/../weft/" + file_name;
}

std::string transport_path() {
  if (const char* path = std::getenv("WEFT_TRANSPORT")) return path;
  if (std::string path = beside_the_component(); exists(path)) return path;
  return std::string(WEFT_PKGLIBDIR "/") + file_name;
}

}  // namespace

const ucx::TransportApi* load_transport() {
  const std::string path = transport_path();
  void* library = dlopen(path.c_str(), RTLD_NOW | RTLD_NODELETE);
  if (library == nullptr) {
    tell(1, "cannot load the transport: {}; MPI runs on without weft", dlerror());
    return nullptr;
  }
  const auto door =
      reinterpret_cast<decltype(&weft_transport_api)>(dlsym(library, "weft_transport_api"));
  const ucx::TransportApi* api = door ? door() : nullptr;
  if (api == nullptr || api->version != ucx::TransportApi::current_version) {
    tell(1, "{} is of another version of weft; MPI runs on without weft", path);
    return nullptr;
  }
  tell(1, "transport {}", path);
  return api;
}

}  // namespace weft::ompi
