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

inline constexpr const char* default_device = "weft0";

/// The device that this environment variable names; the default one when it does not.
std::string device_from(const char* variable);

/// What a piece of device memory is for, shown by weft-info.
enum class DmPurpose : std::uint8_t { user, counter, collective };

const char* to_string(DmPurpose purpose) noexcept;

/// An allocation as its owner tells other processes about it.
struct DmShare {
  std::uint64_t offset = 0;
  std::uint64_t bytes = 0;
  std::uint64_t tag = 0;  ///< of its units: owner and purpose
};

/// One opener, as weft-info shows it.
struct Opener {
  std::uint32_t pid;
  bool alive;
  std::string purpose;
  std::size_t dm_bytes;  ///< of the process, in all its contexts
};

/// The device memory of one process and purpose.
struct DmUse {
  std::uint32_t pid;
  bool alive;
  DmPurpose purpose;
  std::size_t bytes;
};

struct DeviceSnapshot {
  std::string path;
  std::size_t file_bytes;
  std::size_t dm_bytes;
  std::size_t dm_used;  ///< by processes that live
  std::size_t dm_left;  ///< by dead ones: the next opener takes it back
  std::vector<DmUse> dm_uses;
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

  /// An allocation of this process, for others to attach to. Throws hca::Error EINVAL.
  [[nodiscard]] DmShare share(std::size_t offset, std::size_t bytes) const;
  /// Makes another process's allocation this one's as well: should its owner die, it is taken back
  /// only once all that are attached are gone, too. Throws hca::Error: EINVAL (no part of the
  /// device memory), ESTALE (freed).
  void attach(const DmShare& share);
  void detach(const DmShare& share) noexcept;
  /// Frees an allocation that no other process uses any more, whoever its owner is.
  void free_shared(const DmShare& share) noexcept;

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
  [[nodiscard]] bool within(const DmShare& share) const noexcept;
  bool lock_units(int type, std::size_t first, std::size_t count, bool wait) const noexcept;
  /// Those of these units that bear the tag; how many they were.
  std::size_t free_units(std::size_t first, std::size_t count, std::uint64_t tag) noexcept;
  std::size_t free_unattached(std::size_t first, std::size_t count, std::uint64_t tag) noexcept;

  std::string path_;
  int fd_ = -1;
  Shared* shared_ = nullptr;
  std::size_t bytes_ = 0;
  std::uint64_t tag_ = 0;
  std::uint32_t entry_ = directory_entries;
};

}  // namespace weft::hca::emu
