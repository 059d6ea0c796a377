// Which Open MPI and UCX this component may touch.
#pragma once

namespace weft::ompi {

/// True if the Open MPI and the UCX of this process are of the series weft was built for. Otherwise
/// one process of the job says so, naming what was found and what is known.
bool versions_are_known();

}  // namespace weft::ompi
