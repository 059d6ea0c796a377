// What the redirected calls share.
#pragma once

#include <cstdint>
#include <string>

#include "ompi-component/hook/counters.hpp"
#include "ompi-component/ompi.hpp"
#include "ucx-tl/transport_api.hpp"

namespace weft::ompi {

/// The selected pml's own functions. Set before a call is redirected, then constant.
extern mca_pml_base_module_t original;

struct Hook {
  const ucx::TransportApi* transport = nullptr;
  /// Largest packed size of a window.
  std::uint64_t max_window = 0;
  /// Calls are redirected so that messages are offloaded; else at most to count them.
  bool offloads = false;
  /// Where nothing is offloaded: what to count such messages under, and the reason for people.
  Fallback inactive_as = Fallback::inactive;
  std::string why_inactive = "MPI_Init did not get that far";
};

extern Hook hook;

/// Replaces the point-to-point functions of the selected pml, and puts them back.
void redirect();
void restore();

}  // namespace weft::ompi
