// Every call decides first whether it runs on the board. All processes must decide alike, so only
// what is the same everywhere counts: the board, the packed size that the type signature gives,
// the operation.
#include "ompi-component/coll/collectives.hpp"

#include <cstring>

namespace weft::coll {
namespace {

using dm::Board;

/// The commonest lengths without a call.
void copy(void* to, const void* from, std::size_t bytes) noexcept {
  if (bytes == 8) {
    std::memcpy(to, from, 8);
  } else if (bytes == 4) {
    std::memcpy(to, from, 4);
  } else {
    std::memcpy(to, from, bytes);
  }
}

/// Counts the fall-back and says to fall back.
std::nullptr_t fall_back(Fallback reason) noexcept {
  counts.count(reason);
  return nullptr;
}

/// The board when it takes a payload of `bytes`.
Board* board_for(Node& node, ompi_communicator_t* comm, std::size_t bytes) noexcept {
  Board* board = node.board(comm);
  if (board == nullptr) [[unlikely]] {
    return fall_back(node.why_none());
  }
  if (bytes > board->max_payload()) return fall_back(Fallback::size);
  return board;
}

// ---- data of any type, packed -------------------------------------------------------------------

bool is_dense(const ompi_datatype_t* type) noexcept {
  constexpr unsigned dense = OPAL_DATATYPE_FLAG_CONTIGUOUS | OPAL_DATATYPE_FLAG_NO_GAPS;
  const opal_datatype_t& t = type->super;
  return (t.flags & dense) == dense && t.lb == 0 && t.true_lb == 0 &&
         t.ub == static_cast<std::ptrdiff_t>(t.size);
}

void pack(std::byte* to, const void* from, int count, ompi_datatype_t* type, std::size_t bytes) {
  if (is_dense(type)) [[likely]] {
    copy(to, from, bytes);
  } else {
    ompi_datatype_sndrcv(const_cast<void*>(from), count, type, to, static_cast<int>(bytes),
                         MPI_PACKED);
  }
}

void unpack(void* to, int count, ompi_datatype_t* type, const std::byte* from, std::size_t bytes) {
  if (is_dense(type)) [[likely]] {
    copy(to, from, bytes);
  } else {
    ompi_datatype_sndrcv(const_cast<std::byte*>(from), static_cast<int>(bytes), MPI_PACKED, to,
                         count, type);
  }
}

// ---- reductions ---------------------------------------------------------------------------------

/// Elements as they lie in memory: of a predefined type, gaps within an element included.
void copy_elements(void* to, const void* from, int count, ompi_datatype_t* type) {
  if (is_dense(type)) [[likely]] {
    copy(to, from, type->super.size * static_cast<std::size_t>(count));
  } else {
    ompi_datatype_copy_content_same_ddt(type, count, static_cast<char*>(to),
                                        static_cast<char*>(const_cast<void*>(from)));
  }
}

/// What a reduction needs of the board; null to fall back.
struct Reduction {
  Board* board;
  std::size_t length;  ///< by which the board places the elements
};

Reduction reduction_on(Node& node, ompi_communicator_t* comm, int count, ompi_datatype_t* type,
                       ompi_op_t* op) noexcept {
  // A user's operation may be given types of one's own, which need not look alike everywhere.
  if (!is_predefined(op, type)) {
    node.board(comm);  // set up at the first call of all, whatever it is
    return {fall_back(Fallback::operation), 0};
  }
  std::size_t length = bytes_of(count, type);
  // Elements that must lie on more than 8 bytes do not go behind the counter in its line.
  if (type->super.align > 8 && length <= Board::inlined) length = Board::inlined + 1;
  return {board_for(node, comm, length), length};
}

/// Arrives with this process's elements; the operation's number.
std::uint64_t contribute(const Reduction& on, const void* in, const void* out, int count,
                         ompi_datatype_t* type) {
  const void* mine = in == MPI_IN_PLACE ? out : in;
  return on.board->arrive_with(on.length, Wait{},
                               [&](std::byte* to) { copy_elements(to, mine, count, type); });
}

/// Rank 0 op (rank 1 op (... op last)): in the order of ranks, and the same for all who compute it.
void fold(Node& node, const Reduction& on, std::uint64_t k, void* out, int count,
          ompi_datatype_t* type, ompi_op_t* op) {
  unsigned member = on.board->members() - 1;
  copy_elements(out, on.board->payload(member, k, on.length, Wait{}), count, type);
  while (member-- != 0) {
    const std::byte* theirs = on.board->payload(member, k, on.length, Wait{});
    node.reduce_local.call(theirs, out, count, type, op, node.reduce_local.module);
  }
}

}  // namespace

// Open MPI's header of operations needs one that is not installed: by name.
bool is_predefined(MPI_Op op, const ompi_datatype_t* type) noexcept {
  for (const MPI_Op known : {MPI_SUM, MPI_MAX, MPI_MIN, MPI_PROD, MPI_LAND, MPI_BAND, MPI_LOR,
                             MPI_BOR, MPI_LXOR, MPI_BXOR, MPI_MAXLOC, MPI_MINLOC}) {
    if (op == known) return ompi_datatype_is_predefined(type);
  }
  return false;
}

int barrier(ompi_communicator_t* comm, mca_coll_base_module_t* module) {
  Node& node = node_of(module);
  Board* board = board_for(node, comm, 0);
  if (board == nullptr) [[unlikely]] {
    return node.barrier.call(comm, node.barrier.module);
  }
  counts.count(Call::barrier);
  board->barrier(Wait{});
  return OMPI_SUCCESS;
}

int bcast(void* buffer, int count, ompi_datatype_t* type, int root, ompi_communicator_t* comm,
          mca_coll_base_module_t* module) {
  Node& node = node_of(module);
  const std::size_t bytes = type->super.size * static_cast<std::size_t>(count);
  // MPI_Bcast returns early where the count is 0: nobody may wait for that process.
  if (bytes == 0) return OMPI_SUCCESS;
  Board* board = board_for(node, comm, bytes);
  if (board == nullptr) {
    return node.bcast.call(buffer, count, type, root, comm, node.bcast.module);
  }
  counts.count(Call::bcast);
  if (ompi_comm_rank(comm) == root) {
    board->arrive_with(bytes, Wait{}, [&](std::byte* to) { pack(to, buffer, count, type, bytes); });
  } else {
    const std::uint64_t k = board->arrive(Wait{});
    const std::byte* data = board->payload(static_cast<unsigned>(root), k, bytes, Wait{});
    unpack(buffer, count, type, data, bytes);
  }
  return OMPI_SUCCESS;
}

int reduce(const void* in, void* out, int count, ompi_datatype_t* type, ompi_op_t* op, int root,
           ompi_communicator_t* comm, mca_coll_base_module_t* module) {
  Node& node = node_of(module);
  const Reduction on = reduction_on(node, comm, count, type, op);
  if (on.board == nullptr) {
    return node.reduce.call(in, out, count, type, op, root, comm, node.reduce.module);
  }
  counts.count(Call::reduce);
  const std::uint64_t k = contribute(on, in, out, count, type);
  if (ompi_comm_rank(comm) == root) fold(node, on, k, out, count, type, op);
  return OMPI_SUCCESS;
}

int allreduce(const void* in, void* out, int count, ompi_datatype_t* type, ompi_op_t* op,
              ompi_communicator_t* comm, mca_coll_base_module_t* module) {
  Node& node = node_of(module);
  const Reduction on = reduction_on(node, comm, count, type, op);
  if (on.board == nullptr) {
    return node.allreduce.call(in, out, count, type, op, comm, node.allreduce.module);
  }
  counts.count(Call::allreduce);
  const std::uint64_t k = contribute(on, in, out, count, type);
  fold(node, on, k, out, count, type, op);
  return OMPI_SUCCESS;
}

int allgather(const void* in, int in_count, ompi_datatype_t* in_type, void* out, int out_count,
              ompi_datatype_t* out_type, ompi_communicator_t* comm,
              mca_coll_base_module_t* module) {
  Node& node = node_of(module);
  const std::size_t bytes = out_type->super.size * static_cast<std::size_t>(out_count);
  if (bytes == 0) return OMPI_SUCCESS;
  Board* board = board_for(node, comm, bytes);
  if (board == nullptr) {
    return node.allgather.call(in, in_count, in_type, out, out_count, out_type, comm,
                               node.allgather.module);
  }
  counts.count(Call::allgather);
  const std::ptrdiff_t step = (out_type->super.ub - out_type->super.lb) * out_count;
  const auto place = [&](unsigned member) { return static_cast<std::byte*>(out) + step * member; };
  const auto self = static_cast<unsigned>(ompi_comm_rank(comm));
  const bool in_place = in == MPI_IN_PLACE;
  const std::uint64_t k = board->arrive_with(bytes, Wait{}, [&](std::byte* to) {
    if (in_place) {
      pack(to, place(self), out_count, out_type, bytes);
    } else {
      pack(to, in, in_count, in_type, bytes);
    }
  });
  for (unsigned member = 0; member < board->members(); ++member) {
    if (in_place && member == self) continue;
    const std::byte* theirs = board->payload(member, k, bytes, Wait{});
    unpack(place(member), out_count, out_type, theirs, bytes);
  }
  return OMPI_SUCCESS;
}

}  // namespace weft::coll
