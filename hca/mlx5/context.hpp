// One open of a device.
#pragma once

#include <infiniband/verbs.h>

#include "hca/mlx5/handle.hpp"

namespace weft::hca::mlx5 {

/// Whether the card can have layouts: it is driven by libmlx5.
bool has_layouts(const ibv_context* context) noexcept;

class Context {
 public:
  /// Opens the device so that layouts can be had where it has them. Any device of libibverbs will
  /// do for everything else. Throws hca::Error: ENODEV (no such device), or errno of the open.
  explicit Context(const char* device);

  [[nodiscard]] ibv_context* get() const noexcept { return context_.get(); }
  /// The first port that is up, from 1. Throws hca::Error ENETDOWN.
  [[nodiscard]] std::uint8_t active_port() const;

 private:
  Handle<ibv_context, ibv_close_device> context_;
};

}  // namespace weft::hca::mlx5
