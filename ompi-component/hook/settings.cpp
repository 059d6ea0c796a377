#include "ompi-component/hook/settings.hpp"

#include <cstdlib>
#include <initializer_list>
#include <optional>
#include <string_view>
#include <vector>

#include "dm/back_off.hpp"
#include "ompi-component/hook/log.hpp"
#include "ompi-component/hook/name_list.hpp"
#include "ompi-component/ompi.hpp"

namespace weft::ompi {
namespace {

std::string mca_string(const char* framework, const char* component, const char* name) {
  const int index = mca_base_var_find("opal", framework, component, name);
  const char* const* value = nullptr;
  if (index < 0 || mca_base_var_get_value(index, &value, nullptr, nullptr) != OPAL_SUCCESS ||
      value == nullptr || *value == nullptr)
    return {};
  return *value;
}

// Open MPI's parser takes a callback without a context.
struct Lookup {
  std::initializer_list<const char*> names;
  std::optional<std::string> found;
};
thread_local Lookup* current_lookup = nullptr;

void look_at(const char* key, const char* value) {
  for (const char* name : current_lookup->names)
    if (std::string_view(key) == name) current_lookup->found = value ? value : "";
}

std::optional<std::string> value_in_file(const std::string& file,
                                         std::initializer_list<const char*> names) {
  Lookup lookup{names, std::nullopt};
  current_lookup = &lookup;
  (void)opal_util_keyval_parse(file.c_str(), look_at);
  current_lookup = nullptr;
  return lookup.found;
}

// Debian ships this as the system's default; it says nothing about what anyone here wants.
bool is_distribution_default(const std::string& file, std::string_view value) {
  return value == "^ucx" && file.ends_with("/openmpi-mca-params.conf");
}

/// What the user or the administrator has set the first of these (synonymous) MCA parameters to.
std::optional<std::string> chosen_setting(std::initializer_list<const char*> names) {
  if (auto value = value_in_file(mca_string("mca", "base", "override_param_file"), names))
    return value;
  for (const char* name : names)
    if (const char* value = std::getenv(("OMPI_MCA_" + std::string(name)).c_str())) return value;
  // Further to the left wins.
  for (const std::string& file : split(mca_string("mca", "base", "param_files"), ','))
    if (auto value = value_in_file(file, names)) {
      if (is_distribution_default(file, *value)) continue;
      return value;
    }
  return std::nullopt;
}

std::string ucx_transports() {
  // pml/ucx reads UCX's configuration with the prefix MPI.
  for (const char* name : {"MPI_UCX_TLS", "UCX_TLS"})
    if (const char* value = std::getenv(name)) return value;
  return "all";
}

std::vector<std::string> variables_set;

void set_default(const char* variable, const char* value) {
  if (std::getenv(variable) != nullptr) return;
  ::setenv(variable, value, 0);
  variables_set.emplace_back(variable);
}

}  // namespace

std::optional<Objection> setting_against_weft() {
  if (const auto pml = chosen_setting({"pml"}); pml && !pml->empty() && !list_allows(*pml, "ucx"))
    return Objection{Fallback::pml, fmt::format("the parameter pml is {}", *pml)};
  const std::string transports = ucx_transports();
  for (const char* ours : {"weft", "weft_cp"})
    if (!ucx_list_allows(transports, ours))
      return Objection{Fallback::inactive,
                       fmt::format("UCX_TLS is {}, without {}", transports, ours)};
  return std::nullopt;
}

bool ranks_outnumber_cores() {
  const char* ranks = std::getenv("OMPI_COMM_WORLD_LOCAL_SIZE");  // by mpirun
  return ranks != nullptr && std::atol(ranks) > static_cast<long>(dm::cores());
}

void set_defaults() {
  // Not `ucx`: should UCX then decline, MPI_Init would fail. With `^cm` ucx wins by priority and
  // ob1 is still there.
  if (!chosen_setting({"pml"})) set_default("OMPI_MCA_pml", "^cm");
  // Without these pml/ucx refuses to run where there is no InfiniBand device.
  if (!chosen_setting({"opal_common_ucx_tls", "pml_ucx_tls", "osc_ucx_tls"}))
    set_default("OMPI_MCA_opal_common_ucx_tls", "any");
  if (!chosen_setting({"opal_common_ucx_devices", "pml_ucx_devices", "osc_ucx_devices"}))
    set_default("OMPI_MCA_opal_common_ucx_devices", "any");
  // What UCX allocates (MPI_Win_allocate under osc/ucx) lies in weft's shared regions, whose
  // put, get and atomics need no help from their target. Not cleared after MPI_Init: osc/ucx reads
  // it with the first window.
  if (std::getenv("UCX_ALLOC_PRIO") == nullptr)
    ::setenv("MPI_UCX_ALLOC_PRIO", "md:weft,md:sysv,md:posix,huge,thp,md:*,mmap,heap", 0);
}

void clear_defaults() {
  for (const std::string& variable : variables_set) ::unsetenv(variable.c_str());
  variables_set.clear();
}

}  // namespace weft::ompi
