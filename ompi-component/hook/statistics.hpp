// The table at MPI_Finalize.
#pragma once

namespace weft::ompi {

/// Rank 0 of the job prints what all its processes counted. Call while messages can still be
/// exchanged; every process of the job calls it, but a process that does not cannot hold it up for
/// ever.
void report_statistics();

}  // namespace weft::ompi
