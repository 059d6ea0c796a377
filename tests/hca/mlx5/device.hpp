// A device of this test's own, so that a running job is not disturbed.
#pragma once

#include <unistd.h>

#include <cstdlib>
#include <string>

namespace weft::test {

inline const char* emulated_device() {
  static const std::string name = [] {
    std::string chosen = "test" + std::to_string(::getpid());
    ::setenv("WEFT_DEVICE", chosen.c_str(), 1);
    return chosen;
  }();
  return name.c_str();
}

}  // namespace weft::test
