// The collectives of coll/weft, with the signatures of Open MPI's coll framework.
#pragma once

#include "ompi-component/coll/node.hpp"

namespace weft::coll {

int barrier(ompi_communicator_t* comm, mca_coll_base_module_t* module);
int ibarrier(ompi_communicator_t* comm, ompi_request_t** request, mca_coll_base_module_t* module);
int bcast(void* buffer, int count, ompi_datatype_t* type, int root, ompi_communicator_t* comm,
          mca_coll_base_module_t* module);
int reduce(const void* in, void* out, int count, ompi_datatype_t* type, ompi_op_t* op, int root,
           ompi_communicator_t* comm, mca_coll_base_module_t* module);
int allreduce(const void* in, void* out, int count, ompi_datatype_t* type, ompi_op_t* op,
              ompi_communicator_t* comm, mca_coll_base_module_t* module);
int allgather(const void* in, int in_count, ompi_datatype_t* in_type, void* out, int out_count,
              ompi_datatype_t* out_type, ompi_communicator_t* comm, mca_coll_base_module_t* module);

/// One of MPI's own operations on one of its own types: commutative, and the same everywhere.
bool is_predefined(MPI_Op op, const ompi_datatype_t* type) noexcept;
/// Of so many elements of a predefined type as they lie in memory.
inline std::size_t bytes_of(int count, const ompi_datatype_t* type) noexcept {
  return static_cast<std::size_t>(type->super.ub) * static_cast<std::size_t>(count);
}

/// No non-blocking barrier is looked after any more.
void stop_progress();

}  // namespace weft::coll
