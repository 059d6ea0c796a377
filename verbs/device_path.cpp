// UCX looks whether the character device of an InfiniBand device is there before it opens it
// through libibverbs. The emulated device has none: for its path, and no other, /dev/null is looked
// at.
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstring>

#include "verbs/context.hpp"

#define WEFT_EXPORT extern "C" __attribute__((visibility("default")))

namespace {

const char* looked_at(const char* path) noexcept {
  static constexpr char folder[] = "/dev/infiniband/";
  constexpr std::size_t length = sizeof folder - 1;
  const bool ours = path != nullptr && std::strncmp(path, folder, length) == 0 &&
                    std::strcmp(path + length, weft::verbs::device().dev_name) == 0;
  return ours ? "/dev/null" : path;
}

}  // namespace

WEFT_EXPORT int stat(const char* path, struct stat* info) noexcept {
  return ::fstatat(AT_FDCWD, looked_at(path), info, 0);
}

WEFT_EXPORT int stat64(const char* path, struct stat64* info) noexcept {
  return ::fstatat64(AT_FDCWD, looked_at(path), info, 0);
}

WEFT_EXPORT int access(const char* path, int mode) noexcept {
  return ::faccessat(AT_FDCWD, looked_at(path), mode, 0);
}
