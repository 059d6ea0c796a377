#include <algorithm>

#include "ompi-component/hook/binding.hpp"
#include "ompi-component/hook/hook.hpp"
#include "ompi-component/hook/redirect_calls.hpp"
#include "ompi-component/hook/request_watch.hpp"

namespace weft::ompi {
namespace {

// The status of a blocking receive: the caller's, or one of our own where the caller ignores it,
// because it tells how much has come.
class ReceiveStatus {
 public:
  explicit ReceiveStatus(ompi_status_public_t* callers) noexcept
      : status_(callers != MPI_STATUS_IGNORE ? callers : &own_) {}

  [[nodiscard]] ompi_status_public_t* get() const noexcept { return status_; }

  /// The receive is over: what has come is delivered and counted. Of a truncated message nothing
  /// has come into `room`.
  void finish(const Binding& binding, int result) const noexcept {
    const std::uint64_t bytes = std::min<std::uint64_t>(status_->_ucount, binding.bytes());
    const bool came = result == MPI_SUCCESS && status_->_cancelled == 0;
    if (came) binding.deliver(bytes);
    if (came || result == MPI_ERR_TRUNCATE) count_offloaded(Direction::receive, binding, bytes);
  }

 private:
  ompi_status_public_t own_{};
  ompi_status_public_t* status_;
};

[[gnu::noinline]] int recv_derived(void* buffer, size_t count, ompi_datatype_t* type, int source,
                                   int tag, ompi_communicator_t* comm,
                                   ompi_status_public_t* callers) noexcept {
  alignas(64) std::byte room[max_inline];
  const Binding binding = Binding::make(Direction::receive, buffer, count, type, room);
  if (!binding) return original.pml_recv(buffer, count, type, source, tag, comm, callers);
  const ReceiveStatus status(callers);
  const int result = original.pml_recv(binding.address(), binding.bytes(), MPI_BYTE, source, tag,
                                       comm, status.get());
  status.finish(binding, result);
  return result;
}

[[gnu::noinline]] int irecv_derived(void* buffer, size_t count, ompi_datatype_t* type, int source,
                                    int tag, ompi_communicator_t* comm,
                                    ompi_request_t** request) noexcept {
  RequestWatch watch(Direction::receive, Binding::make(Direction::receive, buffer, count, type));
  if (!watch) return original.pml_irecv(buffer, count, type, source, tag, comm, request);
  const Binding& binding = watch.binding();
  const int result =
      original.pml_irecv(binding.address(), binding.bytes(), MPI_BYTE, source, tag, comm, request);
  if (result == OMPI_SUCCESS) watch.follow(*request);
  return result;
}

[[gnu::noinline]] int irecv_init_derived(void* buffer, size_t count, ompi_datatype_t* type,
                                         int source, int tag, ompi_communicator_t* comm,
                                         ompi_request_t** request) noexcept {
  RequestWatch watch(Direction::receive, Binding::make(Direction::receive, buffer, count, type));
  if (!watch) return original.pml_irecv_init(buffer, count, type, source, tag, comm, request);
  const Binding& binding = watch.binding();
  const int result = original.pml_irecv_init(binding.address(), binding.bytes(), MPI_BYTE, source,
                                             tag, comm, request);
  if (result == OMPI_SUCCESS) watch.follow_persistent(*request);
  return result;
}

[[gnu::noinline]] int mrecv_derived(void* buffer, size_t count, ompi_datatype_t* type,
                                    ompi_message_t** message,
                                    ompi_status_public_t* callers) noexcept {
  alignas(64) std::byte room[max_inline];
  const Binding binding = Binding::make(Direction::receive, buffer, count, type, room);
  if (!binding) return original.pml_mrecv(buffer, count, type, message, callers);
  const ReceiveStatus status(callers);
  const int result =
      original.pml_mrecv(binding.address(), binding.bytes(), MPI_BYTE, message, status.get());
  status.finish(binding, result);
  return result;
}

/// pml/ucx leaves the request's communicator unset, and MPI_Wait crashes when it looks for the
/// error handler of one whose message was truncated.
int imrecv_with_communicator(void* buffer, size_t count, ompi_datatype_t* type,
                             ompi_message_t** message, ompi_request_t** request) noexcept {
  ompi_communicator_t* const comm = (*message)->comm;
  const int result = original.pml_imrecv(buffer, count, type, message, request);
  if (result == OMPI_SUCCESS) (*request)->req_mpi_object.comm = comm;
  return result;
}

[[gnu::noinline]] int imrecv_derived(void* buffer, size_t count, ompi_datatype_t* type,
                                     ompi_message_t** message, ompi_request_t** request) noexcept {
  RequestWatch watch(Direction::receive, Binding::make(Direction::receive, buffer, count, type));
  if (!watch) return imrecv_with_communicator(buffer, count, type, message, request);
  const Binding& binding = watch.binding();
  const int result =
      imrecv_with_communicator(binding.address(), binding.bytes(), MPI_BYTE, message, request);
  if (result == OMPI_SUCCESS) watch.follow(*request);
  return result;
}

}  // namespace

int recv(void* buffer, size_t count, ompi_datatype_t* type, int source, int tag,
         ompi_communicator_t* comm, ompi_status_public_t* status) {
  if (is_plain(type)) [[likely]]
    return original.pml_recv(buffer, count, type, source, tag, comm, status);
  return recv_derived(buffer, count, type, source, tag, comm, status);
}

int irecv(void* buffer, size_t count, ompi_datatype_t* type, int source, int tag,
          ompi_communicator_t* comm, ompi_request_t** request) {
  if (is_plain(type)) [[likely]]
    return original.pml_irecv(buffer, count, type, source, tag, comm, request);
  return irecv_derived(buffer, count, type, source, tag, comm, request);
}

int irecv_init(void* buffer, size_t count, ompi_datatype_t* type, int source, int tag,
               ompi_communicator_t* comm, ompi_request_t** request) {
  if (is_plain(type)) [[likely]]
    return original.pml_irecv_init(buffer, count, type, source, tag, comm, request);
  return irecv_init_derived(buffer, count, type, source, tag, comm, request);
}

int mrecv(void* buffer, size_t count, ompi_datatype_t* type, ompi_message_t** message,
          ompi_status_public_t* status) {
  if (is_plain(type)) [[likely]]
    return original.pml_mrecv(buffer, count, type, message, status);
  return mrecv_derived(buffer, count, type, message, status);
}

int imrecv(void* buffer, size_t count, ompi_datatype_t* type, ompi_message_t** message,
           ompi_request_t** request) {
  if (is_plain(type)) [[likely]]
    return imrecv_with_communicator(buffer, count, type, message, request);
  return imrecv_derived(buffer, count, type, message, request);
}

}  // namespace weft::ompi
