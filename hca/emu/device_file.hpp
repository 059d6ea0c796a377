// The device file: one per user and device name on a node, in shared memory, mode 0600. It holds
// the directory of open contexts and the device memory. Every opener holds a shared lock on it; one
// that finds nobody else starts it afresh, the last one out removes it.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "hca/emu/address.hpp"

namespace weft::hca::emu {

/// Device memory is handed out in units of this many bytes.
constexpr std::size_t dm_unit = 64;
constexpr std::size_t default_dm_bytes = 256 * 1024;
constexpr std::size_t max_dm_bytes = 512 * 1024;
/// Contexts that may have the device open at a time.
constexpr std::uint32_t directory_entries = 1024;

/// What a piece of device memory is for, shown by weft-info.
enum class DmPurpose : std::uint8_t { user, counter, collective };

/// One opener, as weft-info shows it.
struct Opener {
  std::uint32_t pid;
  bool alive;
  std::string purpose;
  std::size_t dm_bytes;
};

struct DeviceSnapshot {
  std::string path;
  std::size_t file_bytes;
  std::size_t dm_bytes;
  std::size_t dm_used;
  std::vector<Opener> openers;
};

class DeviceFile {
 public:
  /// Opens or creates the device. The size of its memory is set by who creates it: WEFT_DM_SIZE
  /// bytes when that is set. Throws hca::Error: EINVAL (name or size), EACCES (not this user's),
  /// EPROTO (another version), ENOSPC, EUSERS (directory full).
  explicit DeviceFile(const std::string& device);
  ~DeviceFile();
  DeviceFile(const DeviceFile&) = delete;
  DeviceFile& operator=(const DeviceFile&) = delete;

  /// Enters a context in the directory.
  void announce(const Address& address, const std::string& purpose);

  /// The context's place in the directory, from announce() on.
  [[nodiscard]] std::uint32_t entry() const noexcept { return entry_; }
  /// The context at a place in the directory; nothing when there is none.
  [[nodiscard]] std::optional<Address> address_of(std::uint32_t entry) const noexcept;

  [[nodiscard]] std::span<std::byte> memory() const noexcept;
  /// Allocates `bytes` (rounded up to units) of zeroed device memory for this process. What dead
  /// processes left is taken back first when there is not enough.
  /// Throws hca::Error ENOMEM naming size and free bytes.
  std::size_t allocate(std::size_t bytes, DmPurpose purpose);
  /// Frees what allocate() returned. EINVAL when that is not an allocation of this process.
  void free(std::size_t offset, std::size_t bytes);
  [[nodiscard]] std::size_t free_bytes() const noexcept;

  /// What weft-info shows; nothing when no process has the device open. Changes nothing.
  static std::optional<DeviceSnapshot> inspect(const std::string& device);
  static std::string path_of(const std::string& device);

 private:
  struct Shared;
  static std::size_t wanted_dm_bytes();
  bool try_open(std::size_t dm_bytes);
  void initialise(std::size_t dm_bytes);
  void map();
  std::size_t reclaim_dead() noexcept;

  std::string path_;
  int fd_ = -1;
  Shared* shared_ = nullptr;
  std::size_t bytes_ = 0;
  std::uint64_t tag_ = 0;
  std::uint32_t entry_ = directory_entries;
};

}  // namespace weft::hca::emu
