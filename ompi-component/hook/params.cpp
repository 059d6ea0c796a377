#include "ompi-component/hook/params.hpp"

#include "ompi-component/mca_variables.hpp"

extern "C" const ompi_hook_base_component_t mca_hook_weft_component;

namespace weft::ompi {

Params params;

namespace {

void register_param(const char* name, const char* description, mca_base_var_type_t type,
                    mca_base_var_info_lvl_t level, void* storage) {
  ompi::register_param(mca_hook_weft_component.hookm_version, name, description, type, level,
                       storage);
}

}  // namespace

void register_params() {
  params = Params{};
  register_param("enable",
                 "Send and receive derived datatypes as layout memory regions of weft's device, "
                 "without packing (0: do nothing at all)",
                 MCA_BASE_VAR_TYPE_BOOL, OPAL_INFO_LVL_3, &params.enable);
  register_param(
      "verbose",
      "How much weft tells: 0 nothing, 1 whether and why, 2 every datatype and fall-back",
      MCA_BASE_VAR_TYPE_INT, OPAL_INFO_LVL_3, &params.verbose);
  register_param("stats",
                 "Print one table per job at MPI_Finalize: messages and bytes offloaded, by kind "
                 "of layout, and what fell back and why",
                 MCA_BASE_VAR_TYPE_BOOL, OPAL_INFO_LVL_3, &params.stats);
  register_param("min_size", "Messages of fewer packed bytes than this keep Open MPI's own path",
                 MCA_BASE_VAR_TYPE_SIZE_T, OPAL_INFO_LVL_5, &params.min_size);
  register_param("take_turns",
                 "Where a node has more ranks than cores: wait a moment for the peer before giving "
                 "the core away, and move off a core that the peer waits for",
                 MCA_BASE_VAR_TYPE_BOOL, OPAL_INFO_LVL_5, &params.take_turns);
}

}  // namespace weft::ompi
