// The functions of the machine's own libibverbs, for real devices.
#pragma once

#include <cerrno>

namespace weft::verbs {

/// The address of a function of libibverbs.so.1; null when the library or the function is not
/// there.
void* find_real(const char* name) noexcept;

/// Calls the real function of that name; `failed` with errno ENOSYS when there is none.
template <class Function>
class Real {
 public:
  explicit Real(const char* name) noexcept
      : function_(reinterpret_cast<Function*>(find_real(name))) {}
  [[nodiscard]] bool there() const noexcept { return function_ != nullptr; }
  template <class Result, class... Arguments>
  Result or_else(Result failed, Arguments... arguments) const {
    if (function_ != nullptr) return function_(arguments...);
    errno = ENOSYS;
    return failed;
  }
  template <class... Arguments>
  void call(Arguments... arguments) const {
    if (function_ != nullptr) function_(arguments...);
  }

 private:
  Function* function_;
};

}  // namespace weft::verbs
