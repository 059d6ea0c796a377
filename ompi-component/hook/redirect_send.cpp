#include <memory>
#include <new>
#include <utility>

#include "ompi-component/hook/binding.hpp"
#include "ompi-component/hook/hook.hpp"
#include "ompi-component/hook/redirect_calls.hpp"
#include "ompi-component/hook/request_watch.hpp"

namespace weft::ompi {
namespace {

// A buffered send is over when it returns: the data must be packed into the user's buffer anyway.
Binding bind_for_send(const void* buffer, size_t count, ompi_datatype_t* type,
                      mca_pml_base_send_mode_t mode, std::span<std::byte> room = {}) noexcept {
  if (mode == MCA_PML_BASE_SEND_BUFFERED) {
    count_fallback(Direction::send, Fallback::bsend, *type, count);
    return {};
  }
  return Binding::make(Direction::send, buffer, count, type, room);
}

[[gnu::noinline]] int send_derived(const void* buffer, size_t count, ompi_datatype_t* type,
                                   int destination, int tag, mca_pml_base_send_mode_t mode,
                                   ompi_communicator_t* comm) noexcept {
  alignas(64) std::byte room[max_inline];
  const Binding binding = bind_for_send(buffer, count, type, mode, room);
  if (!binding) return original.pml_send(buffer, count, type, destination, tag, mode, comm);
  count_offloaded(Direction::send, binding, binding.bytes());
  return original.pml_send(binding.address(), binding.bytes(), MPI_BYTE, destination, tag, mode,
                           comm);
}

[[gnu::noinline]] int isend_derived(const void* buffer, size_t count, ompi_datatype_t* type,
                                    int destination, int tag, mca_pml_base_send_mode_t mode,
                                    ompi_communicator_t* comm, ompi_request_t** request) noexcept {
  std::size_t bytes = 0;
  std::unique_ptr<std::byte[]> room;
  if (hook.offloads && !__builtin_mul_overflow(type->super.size, count, &bytes) &&
      bytes <= max_inline)
    room.reset(new (std::nothrow) std::byte[bytes]);
  Binding bound = bind_for_send(buffer, count, type, mode, {room.get(), room ? bytes : 0});
  RequestWatch watch(Direction::send, std::move(bound), std::move(room));
  if (!watch) return original.pml_isend(buffer, count, type, destination, tag, mode, comm, request);
  const Binding& binding = watch.binding();
  const int result = original.pml_isend(binding.address(), binding.bytes(), MPI_BYTE, destination,
                                        tag, mode, comm, request);
  if (result == OMPI_SUCCESS) watch.follow(*request);
  return result;
}

[[gnu::noinline]] int isend_init_derived(const void* buffer, size_t count, ompi_datatype_t* type,
                                         int destination, int tag, mca_pml_base_send_mode_t mode,
                                         ompi_communicator_t* comm,
                                         ompi_request_t** request) noexcept {
  RequestWatch watch(Direction::send, bind_for_send(buffer, count, type, mode));
  if (!watch)
    return original.pml_isend_init(buffer, count, type, destination, tag, mode, comm, request);
  const Binding& binding = watch.binding();
  const int result = original.pml_isend_init(binding.address(), binding.bytes(), MPI_BYTE,
                                             destination, tag, mode, comm, request);
  if (result == OMPI_SUCCESS) watch.follow_persistent(*request);
  return result;
}

}  // namespace

int send(const void* buffer, size_t count, ompi_datatype_t* type, int destination, int tag,
         mca_pml_base_send_mode_t mode, ompi_communicator_t* comm) {
  if (is_plain(type)) [[likely]]
    return original.pml_send(buffer, count, type, destination, tag, mode, comm);
  return send_derived(buffer, count, type, destination, tag, mode, comm);
}

int isend(const void* buffer, size_t count, ompi_datatype_t* type, int destination, int tag,
          mca_pml_base_send_mode_t mode, ompi_communicator_t* comm, ompi_request_t** request) {
  if (is_plain(type)) [[likely]]
    return original.pml_isend(buffer, count, type, destination, tag, mode, comm, request);
  return isend_derived(buffer, count, type, destination, tag, mode, comm, request);
}

int isend_init(const void* buffer, size_t count, ompi_datatype_t* type, int destination, int tag,
               mca_pml_base_send_mode_t mode, ompi_communicator_t* comm, ompi_request_t** request) {
  if (is_plain(type)) [[likely]]
    return original.pml_isend_init(buffer, count, type, destination, tag, mode, comm, request);
  return isend_init_derived(buffer, count, type, destination, tag, mode, comm, request);
}

}  // namespace weft::ompi
