// One shape between two ranks: how long one way takes, and whether it arrived right. With more
// ranks, pairs of neighbours exchange at the same time.
#pragma once

#include <mpi.h>

#include <cstddef>
#include <vector>

#include "benchmarks/hand_pack.hpp"
#include "benchmarks/shape.hpp"

namespace weft::benchmarks {

class PingPong {
 public:
  /// With `by_hand` the program packs what is not contiguous itself and sends bytes.
  PingPong(const Shape& shape, bool by_hand);

  /// Seconds one way (median of several batches that take about `seconds` in all), of the slowest
  /// pair. On all ranks.
  double time(double seconds);
  /// One more exchange in each direction, every byte of it checked, the gaps too.
  bool verify();

 private:
  void send();
  void receive();
  double round_trips(long count);

  const Shape& shape_;
  bool by_hand_;
  int rank_ = 0, partner_ = 0;
  std::size_t bytes_;
  std::vector<std::byte> out_, in_, staged_;
  HandPack pack_, unpack_;
};

}  // namespace weft::benchmarks
