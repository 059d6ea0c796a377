#include "benchmarks/ping_pong.hpp"

#include <algorithm>
#include <array>
#include <cstring>

#include "benchmarks/content.hpp"

namespace weft::benchmarks {
PingPong::PingPong(const Shape& shape, bool by_hand)
    : shape_(shape),
      by_hand_(by_hand),
      bytes_(shape.bytes()),
      out_(shape.send.memory),
      in_(shape.recv.memory, untouched),
      staged_(by_hand ? bytes_ : 0),
      pack_(shape.send),
      unpack_(shape.recv) {
  MPI_Comm_rank(MPI_COMM_WORLD, &rank_);
  fill(shape.send, rank_, out_);
}

void PingPong::send() {
  if (!by_hand_ || shape_.send.blocks.size() == 1) {
    MPI_Send(out_.data(), shape_.send.count, shape_.send.type, 1 - rank_, 0, MPI_COMM_WORLD);
    return;
  }
  pack_.pack(out_.data(), staged_.data());
  MPI_Send(staged_.data(), static_cast<int>(bytes_), MPI_BYTE, 1 - rank_, 0, MPI_COMM_WORLD);
}

void PingPong::receive() {
  if (!by_hand_ || shape_.recv.blocks.size() == 1) {
    MPI_Recv(in_.data(), shape_.recv.count, shape_.recv.type, 1 - rank_, 0, MPI_COMM_WORLD,
             MPI_STATUS_IGNORE);
    return;
  }
  MPI_Recv(staged_.data(), static_cast<int>(bytes_), MPI_BYTE, 1 - rank_, 0, MPI_COMM_WORLD,
           MPI_STATUS_IGNORE);
  unpack_.unpack(staged_.data(), in_.data());
}

double PingPong::round_trips(long count) {
  MPI_Barrier(MPI_COMM_WORLD);
  const double began = MPI_Wtime();
  for (long i = 0; i < count; ++i) {
    if (rank_ == 0) {
      send();
      receive();
    } else {
      receive();
      send();
    }
  }
  return MPI_Wtime() - began;
}

double PingPong::time(double seconds) {
  constexpr long warm_up = 3, most = 1000000;
  std::array<double, 7> batches{};
  round_trips(warm_up);
  // A batch takes its share of the time, by the fastest of the trials: one that was interrupted
  // would make the batches so short that they measure how the ranks leave the barrier.
  const double share = seconds / batches.size();
  constexpr long least = 8;
  double each = 1;
  for (long trial = 1; trial <= 64; trial *= 4) {
    each = std::min(each, round_trips(trial) / static_cast<double>(trial));
  }
  long count = std::clamp(static_cast<long>(share / std::max(each, 1e-9)), least, most);
  MPI_Bcast(&count, 1, MPI_LONG, 0, MPI_COMM_WORLD);
  for (double& batch : batches) batch = round_trips(count) / (2.0 * static_cast<double>(count));
  std::sort(batches.begin(), batches.end());
  double median = batches[batches.size() / 2];
  MPI_Bcast(&median, 1, MPI_DOUBLE, 0, MPI_COMM_WORLD);
  return median;
}

bool PingPong::verify() {
  std::fill(in_.begin(), in_.end(), untouched);
  round_trips(1);
  int right = arrived(shape_, 1 - rank_, in_), both = 0;
  MPI_Allreduce(&right, &both, 1, MPI_INT, MPI_LAND, MPI_COMM_WORLD);
  return both != 0;
}

}  // namespace weft::benchmarks
