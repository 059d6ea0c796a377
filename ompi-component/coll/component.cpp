// What coll/weft does at the points where Open MPI calls it.
#include "dm/back_off.hpp"
#include "ompi-component/coll/collectives.hpp"
#include "ompi-component/coll/levels.hpp"
#include "ompi-component/ompi_version.hpp"

namespace weft::coll {
namespace {

/// hook_weft_enable 0 keeps all of weft out.
bool hook_is_off() {
  const int index = mca_base_var_find("ompi", "hook", "weft", "enable");
  const bool* value = nullptr;
  if (index < 0 || mca_base_var_get_value(index, &value, nullptr, nullptr) != OPAL_SUCCESS)
    return false;
  return value != nullptr && !*value;
}

/// What spawned and connected jobs know of each other's place need not be the same on both sides,
/// but whether there is another job is.
bool is_one_job(ompi_communicator_t* comm) {
  ompi_group_t* group = comm->c_local_group;
  for (int i = 0; i < ompi_group_size(group); ++i) {
    if (ompi_group_get_proc_name(group, i).jobid != OMPI_PROC_MY_NAME->jobid) return false;
  }
  return true;
}

/// Whether its processes work together on one board: the same for all of them.
bool is_one_group(ompi_communicator_t* comm) {
  return !ompi_group_have_remote_peers(comm->c_local_group) &&
         (params.group_size <= 0 || ompi_comm_size(comm) <= params.group_size);
}

int enable_node(mca_coll_base_module_t* module, ompi_communicator_t* comm) {
  return node_of(module).save_previous(comm) ? OMPI_SUCCESS : OMPI_ERROR;
}

int enable_levels(mca_coll_base_module_t* module, ompi_communicator_t* comm) {
  return levels_of(module).previous.save_previous(comm) ? OMPI_SUCCESS : OMPI_ERROR;
}

bool prepare_node(weft_coll_module* module) {
  module->node = new (std::nothrow) Node;
  mca_coll_base_module_t& m = module->super;
  m.coll_module_enable = enable_node;
  m.coll_barrier = barrier;
  m.coll_ibarrier = ibarrier;
  m.coll_bcast = bcast;
  m.coll_reduce = reduce;
  m.coll_allreduce = allreduce;
  m.coll_allgather = allgather;
  return module->node != nullptr;
}

bool prepare_levels(weft_coll_module* module) {
  module->levels = new (std::nothrow) Levels;
  mca_coll_base_module_t& m = module->super;
  m.coll_module_enable = enable_levels;
  m.coll_barrier = levels_barrier;
  m.coll_bcast = levels_bcast;
  m.coll_reduce = levels_reduce;
  m.coll_allreduce = levels_allreduce;
  return module->levels != nullptr;
}

}  // namespace
}  // namespace weft::coll

using namespace weft::coll;

int weft_coll_register(void) {
  register_params();
  return OMPI_SUCCESS;
}

int weft_coll_close(void) {
  stop_progress();
  return OMPI_SUCCESS;
}

int weft_coll_init_query(bool, bool mpi_threads) {
  concurrent = mpi_threads;
  if (!params.enable || hook_is_off() ||
      !same_series(weft::ompi::running_ompi(), weft::ompi::known_ompi))
    return OMPI_ERR_NOT_AVAILABLE;
  const unsigned processes = static_cast<unsigned>(ompi_process_info.num_local_peers) + 1;
  Wait::spin_limit = processes > weft::dm::cores() ? 8 : 2000;
  return OMPI_SUCCESS;
}

mca_coll_base_module_t* weft_coll_comm_query(ompi_communicator_t* comm, int* priority) {
  *priority = params.priority;
  const int size = OMPI_COMM_IS_INTER(comm) ? 0 : ompi_comm_size(comm);
  if (params.priority < 0 || size < 2 || !is_one_job(comm)) return nullptr;
  const bool one_group = is_one_group(comm);
  if (one_group && size > params.max_ranks) return nullptr;
  weft_coll_module* module = OBJ_NEW(weft_coll_module);
  if (module == nullptr) return nullptr;
  if (one_group ? prepare_node(module) : prepare_levels(module)) return &module->super;
  OBJ_RELEASE(module);
  return nullptr;
}

void weft_coll_construct(weft_coll_module* module) {
  module->node = nullptr;
  module->levels = nullptr;
}

void weft_coll_destruct(weft_coll_module* module) {
  delete static_cast<Node*>(module->node);
  delete static_cast<Levels*>(module->levels);
}
