// The user's settings, and the defaults of ours that they leave room for.
#pragma once

#include <string>

namespace weft::ompi {

/// Empty, or the setting of the user's (a pml other than ucx, UCX without the transport) under
/// which weft has nothing to do. Then nothing may be changed for the program.
std::string setting_against_weft();

/// Makes Open MPI consider pml/ucx on any transport, by environment variables, where neither the
/// user nor the administrator has said something about it. Every process of a job comes to the same
/// result as long as it sees the same settings.
void set_defaults();

/// Takes back what set_defaults() put into the environment, for the program's own children.
void clear_defaults();

}  // namespace weft::ompi
