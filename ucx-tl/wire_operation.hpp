// An operation of the wire as UCT knows it, and the pool it comes from.
#pragma once

#include <uct/api/uct.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "hca/emu/operation.hpp"

namespace weft::ucx::wire {

struct Ep;

struct WireOperation : hca::emu::Operation {
  Ep* ep = nullptr;
  std::uint64_t span = 0;            ///< of the endpoint's FlushTracker
  uct_completion_t* comp = nullptr;  ///< null: nobody asks
  std::byte* staging = nullptr;      ///< put_bcopy, get_bcopy
  union {
    void* result;                  ///< fetching atomics
    uct_unpack_callback_t unpack;  ///< get_bcopy
  };
  void* unpack_arg = nullptr;
  hca::emu::RemoteMemory remote{};  ///< put_bcopy, should it have to wait for room
  WireOperation* next_free = nullptr;
};

/// Of one interface, whose users take turns: no locks.
class OperationPool {
 public:
  WireOperation* acquire() {
    if (free_ == nullptr) [[unlikely]] {
      grow();
    }
    WireOperation* op = free_;
    free_ = op->next_free;
    return op;
  }
  void put_back(WireOperation* op) noexcept {
    op->next_free = free_;
    free_ = op;
  }

  static constexpr std::size_t staging_bytes = 16 * 1024;
  /// A buffer for put_bcopy and get_bcopy; null when too many are under way.
  std::byte* acquire_staging();
  void put_back_staging(std::byte* buffer) { staging_.push_back(buffer); }

 private:
  static constexpr std::size_t ops_per_chunk = 128;
  static constexpr std::size_t max_staging = 256;
  void grow();

  WireOperation* free_ = nullptr;
  std::vector<std::unique_ptr<WireOperation[]>> chunks_;
  std::vector<std::byte*> staging_;
  std::vector<std::unique_ptr<std::byte[]>> all_staging_;
};

}  // namespace weft::ucx::wire
