// MCA parameters and MPI_T performance variables of a component.
#pragma once

#include <atomic>
#include <cstdint>
#include <string>

#include "ompi-component/ompi.hpp"

namespace weft::ompi {

/// A parameter that is read once, from `storage`'s value on.
inline void register_param(const mca_base_component_t& component, const char* name,
                           const char* description, mca_base_var_type_t type,
                           mca_base_var_info_lvl_t level, void* storage) {
  (void)mca_base_component_var_register(&component, name, description, type, nullptr, 0,
                                        static_cast<mca_base_var_flag_t>(0), level,
                                        MCA_BASE_VAR_SCOPE_READONLY, storage);
}

/// What MPI_T calls for a counter that register_counter() told it of.
inline int read_counter(const mca_base_pvar_t* pvar, void* value, void* /*object*/) {
  const auto* counter = static_cast<const std::atomic<std::uint64_t>*>(pvar->ctx);
  *static_cast<unsigned long long*>(value) = counter->load(std::memory_order_relaxed);
  return OPAL_SUCCESS;
}

/// A count that MPI_T reads at any time; `counter` outlives the component.
inline void register_counter(const mca_base_component_t& component, const std::string& name,
                             const std::string& description,
                             const std::atomic<std::uint64_t>& counter) {
  (void)mca_base_component_pvar_register(
      &component, name.c_str(), description.c_str(), OPAL_INFO_LVL_4, MCA_BASE_PVAR_CLASS_COUNTER,
      MCA_BASE_VAR_TYPE_UNSIGNED_LONG_LONG, nullptr, MPI_T_BIND_NO_OBJECT,
      static_cast<mca_base_pvar_flag_t>(MCA_BASE_PVAR_FLAG_READONLY |
                                        MCA_BASE_PVAR_FLAG_CONTINUOUS),
      read_counter, nullptr, nullptr, const_cast<std::atomic<std::uint64_t>*>(&counter));
}

}  // namespace weft::ompi
