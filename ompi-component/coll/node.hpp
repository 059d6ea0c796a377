// Node: what coll/weft keeps for one communicator whose processes are all on this node.
#pragma once

#include <memory>
#include <optional>

#include "dm/allocation.hpp"
#include "dm/back_off.hpp"
#include "dm/board.hpp"
#include "ompi-component/coll/params.hpp"
#include "ompi-component/ompi.hpp"
//
#include "ompi-component/coll/component.h"

namespace weft::coll {

/// A function of the module that was there before, and that module.
template <class Function>
struct Previous {
  Function call = nullptr;
  mca_coll_base_module_t* module = nullptr;
};

/// The functions of the modules that were there before, kept for as long as they may be called.
struct PreviousFunctions {
  PreviousFunctions() = default;
  ~PreviousFunctions();
  PreviousFunctions(const PreviousFunctions&) = delete;
  PreviousFunctions& operator=(const PreviousFunctions&) = delete;
  /// Takes the functions that the communicator has so far; false when one is missing.
  bool save_previous(ompi_communicator_t* comm);

  Previous<mca_coll_base_module_barrier_fn_t> barrier;
  Previous<mca_coll_base_module_ibarrier_fn_t> ibarrier;
  Previous<mca_coll_base_module_bcast_fn_t> bcast;
  Previous<mca_coll_base_module_reduce_fn_t> reduce;
  Previous<mca_coll_base_module_allreduce_fn_t> allreduce;
  Previous<mca_coll_base_module_allgather_fn_t> allgather;
  Previous<mca_coll_base_module_reduce_local_fn_t> reduce_local;
};

class Node : public PreviousFunctions {
 public:
  ~Node();

  /// The board, or null: then `why` all processes of the communicator leave the call to the module
  /// before, since all come to the same answer. The first call allocates and is collective.
  dm::Board* board(ompi_communicator_t* comm) noexcept {
    if (state_ == State::fresh) [[unlikely]] {
      set_up(comm);
    }
    return board_ ? &*board_ : nullptr;
  }
  /// The board when it is there already.
  dm::Board* ready_board() noexcept { return board_ ? &*board_ : nullptr; }
  [[nodiscard]] Fallback why_none() const noexcept {
    return state_ == State::fresh ? Fallback::not_ready : why_none_;
  }

 private:
  enum class State : std::uint8_t { fresh, ready, without };
  [[gnu::noinline]] void set_up(ompi_communicator_t* comm) noexcept;

  State state_ = State::fresh;
  Fallback why_none_ = Fallback::unusable;
  std::unique_ptr<dm::Allocation> memory_;
  std::optional<dm::Board> board_;
};

/// Says something about a communicator.
void tell(const char* what, ompi_communicator_t* comm) noexcept;

inline Node& node_of(mca_coll_base_module_t* module) noexcept {
  return *static_cast<Node*>(reinterpret_cast<weft_coll_module*>(module)->node);
}

/// Waits for other processes' stores; meanwhile MPI's own progress goes on.
struct Wait {
  template <class Condition>
  void operator()(Condition condition) const noexcept {
    for (unsigned spins = spin_limit; spins != 0; --spins) {
      if (condition()) return;
      dm::pause();
    }
    wait_long([](const void* c) { return (*static_cast<const Condition*>(c))(); }, &condition);
  }
  /// Looks before anything else is done.
  static inline unsigned spin_limit = 2000;

 private:
  static void wait_long(bool (*condition)(const void*), const void* argument) noexcept;
};

}  // namespace weft::coll
