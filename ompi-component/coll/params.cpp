#include "ompi-component/coll/params.hpp"

#include <string>

#include "ompi-component/mca_variables.hpp"
//
#include "ompi-component/coll/component.h"

namespace weft::coll {

Params params;
Counts counts;
bool concurrent = false;

namespace {

void register_param(const char* name, const char* description, mca_base_var_type_t type,
                    void* storage) {
  ompi::register_param(mca_coll_weft_component.collm_version, name, description, type,
                       OPAL_INFO_LVL_5, storage);
}

void register_counter(const std::string& name, const std::string& description,
                      const std::atomic<std::uint64_t>& counter) {
  ompi::register_counter(mca_coll_weft_component.collm_version, name, description, counter);
}

void register_counters() {
  static constexpr const char* call_names[calls] = {"barrier", "ibarrier",  "bcast",
                                                    "reduce",  "allreduce", "allgather"};
  static constexpr const char* reasons[fallbacks] = {"size", "operation", "exhausted", "unusable",
                                                     "not_ready"};
  for (std::size_t i = 0; i < calls; ++i) {
    register_counter(call_names[i], std::string("Calls of ") + call_names[i] + " on device memory",
                     counts.done[i]);
  }
  for (std::size_t i = 0; i < fallbacks; ++i) {
    register_counter(std::string("fallback_") + reasons[i],
                     std::string("Calls left to the module before, reason: ") + reasons[i],
                     counts.fallen_back[i]);
  }
  register_counter("communicators", "Communicators that were given device memory", counts.boards);
}

}  // namespace

void register_params() {
  params = Params{};
  register_param("enable", "Run small collectives within a node on the device's memory",
                 MCA_BASE_VAR_TYPE_BOOL, &params.enable);
  register_param("priority", "Priority among Open MPI's coll components", MCA_BASE_VAR_TYPE_INT,
                 &params.priority);
  register_param("verbose", "How much coll/weft tells: 1 what it decided, 2 each communicator",
                 MCA_BASE_VAR_TYPE_INT, &params.verbose);
  register_param(
      "max_size",
      "Largest payload in bytes (of one process); what does not fit board_size falls back",
      MCA_BASE_VAR_TYPE_SIZE_T, &params.max_size);
  register_param("board_size", "Device memory that one communicator may have, in bytes",
                 MCA_BASE_VAR_TYPE_SIZE_T, &params.board_size);
  register_param("max_ranks", "Communicators of more processes are left to other components",
                 MCA_BASE_VAR_TYPE_INT, &params.max_ranks);
  register_param("group_size",
                 "Processes of a node that work together on device memory, led by the first of "
                 "them (0: all of the node)",
                 MCA_BASE_VAR_TYPE_INT, &params.group_size);
  register_param("device", "Emulated device to use (default: UCX_WEFT_DEVICE, or else weft0)",
                 MCA_BASE_VAR_TYPE_STRING, &params.device);
  register_counters();
}

}  // namespace weft::coll
