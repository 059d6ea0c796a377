// What libibverbs hands out, with the call that gives it back.
#pragma once

#include <cerrno>
#include <cstring>
#include <memory>
#include <string>

#include "hca/status.hpp"

namespace weft::hca::mlx5 {

template <auto destroy>
struct Destroy {
  template <class Object>
  void operator()(Object* object) const noexcept {
    destroy(object);
  }
};
template <class Object, auto destroy>
using Handle = std::unique_ptr<Object, Destroy<destroy>>;

/// `object`, or hca::Error with errno when the call gave none.
template <class Object>
Object* made(Object* object, const std::string& what) {
  if (object != nullptr) return object;
  const int code = errno != 0 ? errno : EIO;
  throw Error(code, what + ": " + std::strerror(code));
}

/// For calls that return an errno value.
inline void succeeded(int code, const std::string& what) {
  if (code != 0) throw Error(code, what + ": " + std::strerror(code));
}

}  // namespace weft::hca::mlx5
