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
  for (Engine* engine : engines_) engine->drop_key(key);
  keys_.erase(key);
}

}  // namespace weft::hca::emu
