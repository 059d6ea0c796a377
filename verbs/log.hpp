// What went wrong, for people: one line on stderr with WEFT_LOG=info.
#pragma once

#include <cerrno>
#include <string>
#include <utility>

#include "hca/status.hpp"

namespace weft::verbs {

/// Says that `call` failed. `what` names the value and the limit.
void log_refusal(const char* call, int code, const std::string& what) noexcept;

/// Throws what entry() turns into an errno value.
[[noreturn]] inline void refuse(int code, const std::string& what) {
  throw hca::Error(code, what);
}
/// Refuses when `value` is over `limit`.
template <class Value, class Limit>
void check_limit(int code, const char* name, Value value, Limit limit) {
  if (std::cmp_greater(value, limit)) {
    refuse(code,
           std::string(name) + " " + std::to_string(value) + ", limit " + std::to_string(limit));
  }
}

/// Runs the body of a call: an hca::Error becomes its errno value (returned, and set), running out
/// of memory ENOMEM. 0 when it ends well.
template <class Body>
int guarded(const char* call, Body body) noexcept {
  int code = ENOMEM;
  try {
    body();
    return 0;
  } catch (const hca::Error& error) {
    code = error.code();
    log_refusal(call, code, error.what());
  } catch (const std::exception& error) {
    log_refusal(call, code, error.what());
  }
  errno = code;
  return code;
}

/// The same for calls that return a pointer; null when they fail.
template <class Body>
auto guarded_pointer(const char* call, Body body) noexcept -> decltype(body()) {
  decltype(body()) result = nullptr;
  guarded(call, [&] { result = body(); });
  return result;
}

}  // namespace weft::verbs
