// The shared regions of one peer that this process has mapped, by remote key.
#pragma once

#include <uct/api/uct.h>

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>

#include "hca/emu/link.hpp"
#include "hca/emu/shared_region.hpp"

namespace weft::ucx::wire {

class SharedAccess {
 public:
  /// Where the remote memory is in this process, so that the operation can be executed here; null
  /// when it has to be sent: memory that is not shared, what the key does not cover (the owner
  /// answers with the right error), and as long as a fence holds operations back.
  std::byte* at(const hca::emu::Link& link, std::uint64_t addr, std::uint64_t length,
                uct_rkey_t rkey) noexcept {
    if ((rkey >> 32) == 0) [[likely]] {
      return nullptr;
    }
    if (rkey != last_rkey_) [[unlikely]] {
      look_up(link, rkey);
    }
    if (last_ == nullptr || link.is_fenced()) return nullptr;
    return last_->at(addr, length);
  }

 private:
  [[gnu::noinline]] void look_up(const hca::emu::Link& link, uct_rkey_t rkey) noexcept;

  uct_rkey_t last_rkey_ = 0;
  const hca::emu::SharedRegionView* last_ = nullptr;
  std::map<uct_rkey_t, std::unique_ptr<hca::emu::SharedRegionView>> views_;
};

}  // namespace weft::ucx::wire
