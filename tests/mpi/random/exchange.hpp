// Carries out one batch and compares what arrived with the oracle.
#pragma once

#include <mpi.h>

#include <string>
#include <vector>

#include "tests/mpi/random/plan.hpp"

namespace weft::random_types {

/// Called by the ranks 0 and 1 of `comm` with the same batch. Returns what was wrong on this rank.
std::vector<std::string> run_batch(const Batch& batch, MPI_Comm comm);

}  // namespace weft::random_types
