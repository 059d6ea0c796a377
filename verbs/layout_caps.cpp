// What the device can do with layouts.
#include <cerrno>

#include "verbs/layout.hpp"
#include "verbs/limits.hpp"
#include "verbs/log.hpp"

namespace weft::verbs {

int query_mr_layout_caps(ibv_context* /*context*/, ibv_mr_layout_caps* caps) {
  return guarded("ibv_query_mr_layout_caps", [&] {
    if (caps == nullptr) refuse(EINVAL, "caps is null");
    *caps = limits().layouts;
  });
}

}  // namespace weft::verbs
