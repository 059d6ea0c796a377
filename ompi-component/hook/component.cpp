// What the component does at the points where Open MPI calls it.
#include "ompi-component/hook/component.h"

#include <exception>

#include "ompi-component/hook/hook.hpp"
#include "ompi-component/hook/layouts.hpp"
#include "ompi-component/hook/log.hpp"
#include "ompi-component/hook/memory_types.hpp"
#include "ompi-component/hook/one_sided.hpp"
#include "ompi-component/hook/params.hpp"
#include "ompi-component/hook/request_watch.hpp"
#include "ompi-component/hook/settings.hpp"
#include "ompi-component/hook/statistics.hpp"
#include "ompi-component/hook/transport.hpp"
#include "ompi-component/hook/versions.hpp"

namespace weft::ompi {
namespace {

void stay_out(Fallback as, std::string why) {
  hook.offloads = false;
  hook.inactive_as = as;
  hook.why_inactive = std::move(why);
  tell(1, "inactive: {}", hook.why_inactive);
}

// Before UCX initialises and before Open MPI reads which pml it may choose. What decides here
// (versions, settings, an installed file) is the same in all processes of a job: they must agree on
// the pml.
void prepare() {
  if (!params.enable) return stay_out(Fallback::inactive, "hook_weft_enable is 0");
  if (const auto objection = setting_against_weft())
    return stay_out(objection->reason, objection->text);
  if (!versions_are_known())
    return stay_out(Fallback::inactive, "UCX or Open MPI is missing or of an unknown version");
  hook.transport = load_transport();
  if (hook.transport == nullptr)
    return stay_out(Fallback::inactive, "the transport library cannot be loaded");
  set_defaults();
}

// The pml is selected and its interfaces are open.
void start_offloading() {
  if (hook.transport == nullptr) return;  // prepare() has said why
  const std::string_view pml = mca_pml_base_selected_component.pmlm_version.mca_component_name;
  if (pml != "ucx") return stay_out(Fallback::pml, fmt::format("the selected pml is {}", pml));
  if (!hook.transport->active())
    return stay_out(Fallback::inactive, hook.transport->why_inactive());
  if (!open_layouts())
    return stay_out(Fallback::inactive, "Open MPI gave no attribute key for datatypes");
  hook.max_window = hook.transport->max_window_size();
  hook.offloads = true;
  share_window_locks();
  if (params.take_turns && ranks_outnumber_cores() && opal_progress_yield_when_idle &&
      !ompi_mpi_thread_multiple) {
    hook.transport->take_turns();
    tell(1, "more ranks than cores: they take turns");
  }
  tell(1, "active");
}

void after_init() {
  clear_defaults();
  Tally::set_concurrent(ompi_mpi_thread_multiple);
  start_offloading();
  // Where nothing is offloaded, the table still says what could have been.
  if (hook.offloads || (params.enable && params.stats)) redirect();
  if (hook.offloads) tell_memory_types();
}

void before_finalize() {
  restore();
  restore_window_locks();
  close_request_watch();
  if (params.stats) report_statistics();
  close_layouts();
}

// Nothing that goes wrong in here may end in the program.
template <typename Function>
void contained(Function function) noexcept {
  try {
    function();
  } catch (const std::exception& error) {
    tell(1, "{}", error.what());
  } catch (...) {
    tell(1, "unknown error");
  }
}

}  // namespace
}  // namespace weft::ompi

using namespace weft::ompi;

// Open MPI registers components also for MPI_T, before MPI_Init and before the pml's parameters are
// read: the only point that is early enough in every order of calls.
int weft_hook_register(void) {
  contained([] {
    register_params();
    register_pvars();
    static bool prepared = false;
    if (!std::exchange(prepared, true)) prepare();
  });
  return OMPI_SUCCESS;
}

int weft_hook_open(void) {
  return OMPI_SUCCESS;
}

void weft_hook_init_bottom(int, char**, int, int*) {
  contained(after_init);
}

void weft_hook_init_error(int, char**, int, int*) {
  contained(clear_defaults);
}

void weft_hook_finalize_top(void) {
  contained(before_finalize);
}
