#include "ompi-component/coll/node.hpp"

#include <sched.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>

#include "hca/status.hpp"

namespace weft::coll {
namespace {

/// What the lowest rank tells the others.
struct Offer {
  dm::Handle handle;
  std::uint64_t bulk;
  std::uint64_t none;  ///< 0, or 1 + the Fallback
};

std::string device_name() {
  if (params.device != nullptr && *params.device != '\0') return params.device;
  return hca::emu::device_from("UCX_WEFT_DEVICE");
}

Fallback reason_of(const hca::Error& error) {
  return error.code() == ENOMEM ? Fallback::exhausted : Fallback::unusable;
}

/// The largest board that the settings allow, and a small one when there is no room for it.
std::unique_ptr<dm::Allocation> allocate(unsigned members, std::size_t& bulk) {
  const auto create = [&](std::size_t size) {
    return dm::Allocation::create(device_name(), dm::Board::bytes(members, size), dm::Place::device,
                                  hca::emu::DmPurpose::collective);
  };
  constexpr std::size_t least = dm::Board::inlined;
  bulk = std::clamp(dm::Board::bulk_within(members, params.board_size), least,
                    std::max(least, params.max_size));
  try {
    return create(bulk);
  } catch (const hca::Error& error) {
    if (error.code() != ENOMEM || bulk == least) throw;
  }
  bulk = least;
  return create(bulk);
}

template <class Function>
bool take(Previous<Function>& previous, Function call, mca_coll_base_module_t* module) {
  if (call == nullptr || module == nullptr) return false;
  previous = {call, module};
  OBJ_RETAIN(module);
  return true;
}

template <class Function>
void give_back(Previous<Function>& previous) {
  if (previous.module != nullptr) OBJ_RELEASE(previous.module);
}

}  // namespace

void tell(const char* what, ompi_communicator_t* comm) noexcept {
  std::fprintf(stderr, "weft: coll: communicator %u of %d: %s\n", comm->c_contextid,
               ompi_comm_size(comm), what);
}

bool PreviousFunctions::save_previous(ompi_communicator_t* comm) {
  const mca_coll_base_comm_coll_t& c = *comm->c_coll;
  return take(barrier, c.coll_barrier, c.coll_barrier_module) &&
         take(ibarrier, c.coll_ibarrier, c.coll_ibarrier_module) &&
         take(bcast, c.coll_bcast, c.coll_bcast_module) &&
         take(reduce, c.coll_reduce, c.coll_reduce_module) &&
         take(allreduce, c.coll_allreduce, c.coll_allreduce_module) &&
         take(allgather, c.coll_allgather, c.coll_allgather_module) &&
         take(reduce_local, c.coll_reduce_local, c.coll_reduce_local_module);
}

PreviousFunctions::~PreviousFunctions() {
  give_back(barrier);
  give_back(ibarrier);
  give_back(bcast);
  give_back(reduce);
  give_back(allreduce);
  give_back(allgather);
  give_back(reduce_local);
}

Node::~Node() {
  // Others may still read what this process wrote for the last operation: the last one frees.
  if (board_) memory_->leave(board_->leave());
}

void Node::set_up(ompi_communicator_t* comm) noexcept {
  state_ = State::without;
  const auto members = static_cast<unsigned>(ompi_comm_size(comm));
  const auto self = static_cast<unsigned>(ompi_comm_rank(comm));
  Offer offer{};
  if (self == 0) {
    try {
      std::size_t bulk = 0;
      memory_ = allocate(members, bulk);
      offer.handle = memory_->handle();
      offer.bulk = bulk;
    } catch (const hca::Error& error) {
      offer.none = 1 + static_cast<std::uint64_t>(reason_of(error));
      if (params.verbose >= 1) tell(error.what(), comm);
    } catch (...) {
      offer.none = 1 + static_cast<std::uint64_t>(Fallback::unusable);
    }
  }
  if (bcast.call(&offer, sizeof offer, MPI_BYTE, 0, comm, bcast.module) != OMPI_SUCCESS) return;
  if (offer.none != 0) {
    why_none_ = static_cast<Fallback>(offer.none - 1);
    return;
  }
  int mine = 1;
  if (self != 0) {
    try {
      memory_ = dm::Allocation::attach(offer.handle);
    } catch (const hca::Error& error) {
      mine = 0;
      if (params.verbose >= 1) tell(error.what(), comm);
    } catch (...) {
      mine = 0;
    }
  }
  int all = 0;
  if (allreduce.call(&mine, &all, 1, MPI_INT, MPI_MIN, comm, allreduce.module) != OMPI_SUCCESS ||
      all == 0) {
    memory_.reset();
    return;
  }
  board_.emplace(memory_->memory().data(), members, self, offer.bulk);
  state_ = State::ready;
  Counts::bump(counts.boards);
  if (params.verbose >= 2) tell("on device memory", comm);
}

void Wait::wait_long(bool (*condition)(const void*), const void* argument) noexcept {
  // Point-to-point messages go on: a peer may wait for one before it comes. Every sixteenth look
  // when there are more processes than cores, where the core is worth more to others.
  const unsigned progress_every = spin_limit < 100 ? 16 : 1;
  for (unsigned looks = 0; !condition(argument); ++looks) {
    if (looks % progress_every == progress_every - 1) opal_progress();
    // With a core for each, as long as Open MPI's own waiting does: it yields when it was told to.
    if (spin_limit < 100) ::sched_yield();
  }
}

}  // namespace weft::coll
