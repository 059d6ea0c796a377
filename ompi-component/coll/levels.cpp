#include "ompi-component/coll/levels.hpp"

#include <cstdio>
#include <new>

#include "ompi-component/coll/collectives.hpp"

namespace weft::coll {
namespace {

bool is_near(ompi_communicator_t* comm, int rank) noexcept {
  const ompi_proc_t* proc = ompi_group_peer_lookup_existing(comm->c_local_group, rank);
  // One that was never looked at is on another node.
  return proc != nullptr && OPAL_PROC_ON_LOCAL_NODE(proc->super.proc_flags);
}

/// The lowest rank of those that share this process's node, or its part of a node when
/// coll_weft_group_size divides nodes.
int first_of_group(ompi_communicator_t* comm) noexcept {
  const int self = ompi_comm_rank(comm);
  int first = self;
  int place = 0;  // of a rank among those of the node
  for (int rank = 0; rank <= self; ++rank) {
    if (rank != self && !is_near(comm, rank)) continue;
    if (place == 0 || (params.group_size > 0 && place % params.group_size == 0)) first = rank;
    ++place;
  }
  return first;
}

template <auto Call, auto Module, typename... Args>
int on(ompi_communicator_t* comm, Args... args) {
  return (comm->c_coll->*Call)(args..., comm, comm->c_coll->*Module);
}

int barrier_of(ompi_communicator_t* comm) {
  return on<&mca_coll_base_comm_coll_t::coll_barrier,
            &mca_coll_base_comm_coll_t::coll_barrier_module>(comm);
}

int bcast_of(ompi_communicator_t* comm, void* buffer, int count, ompi_datatype_t* type, int root) {
  return on<&mca_coll_base_comm_coll_t::coll_bcast, &mca_coll_base_comm_coll_t::coll_bcast_module>(
      comm, buffer, count, type, root);
}

int reduce_of(ompi_communicator_t* comm, const void* in, void* out, int count,
              ompi_datatype_t* type, ompi_op_t* op, int root) {
  return on<&mca_coll_base_comm_coll_t::coll_reduce,
            &mca_coll_base_comm_coll_t::coll_reduce_module>(comm, in, out, count, type, op, root);
}

int allreduce_of(ompi_communicator_t* comm, const void* in, void* out, int count,
                 ompi_datatype_t* type, ompi_op_t* op) {
  return on<&mca_coll_base_comm_coll_t::coll_allreduce,
            &mca_coll_base_comm_coll_t::coll_allreduce_module>(comm, in, out, count, type, op);
}

/// One step after another as long as none fails.
template <typename... Steps>
int in_turn(Steps... steps) {
  int status = OMPI_SUCCESS;
  ((status = status == OMPI_SUCCESS ? steps() : status), ...);
  return status;
}

/// Room for the elements of a reduction, small as those are that come here.
class Elements {
 public:
  Elements(int count, const ompi_datatype_t* type) : bytes_(bytes_of(count, type)) {
    if (bytes_ > sizeof near_) far_.reset(new (std::nothrow) std::byte[bytes_]);
  }
  /// Null when there is no memory left.
  void* data() noexcept { return bytes_ > sizeof near_ ? far_.get() : near_; }

