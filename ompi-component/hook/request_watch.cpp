#include "ompi-component/hook/request_watch.hpp"

#include <algorithm>
#include <new>

#include "ompi-component/hook/hook.hpp"
#include "ompi-component/hook/orphans.hpp"
#include "ompi-component/hook/redirect_calls.hpp"

namespace weft::ompi {

struct RequestWatch::Record {
  Binding binding;
  Direction direction;
  std::unique_ptr<std::byte[]> room;
  bool started = false;
  ompi_request_free_fn_t original_free = nullptr;
  void* original_ptr = nullptr;
};

namespace {

using Record = RequestWatch::Record;

// `super.ptr` belongs to free lists of registered memory; neither UCX's requests nor pml/ucx's
// persistent ones use it.
Record* record_of(const ompi_request_t* request) noexcept {
  return static_cast<Record*>(request->super.ptr);
}

// In `req_complete_cb_data` while nobody else has set a completion callback.
char no_callback_set;

// Open MPI clears the callback before it calls it, and marks the request complete afterwards.
bool is_in_its_callback(const ompi_request_t* request) noexcept {
  return request->req_complete_cb == nullptr && request->req_complete_cb_data != &no_callback_set;
}

std::uint64_t received_bytes(const ompi_request_t* request, const Binding& binding) noexcept {
  const ompi_status_public_t& status = request->req_status;
  if (status._cancelled != 0) return 0;
  return std::min<std::uint64_t>(status._ucount, binding.bytes());
}

void count_completed(const Record& record, const ompi_request_t* request) noexcept {
  if (record.direction == Direction::send)
    count_offloaded(Direction::send, record.binding, record.binding.bytes());
  else if (request->req_status._cancelled == 0)
    count_offloaded(Direction::receive, record.binding, received_bytes(request, record.binding));
}

// A started persistent receive was counted at its full size.
void count_shortfall(const Record& record, const ompi_request_t* request) noexcept {
  if (record.started && record.direction == Direction::receive)
    counters.of(Direction::receive, record.binding.kind())
        .shorten(record.binding.bytes() - received_bytes(request, record.binding));
}

// The request is over: counts, ends the binding and gives the request its own functions back.
void settle(ompi_request_t* request) noexcept {
  const std::unique_ptr<Record> record(record_of(request));
  if (request->req_persistent) {
    count_shortfall(*record, request);
    request->req_start = original.pml_start;
  } else {
    count_completed(*record, request);
  }
  request->req_free = record->original_free;
  request->super.ptr = record->original_ptr;
  // pml/ucx counts on null here when it uses the request again.
  request->req_complete_cb_data = nullptr;
}

int settle_and_free(ompi_request_t** request) noexcept {
  settle(*request);
  return (*request)->req_free(request);
}

int free_request(ompi_request_t** request) noexcept {
  if (REQUEST_COMPLETE(*request) || is_in_its_callback(*request)) [[likely]]
    return settle_and_free(request);
  adopt(*request, settle_and_free);
  *request = MPI_REQUEST_NULL;
  return OMPI_SUCCESS;
}

void attach(Record* record, ompi_request_t* request) noexcept {
  record->original_free = request->req_free;
  record->original_ptr = request->super.ptr;
  request->req_complete_cb_data = &no_callback_set;
  request->super.ptr = record;
  request->req_free = free_request;
}

}  // namespace

RequestWatch::RequestWatch(Direction direction, Binding&& binding,
                           std::unique_ptr<std::byte[]> room) noexcept {
  if (!binding) return;
  const std::size_t bytes = binding.bytes();
  record_.reset(new (std::nothrow) Record{std::move(binding), direction, std::move(room)});
  if (!record_) counters.of(direction, Fallback::no_memory).add(bytes);
}

RequestWatch::~RequestWatch() = default;

const Binding& RequestWatch::binding() const noexcept {
  return record_->binding;
}

void RequestWatch::follow(ompi_request_t* request) noexcept {
  if (REQUEST_COMPLETE(request)) {
    count_completed(*record_, request);
    record_.reset();
    return;
  }
  attach(record_.release(), request);
}

void RequestWatch::follow_persistent(ompi_request_t* request) noexcept {
  attach(record_.release(), request);
  request->req_start = start;
}

void close_request_watch() noexcept {
  close_orphans();
}

int start(size_t count, ompi_request_t** requests) {
  for (size_t i = 0; i < count; ++i) {
    if (requests[i] == nullptr || requests[i]->req_free != free_request) continue;
    Record& record = *record_of(requests[i]);
    count_shortfall(record, requests[i]);
    count_offloaded(record.direction, record.binding, record.binding.bytes());
    record.started = true;
  }
  return original.pml_start(count, requests);
}

}  // namespace weft::ompi
