// Memory of a region in a child process: after ibv_fork_init() it is the parent's alone, as with
// other devices.
#pragma once

#include <cstddef>

namespace weft::verbs {

/// libibverbs' own record of ranges, shared with real devices; nothing happens before
/// ibv_fork_init(). Both return 0 or an errno value.
struct ForkRanges {
  int (*dont_fork)(void* addr, std::size_t length);
  int (*do_fork)(void* addr, std::size_t length);
};

/// Those in force: tests put others in their place.
ForkRanges& fork_ranges();

}  // namespace weft::verbs
