// What osc/ucx of Open MPI 4.1 keeps for itself, as far as it is needed here, in our own words.
#pragma once

#include <ucp/api/ucp.h>

#include <cstddef>
#include <cstdint>

#include "ompi-component/ompi.hpp"

namespace weft::ompi::osc_ucx {

struct Component {
  ompi_osc_base_component_t super;
  ucp_context_h context;
  ucp_worker_h worker;
};

/// How one process reaches another one's memory.
struct RemoteMemory {
  ucp_rkey_h rkey;
  std::uint64_t addr;
  bool has_rkey;
};

struct Module {
  ompi_osc_base_module_t super;
  ompi_communicator_t* comm;
  ucp_mem_h memory;
  int flavor;
  std::size_t size;
  ucp_mem_h state_memory;
  RemoteMemory* windows;
  RemoteMemory* states;  ///< by rank
};

/// The words of a process's state, by which others lock its window and its accumulates. Words that
/// the owner itself looks at (post, start, complete, wait; dynamic windows) come after these.
struct LockWords {
  std::uint64_t lock;
  std::uint64_t request;  ///< rput and rget complete by an atomic operation on it
  std::uint64_t accumulate;
};

/// In ompi_proc_t::proc_endpoints.
inline ucp_ep_h endpoint(ompi_communicator_t* comm, int rank) noexcept {
  return static_cast<ucp_ep_h>(
      ompi_comm_peer_lookup(comm, rank)->proc_endpoints[OMPI_PROC_ENDPOINT_TAG_UCX]);
}

}  // namespace weft::ompi::osc_ucx
