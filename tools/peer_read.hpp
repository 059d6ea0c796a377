// Tries what a rank does to another one's memory.
#pragma once

namespace weft::tools {

enum class PeerRead { allowed, forbidden, unknown };

/// Starts two processes that are no ancestors of each other, as ranks are, and has one read a byte
/// of the other's memory with process_vm_readv. Takes a few milliseconds.
PeerRead try_peer_read() noexcept;

}  // namespace weft::tools
