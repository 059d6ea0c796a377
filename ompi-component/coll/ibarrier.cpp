// The non-blocking barrier: its arrival is a store, its completion is found by MPI's progress.
#include <atomic>
#include <mutex>
#include <utility>
#include <vector>

#include "ompi-component/coll/collectives.hpp"

namespace weft::coll {
namespace {

std::mutex mutex;
std::vector<weft_coll_request*>& pending() {
  static auto& requests = *new std::vector<weft_coll_request*>;  // outlives static destructors
  return requests;
}
std::atomic<std::size_t> number_pending{0};
bool registered = false;

bool is_done(weft_coll_request* request) noexcept {
  const dm::Board* board = node_of(&request->module->super).ready_board();
  return board->barrier_done(request->barrier, request->next);
}

int progress() {
  if (number_pending.load(std::memory_order_relaxed) == 0) return 0;
  std::vector<weft_coll_request*> done;
  {
    const std::unique_lock guard(mutex, std::try_to_lock);
    if (!guard.owns_lock()) return 0;
    std::erase_if(pending(), [&](weft_coll_request* request) {
      if (!is_done(request)) return false;
      done.push_back(request);
      return true;
    });
    number_pending.store(pending().size(), std::memory_order_relaxed);
  }
  // Outside the lock: what is told may begin the next one.
  for (weft_coll_request* request : done) {
    OBJ_RELEASE(request->module);
    request->module = nullptr;
    ompi_request_complete(&request->super, true);
  }
  return static_cast<int>(done.size());
}

int free_request(ompi_request_t** request) {
  if (!REQUEST_COMPLETE(*request)) return MPI_ERR_REQUEST;
  OMPI_REQUEST_FINI(*request);
  OBJ_RELEASE(*request);
  *request = MPI_REQUEST_NULL;
  return OMPI_SUCCESS;
}

}  // namespace

int ibarrier(ompi_communicator_t* comm, ompi_request_t** request, mca_coll_base_module_t* module) {
  Node& node = node_of(module);
  dm::Board* board = node.ready_board();
  if (board == nullptr) {
    counts.count(node.why_none());
    return node.ibarrier.call(comm, request, node.ibarrier.module);
  }
  counts.count(Call::ibarrier);
  const std::uint64_t barrier = board->start_barrier();
  unsigned next = 0;
  if (board->barrier_done(barrier, next)) {
    *request = &ompi_request_empty;
    return OMPI_SUCCESS;
  }
  weft_coll_request* self = OBJ_NEW(weft_coll_request);
  if (self == nullptr) return OMPI_ERR_OUT_OF_RESOURCE;
  ompi_request_t& base = self->super;
  OMPI_REQUEST_INIT(&base, false);
  base.req_state = OMPI_REQUEST_ACTIVE;
  base.req_type = OMPI_REQUEST_COLL;
  base.req_mpi_object.comm = comm;
  base.req_status = ompi_status_empty;
  base.req_free = free_request;
  base.req_cancel = [](ompi_request_t*, int) { return MPI_ERR_REQUEST; };
  self->module = reinterpret_cast<weft_coll_module*>(module);
  self->barrier = barrier;
  self->next = next;
  OBJ_RETAIN(self->module);
  *request = &base;
  const std::scoped_lock guard(mutex);
  pending().push_back(self);
  number_pending.store(pending().size(), std::memory_order_relaxed);
  if (!std::exchange(registered, true)) opal_progress_register(progress);
  return OMPI_SUCCESS;
}

void stop_progress() {
  if (std::exchange(registered, false)) opal_progress_unregister(progress);
}

}  // namespace weft::coll
