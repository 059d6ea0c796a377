#include "verbs/real_verbs.hpp"

#include <dlfcn.h>

namespace weft::verbs {

void* find_real(const char* name) noexcept {
  // Not RTLD_NEXT: that finds nothing where a program has loaded libibverbs by dlopen itself.
  // Without a version dlsym() takes the newest of a name, which is what the public header is
  // written for.
  static void* const library = ::dlopen("libibverbs.so.1", RTLD_NOW | RTLD_LOCAL);
  return library != nullptr ? ::dlsym(library, name) : nullptr;
}

}  // namespace weft::verbs
