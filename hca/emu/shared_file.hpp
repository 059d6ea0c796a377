// Shared memory without a name: a memfd that its owner's peers open through /proc.
#pragma once

#include <cstddef>
#include <cstdint>

namespace weft::hca::emu {

/// A memfd of mode 0600 and this size, all zero, whose size nobody can change. Returns the
/// descriptor, or -1 with errno set.
int create_shared_file(const char* name, std::size_t bytes) noexcept;

/// Opens descriptor `fd` of process `pid` after checking that it is a plain file of this user's and
/// this size, which cannot shrink. Returns a descriptor of one's own, or -1 and errno: EACCES,
/// EHOSTUNREACH (no such process or descriptor), EPROTO (another kind of file).
int open_shared_file(std::uint32_t pid, std::uint32_t fd, std::size_t bytes) noexcept;

/// The same for a file of any size, which is put into `bytes`.
int open_shared_file_of_any_size(std::uint32_t pid, std::uint32_t fd, std::size_t* bytes) noexcept;

/// Tells one file from another one that had its descriptor before.
std::uint64_t random_id();

}  // namespace weft::hca::emu
