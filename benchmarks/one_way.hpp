// Timing of exchanges between pairs of ranks: 0 and 1, 2 and 3, and so on.
#pragma once

#include <mpi.h>

#include <algorithm>
#include <vector>

namespace weft::benchmarks {

/// Seconds that `count` round trips take, of the slowest pair; even ranks send first.
template <class Send, class Receive>
double round_trips(int rank, long count, Send send, Receive receive) {
  MPI_Barrier(MPI_COMM_WORLD);
  const double began = MPI_Wtime();
  for (long i = 0; i < count; ++i) {
    if (rank % 2 == 0) {
      send();
      receive();
    } else {
      receive();
      send();
    }
  }
  double seconds = MPI_Wtime() - began;
  int ranks;
  MPI_Comm_size(MPI_COMM_WORLD, &ranks);
  if (ranks > 2) MPI_Allreduce(MPI_IN_PLACE, &seconds, 1, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD);
  return seconds;
}

/// How thoroughly one_way() measures.
struct Effort {
  double seconds;   ///< in all, about
  int batches;      ///< whose median counts
  long least;       ///< round trips of a batch
  long most_trial;  ///< of the trials that find out how long one takes
};

/// Seconds one way, on all ranks; `trips(count)` are the seconds of so many round trips.
template <class Trips>
double one_way(const Effort& effort, Trips trips) {
  constexpr long warm_up = 3, most = 1000000;
  trips(warm_up);
  // A batch takes its share of the time, by the fastest of the trials: one that was interrupted
  // would make the batches so short that they measure how the ranks leave the barrier.
  const double share = effort.seconds / effort.batches;
  double each = 1;
  for (long trial = 1; trial <= effort.most_trial; trial *= 4) {
    each = std::min(each, trips(trial) / static_cast<double>(trial));
  }
  long count = std::clamp(static_cast<long>(share / std::max(each, 1e-9)), effort.least, most);
  MPI_Bcast(&count, 1, MPI_LONG, 0, MPI_COMM_WORLD);
  std::vector<double> batches(effort.batches);
  for (double& batch : batches) batch = trips(count) / (2.0 * static_cast<double>(count));
  std::sort(batches.begin(), batches.end());
  double median = batches[batches.size() / 2];
  MPI_Bcast(&median, 1, MPI_DOUBLE, 0, MPI_COMM_WORLD);
  return median;
}

/// Whether it is so on all ranks.
inline bool on_all(bool right) {
  int mine = right, all = 0;
  MPI_Allreduce(&mine, &all, 1, MPI_INT, MPI_LAND, MPI_COMM_WORLD);
  return all != 0;
}

}  // namespace weft::benchmarks
