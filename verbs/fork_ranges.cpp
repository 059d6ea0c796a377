#include "verbs/fork_ranges.hpp"

#include "verbs/real_verbs.hpp"

namespace weft::verbs {

namespace {

/// libibverbs' functions return -1 and set errno.
int result_of(const Real<int(void*, std::size_t)>& real, void* addr, std::size_t length) {
  return real.there() && real.or_else(0, addr, length) != 0 ? errno : 0;
}

int dont_fork(void* addr, std::size_t length) {
  static const Real<int(void*, std::size_t)> real("ibv_dontfork_range");
  return result_of(real, addr, length);
}

int do_fork(void* addr, std::size_t length) {
  static const Real<int(void*, std::size_t)> real("ibv_dofork_range");
  return result_of(real, addr, length);
}

}  // namespace

ForkRanges& fork_ranges() {
  static ForkRanges ranges{dont_fork, do_fork};
  return ranges;
}

}  // namespace weft::verbs
