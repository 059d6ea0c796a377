#include "hca/mlx5/context.hpp"

#include <infiniband/mlx5dv.h>

#include <cstring>

#include "hca/mlx5/queue_pair.hpp"

namespace weft::hca::mlx5 {

bool has_layouts(const ibv_context* context) noexcept {
  return mlx5dv_is_supported(context->device);
}

namespace {

ibv_context* open(ibv_device* device) {
  if (!mlx5dv_is_supported(device)) return ibv_open_device(device);
  // Indirect keys are made by DEVX; a card without it is still good for all the rest.
  mlx5dv_context_attr attr{};
  attr.flags = MLX5DV_CONTEXT_FLAGS_DEVX;
  ibv_context* context = mlx5dv_open_device(device, &attr);
  return context != nullptr ? context : ibv_open_device(device);
}

}  // namespace

Context::Context(const char* device) {
  Handle<ibv_device*, ibv_free_device_list> list(
      made(ibv_get_device_list(nullptr), "cannot list the devices"));
  for (ibv_device** at = list.get(); *at != nullptr; ++at) {
    if (std::strcmp(ibv_get_device_name(*at), device) != 0) continue;
    context_.reset(made(open(*at), std::string("cannot open the device ") + device));
    return;
  }
  throw Error(ENODEV, std::string("there is no device ") + device);
}

std::uint8_t Context::active_port() const {
  return mlx5::active_port(context_.get());
}

}  // namespace weft::hca::mlx5
