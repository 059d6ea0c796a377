// Windows of osc/ucx: the words that lock them move into memory that UCX allocated, next to the
// windows themselves.
//
// osc/ucx keeps these words in the process's own heap. Each MPI_Fetch_and_op, MPI_Compare_and_swap
// and MPI_Accumulate takes a lock there and gives it back, twice a message that the target has to
// attend to, although the operation itself needs nobody. Allocated by UCX they lie in one of the
// transport's shared regions, and the initiator does all of it alone.
#pragma once

namespace weft::ompi {

/// Wraps the selection of osc/ucx for a window, if Open MPI has opened it; and puts it back.
void share_window_locks();
void restore_window_locks();

}  // namespace weft::ompi
