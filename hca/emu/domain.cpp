#include "hca/emu/domain.hpp"

#include <cerrno>
#include <mutex>
#include <string>
#include <utility>

#include "hca/emu/engine.hpp"

namespace weft::hca::emu {

std::uint32_t Domain::register_region(Region region) {
  const std::scoped_lock guard(lock_);
  return keys_.insert(std::move(region));
}

void Domain::deregister(std::uint32_t key) {
  const std::scoped_lock guard(lock_);
  if (keys_.find(key) == nullptr) {
    throw Error(EINVAL, "key " + std::to_string(key) + " is not registered");
  }
  drop(key);
  keys_.erase(key);
}

void Domain::replace(std::uint32_t key, Region region) {
  const std::scoped_lock guard(lock_);
  if (keys_.find(key) == nullptr) {
    throw Error(EINVAL, "key " + std::to_string(key) + " is not registered");
  }
  drop(key);
  keys_.assign(key, std::move(region));
}

std::uint32_t Domain::reserve_key() {
  const std::scoped_lock guard(lock_);
  return keys_.reserve();
}

void Domain::release_key(std::uint32_t key) noexcept {
  const std::scoped_lock guard(lock_);
  drop(key);
  keys_.release(key);
}

void Domain::bind(std::uint32_t key, Region region) {
  keys_.assign(key, std::move(region));
}

void Domain::unbind(std::uint32_t key) noexcept {
  drop(key);
  keys_.clear(key);
}

void Domain::drop(std::uint32_t key) noexcept {
  for (Engine* engine : engines_) engine->drop_key(key);
}

}  // namespace weft::hca::emu
