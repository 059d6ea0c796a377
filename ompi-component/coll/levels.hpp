// Levels: what coll/weft keeps for a communicator whose processes are on several nodes.
//
// Each node's processes are a communicator of their own, which runs on device memory; the first
// process of each node leads it, and the leaders talk to each other through whatever module Open
// MPI chooses for them.
#pragma once

#include <vector>

#include "ompi-component/coll/node.hpp"

namespace weft::coll {

class Levels {
 public:
  ~Levels();

  /// True when this communicator's calls go by levels. All its processes come to the same answer;
  /// the first call sets up and is collective.
  bool ready(ompi_communicator_t* comm) noexcept {
    if (state_ == State::fresh) [[unlikely]] {
      set_up(comm);
    }
    return state_ == State::ready;
  }

  PreviousFunctions previous;
  ompi_communicator_t* node = nullptr;     ///< the processes of this node
  ompi_communicator_t* leaders = nullptr;  ///< null in a process that leads nobody
  /// The rank in `leaders` of the leader of each process's node, by rank.
  std::vector<int> leader_of;
  /// The rank in its node's communicator of each process, by rank.
  std::vector<int> rank_in_node;

 private:
  enum class State : std::uint8_t { fresh, ready, without };
  [[gnu::noinline]] void set_up(ompi_communicator_t* comm) noexcept;

  State state_ = State::fresh;
};

inline Levels& levels_of(mca_coll_base_module_t* module) noexcept {
  return *static_cast<Levels*>(reinterpret_cast<weft_coll_module*>(module)->levels);
}

int levels_barrier(ompi_communicator_t* comm, mca_coll_base_module_t* module);
int levels_bcast(void* buffer, int count, ompi_datatype_t* type, int root,
                 ompi_communicator_t* comm, mca_coll_base_module_t* module);
int levels_reduce(const void* in, void* out, int count, ompi_datatype_t* type, ompi_op_t* op,
                  int root, ompi_communicator_t* comm, mca_coll_base_module_t* module);
int levels_allreduce(const void* in, void* out, int count, ompi_datatype_t* type, ompi_op_t* op,
                     ompi_communicator_t* comm, mca_coll_base_module_t* module);

}  // namespace weft::coll
