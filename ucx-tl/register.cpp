// Registers both transports with UCX as soon as the library is loaded.
#include <cstring>

#include "ucx-tl/abi/uct_1_13.h"
#include "ucx-tl/activity.hpp"
#include "ucx-tl/version.hpp"
#include "ucx-tl/weft_cp.hpp"
#include "ucx-tl/weft_iface.hpp"
#include "ucx-tl/weft_md.hpp"

namespace {

using namespace weft::ucx;

/// Another copy of this library may be loaded from elsewhere; UCX would take both.
bool already_registered() {
  const ucs_list_link_t& head = abi::uct_components_list;
  for (const ucs_list_link_t* link = head.next; link != &head; link = link->next) {
    const auto* component = reinterpret_cast<const uct_component*>(
        reinterpret_cast<const char*>(link) - offsetof(uct_component, list));
    if (std::strcmp(component->name, cp::component.name) == 0) return true;
  }
  return false;
}

[[gnu::constructor]] void register_transports() {
  if (!require_known_version()) {
    std::string why;
    version_is_known(&why);
    activity().note(std::move(why));
    return;
  }
  if (already_registered()) {
    activity().note("another copy of the transport library is loaded already");
    return;
  }
  abi::uct_component_register(&cp::component);
  abi::uct_tl_register(&cp::component, &cp::transport);
  abi::uct_component_register(&wire::component);
  abi::uct_tl_register(&wire::component, &wire::transport);
}

}  // namespace
