// The user's settings, and the defaults of ours that they leave room for.
#pragma once

#include <optional>
#include <string>

#include "ompi-component/hook/counters.hpp"

namespace weft::ompi {

struct Objection {
  Fallback reason;
  std::string text;
};

/// The setting of the user's, if any, under which weft has nothing to do: a pml other than ucx, UCX
/// without the transport. Then nothing may be changed for the program.
std::optional<Objection> setting_against_weft();

/// Makes Open MPI consider pml/ucx on any transport, by environment variables, where neither the
/// user nor the administrator has said something about it. Every process of a job comes to the same
/// result as long as it sees the same settings.
void set_defaults();

/// Whether this node has more processes of the job than cores.
bool ranks_outnumber_cores();

/// Takes back what set_defaults() put into the environment, for the program's own children.
void clear_defaults();

}  // namespace weft::ompi
