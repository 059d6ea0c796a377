#include "hca/emu/process_id.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>

namespace weft::hca::emu {

namespace {

/// Reads a small file into `buffer` and terminates it; the length, or -1.
long read_small(const char* path, char* buffer, std::size_t size) noexcept {
  const int fd = ::open(path, O_RDONLY | O_CLOEXEC);
  if (fd < 0) return -1;
  const long got = ::read(fd, buffer, size - 1);
  ::close(fd);
  if (got >= 0) buffer[got] = '\0';
  return got;
}

std::uint64_t mix(std::uint64_t hash, std::uint64_t value) noexcept {
  hash ^= value;
  hash *= 0x9e3779b97f4a7c15u;
  return hash ^ (hash >> 29);
}

}  // namespace

std::uint64_t start_time_of(std::uint32_t pid) noexcept {
  char path[32];
  char text[1024];
  std::snprintf(path, sizeof path, "/proc/%u/stat", pid);
  if (read_small(path, text, sizeof text) <= 0) return 0;
  // The second field is the command in parentheses, and may itself hold any character.
  const char* at = std::strrchr(text, ')');
  if (at == nullptr || at[1] == '\0') return 0;
  at += 2;
  if (*at == 'Z' || *at == 'X') return 0;
  for (int field = 3; field < 22; ++field) {
    at = std::strchr(at, ' ');
    if (at == nullptr) return 0;
    ++at;
  }
  return std::strtoull(at, nullptr, 10);
}

ProcessId this_process() {
  const auto pid = static_cast<std::uint32_t>(::getpid());
  return {pid, start_time_of(pid)};
}

bool process_alive(std::uint64_t tag) noexcept {
  const std::uint64_t start = start_time_of(static_cast<std::uint32_t>(tag >> 32));
  return start != 0 && (start & 0xffffffffu) == (tag & 0xffffffffu);
}

std::uint64_t host_id(std::string_view device) {
  std::uint64_t hash = 0x77656674;  // "weft"
  char text[64] = {};
  if (read_small("/proc/sys/kernel/random/boot_id", text, sizeof text) > 0) {
    for (const char* c = text; *c != '\0' && *c != '\n'; ++c) {
      hash = mix(hash, static_cast<unsigned char>(*c));
    }
  }
  struct stat info {};
  if (::stat("/proc/self/ns/pid", &info) == 0) hash = mix(mix(hash, info.st_dev), info.st_ino);
  for (const char c : device) hash = mix(hash, static_cast<unsigned char>(c));
  return hash;
}

}  // namespace weft::hca::emu
