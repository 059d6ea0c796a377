#include "ompi-component/hook/orphans.hpp"

#include <mutex>
#include <utility>
#include <vector>

namespace weft::ompi {
namespace {

struct Orphan {
  ompi_request_t* request;
  ompi_request_free_fn_t free;
};

// Few programs ever have one: until the first, nothing is added to Open MPI's progress.
struct Orphanage {
  std::mutex mutex;
  std::vector<Orphan> orphans;
  bool visited = false;
};

Orphanage& orphanage() {
  static auto* const instance = new Orphanage;
  return *instance;
}

int free_completed() noexcept {
  Orphanage& all = orphanage();
  const std::unique_lock lock(all.mutex, std::try_to_lock);
  if (!lock) return 0;
  const auto freed = std::erase_if(all.orphans, [](Orphan& orphan) {
    if (!REQUEST_COMPLETE(orphan.request)) return false;
    (void)orphan.free(&orphan.request);
    return true;
  });
  return static_cast<int>(freed);
}

}  // namespace

void adopt(ompi_request_t* request, ompi_request_free_fn_t free) noexcept {
  Orphanage& all = orphanage();
  const std::scoped_lock lock(all.mutex);
  try {
    all.orphans.push_back({request, free});
  } catch (...) {
    // No memory to remember it by: request and window are lost, the message is not.
    return;
  }
  if (!std::exchange(all.visited, true)) (void)opal_progress_register_lp(free_completed);
}

void close_orphans() noexcept {
  (void)free_completed();
  if (std::exchange(orphanage().visited, false)) (void)opal_progress_unregister(free_completed);
}

}  // namespace weft::ompi
