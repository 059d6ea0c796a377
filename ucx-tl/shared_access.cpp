#include "ucx-tl/shared_access.hpp"

#include <new>

#include "ucx-tl/weft_md.hpp"

namespace weft::ucx::wire {

void SharedAccess::look_up(const hca::emu::Link& link, uct_rkey_t rkey) noexcept {
  last_rkey_ = rkey;
  last_ = nullptr;
  try {
    // A descriptor and key that were used again later name another region: mapped anew.
    auto& view = views_[rkey];
    if (view == nullptr || !view->is_valid()) {
      // The mapping of a region that its owner has freed keeps its memory.
      std::erase_if(views_, [rkey](const auto& other) {
        return other.first != rkey && (other.second == nullptr || !other.second->is_valid());
      });
      view = hca::emu::SharedRegionView::map(link.peer(), shared_of(rkey) - 1, key_of(rkey));
    }
    last_ = view.get();
  } catch (const std::bad_alloc&) {
    // The operation is sent instead.
  }
}

}  // namespace weft::ucx::wire
