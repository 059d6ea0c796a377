#include "hca/emu/shared_file.hpp"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <random>

namespace weft::hca::emu {

int create_shared_file(const char* name, std::size_t bytes) noexcept {
  const int fd = ::memfd_create(name, MFD_CLOEXEC | MFD_ALLOW_SEALING);
  if (fd < 0) return -1;
  // Pages come with use; the size only bounds them. It is sealed: a peer that made the file shorter
  // would end this process by a bus error.
  if (::fchmod(fd, 0600) == 0 && ::ftruncate(fd, static_cast<off_t>(bytes)) == 0 &&
      ::fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL) == 0) {
    return fd;
  }
  const int code = errno;
  ::close(fd);
  errno = code;
  return -1;
}

int open_shared_file_of_any_size(std::uint32_t pid, std::uint32_t fd, std::size_t* bytes) noexcept {
  char path[64];
  std::snprintf(path, sizeof path, "/proc/%u/fd/%u", pid, fd);
  const int own = ::open(path, O_RDWR | O_CLOEXEC | O_NONBLOCK);
  if (own < 0) {
    errno = errno == EACCES || errno == EPERM ? EACCES : EHOSTUNREACH;
    return -1;
  }
  struct stat info {};
  const int seals = ::fcntl(own, F_GET_SEALS);
  if (seals >= 0 && (seals & F_SEAL_SHRINK) != 0 && ::fstat(own, &info) == 0 &&
      S_ISREG(info.st_mode) && info.st_uid == ::geteuid()) {
    *bytes = static_cast<std::size_t>(info.st_size);
    return own;
  }
  ::close(own);
  errno = EPROTO;
  return -1;
}

int open_shared_file(std::uint32_t pid, std::uint32_t fd, std::size_t bytes) noexcept {
  std::size_t size = 0;
  const int own = open_shared_file_of_any_size(pid, fd, &size);
  if (own < 0 || size == bytes) return own;
  ::close(own);
  errno = EPROTO;
  return -1;
}

std::uint64_t random_id() {
  std::random_device device;
  return (std::uint64_t{device()} << 32) | device();
}

}  // namespace weft::hca::emu
