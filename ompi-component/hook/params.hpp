// The MCA parameters hook_weft_*.
#pragma once

#include <cstddef>

namespace weft::ompi {

struct Params {
  bool enable = true;
  int verbose = 0;
  bool stats = false;
  std::size_t min_size = 0;
  bool take_turns = true;
};

extern Params params;

/// Registers the parameters with Open MPI, which sets them from the user's settings.
void register_params();

}  // namespace weft::ompi