 private:
  std::size_t bytes_;
  alignas(64) std::byte near_[2048];
  std::unique_ptr<std::byte[]> far_;
};

void tell_about(ompi_communicator_t* comm, int groups) {
  char text[32];
  std::snprintf(text, sizeof text, "%d groups", groups);
  tell(text, comm);
}

/// Counts the fall-back; false, to fall back.
bool leave(Fallback reason) noexcept {
  counts.count(reason);
  return false;
}

bool takes_bcast(Levels& levels, ompi_communicator_t* comm, std::size_t bytes) noexcept {
  if (!levels.ready(comm)) return leave(Fallback::unusable);
  return bytes <= params.max_size || leave(Fallback::size);
}

bool takes_reduction(Levels& levels, ompi_communicator_t* comm, int count,
                     const ompi_datatype_t* type, ompi_op_t* op) noexcept {
  if (!levels.ready(comm)) return leave(Fallback::unusable);
  if (!is_predefined(op, type)) return leave(Fallback::operation);
  return bytes_of(count, type) <= params.max_size || leave(Fallback::size);
}

}  // namespace

void Levels::set_up(ompi_communicator_t* comm) noexcept {
  // What Open MPI does in here on `comm` takes the ordinary way.
  state_ = State::without;
  const auto ranks = static_cast<std::size_t>(ompi_comm_size(comm));
  const int self = ompi_comm_rank(comm);
  const auto all = [&](bool mine) {
    const int one = mine ? 1 : 0;
    int least = 0;
    return previous.allreduce.call(&one, &least, 1, MPI_INT, MPI_MIN, comm,
                                   previous.allreduce.module) == OMPI_SUCCESS &&
           least == 1;
  };
  const int first = first_of_group(comm);
  std::vector<int> firsts;
  std::vector<int> members;  // of the group that begins at a rank, so far
  bool prepared = true;
  try {
    for (auto* list : {&firsts, &members, &leader_of, &rank_in_node}) list->resize(ranks);
  } catch (const std::bad_alloc&) {
    prepared = false;  // the others must hear of it
  }
  if (!all(prepared) || previous.allgather.call(&first, 1, MPI_INT, firsts.data(), 1, MPI_INT, comm,
                                                previous.allgather.module) != OMPI_SUCCESS) {
    return;
  }
  int groups = 0;
  for (std::size_t rank = 0; rank < ranks; ++rank) {
    const auto leader = static_cast<std::size_t>(firsts[rank]);
    if (leader > rank) return;  // not what first_of_group() gives: the same for all
    leader_of[rank] = leader == rank ? groups++ : leader_of[leader];
    rank_in_node[rank] = members[leader]++;
  }
  if (groups == static_cast<int>(ranks)) return;  // nobody shares a node
  const bool leads = first == self;
  ompi_communicator_t* upper = nullptr;
  const int split = ompi_comm_split(comm, first, self, &node, false);
  const int above = ompi_comm_split(comm, leads ? 0 : MPI_UNDEFINED, self, &upper, false);
  if (above == OMPI_SUCCESS && leads) leaders = upper;
  if (!all(split == OMPI_SUCCESS && above == OMPI_SUCCESS)) return;
  state_ = State::ready;
  if (params.verbose >= 2) tell_about(comm, groups);
}

Levels::~Levels() {
  if (leaders != nullptr) ompi_comm_free(&leaders);
  if (node != nullptr) ompi_comm_free(&node);
}

int levels_barrier(ompi_communicator_t* comm, mca_coll_base_module_t* module) {
  Levels& levels = levels_of(module);
  if (!levels.ready(comm)) {
    counts.count(Fallback::unusable);
    return levels.previous.barrier.call(comm, levels.previous.barrier.module);
  }
  return in_turn([&] { return barrier_of(levels.node); },
                 [&] { return levels.leaders ? barrier_of(levels.leaders) : OMPI_SUCCESS; },
                 [&] { return barrier_of(levels.node); });
}

int levels_bcast(void* buffer, int count, ompi_datatype_t* type, int root,
                 ompi_communicator_t* comm, mca_coll_base_module_t* module) {
  Levels& levels = levels_of(module);
  const std::size_t bytes = type->super.size * static_cast<std::size_t>(count);
  if (bytes == 0) return OMPI_SUCCESS;  // as in bcast()
  if (!takes_bcast(levels, comm, bytes)) {
    return levels.previous.bcast.call(buffer, count, type, root, comm,
                                      levels.previous.bcast.module);
  }
  const auto self = static_cast<std::size_t>(ompi_comm_rank(comm));
  const auto from = static_cast<std::size_t>(root);
  const bool with_root = levels.leader_of[self] == levels.leader_of[from];
  // To all of the root's node, from its leader to the others, and down.
  return in_turn(
      [&] {
        return with_root ? bcast_of(levels.node, buffer, count, type, levels.rank_in_node[from])
                         : OMPI_SUCCESS;
      },
      [&] {
        return levels.leaders
                   ? bcast_of(levels.leaders, buffer, count, type, levels.leader_of[from])
                   : OMPI_SUCCESS;
      },
      [&] { return with_root ? OMPI_SUCCESS : bcast_of(levels.node, buffer, count, type, 0); });
}

int levels_reduce(const void* in, void* out, int count, ompi_datatype_t* type, ompi_op_t* op,
                  int root, ompi_communicator_t* comm, mca_coll_base_module_t* module) {
  Levels& levels = levels_of(module);
  const auto fall_back = [&] {
    return levels.previous.reduce.call(in, out, count, type, op, root, comm,
                                       levels.previous.reduce.module);
  };
  if (!takes_reduction(levels, comm, count, type, op)) return fall_back();
  const auto self = static_cast<std::size_t>(ompi_comm_rank(comm));
  const auto to = static_cast<std::size_t>(root);
  const bool is_root = self == to;
  const bool with_root = levels.leader_of[self] == levels.leader_of[to];
  const void* mine = in == MPI_IN_PLACE ? out : in;
  Elements of_node(count, type);
  Elements of_all(count, type);
  if (of_node.data() == nullptr || of_all.data() == nullptr) return OMPI_ERR_OUT_OF_RESOURCE;
  // Up to each leader, to the leader of the root's node, and from it to the root.
  void* result = is_root ? out : of_all.data();
  return in_turn([&] { return reduce_of(levels.node, mine, of_node.data(), count, type, op, 0); },
                 [&] {
                   return levels.leaders ? reduce_of(levels.leaders, of_node.data(), result, count,
                                                     type, op, levels.leader_of[to])
                                         : OMPI_SUCCESS;
                 },
                 [&] {
                   return with_root && levels.rank_in_node[to] != 0
                              ? bcast_of(levels.node, result, count, type, 0)
                              : OMPI_SUCCESS;
                 });
}

int levels_allreduce(const void* in, void* out, int count, ompi_datatype_t* type, ompi_op_t* op,
                     ompi_communicator_t* comm, mca_coll_base_module_t* module) {
  Levels& levels = levels_of(module);
  if (!takes_reduction(levels, comm, count, type, op)) {
    return levels.previous.allreduce.call(in, out, count, type, op, comm,
                                          levels.previous.allreduce.module);
  }
  Elements of_node(count, type);
  if (of_node.data() == nullptr) return OMPI_ERR_OUT_OF_RESOURCE;
  const void* mine = in == MPI_IN_PLACE ? out : in;
  // The leaders' result is one and the same, and goes down as it is: the same bits everywhere.
  return in_turn([&] { return reduce_of(levels.node, mine, of_node.data(), count, type, op, 0); },
                 [&] {
                   return levels.leaders
                              ? allreduce_of(levels.leaders, of_node.data(), out, count, type, op)
                              : OMPI_SUCCESS;
                 },
                 [&] { return bcast_of(levels.node, out, count, type, 0); });
}

}  // namespace weft::coll
