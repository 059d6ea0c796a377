#include "verbs/log.hpp"

#include <cstdio>
#include <cstdlib>
#include <cstring>

namespace weft::verbs {

void log_refusal(const char* call, int code, const std::string& what) noexcept {
  static const bool wanted = [] {
    const char* level = std::getenv("WEFT_LOG");
    return level != nullptr &&
           (std::strcmp(level, "info") == 0 || std::strcmp(level, "debug") == 0);
  }();
  if (wanted) std::fprintf(stderr, "weft: %s: %s (%s)\n", call, what.c_str(), std::strerror(code));
}

}  // namespace weft::verbs
