#include "benchmarks/ping_pong.hpp"

#include <algorithm>

#include "benchmarks/content.hpp"
#include "benchmarks/one_way.hpp"

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
  partner_ = rank_ ^ 1;
  fill(shape.send, rank_, out_);
}

void PingPong::send() {
  if (!by_hand_ || shape_.send.blocks.size() == 1) {
    MPI_Send(out_.data(), shape_.send.count, shape_.send.type, partner_, 0, MPI_COMM_WORLD);
    return;
  }
  pack_.pack(out_.data(), staged_.data());
  MPI_Send(staged_.data(), static_cast<int>(bytes_), MPI_BYTE, partner_, 0, MPI_COMM_WORLD);
}

void PingPong::receive() {
  if (!by_hand_ || shape_.recv.blocks.size() == 1) {
    MPI_Recv(in_.data(), shape_.recv.count, shape_.recv.type, partner_, 0, MPI_COMM_WORLD,
             MPI_STATUS_IGNORE);
    return;
  }
  MPI_Recv(staged_.data(), static_cast<int>(bytes_), MPI_BYTE, partner_, 0, MPI_COMM_WORLD,
           MPI_STATUS_IGNORE);
  unpack_.unpack(staged_.data(), in_.data());
}

double PingPong::round_trips(long count) {
  return benchmarks::round_trips(
      rank_, count, [this] { send(); }, [this] { receive(); });
}

double PingPong::time(double seconds) {
  return one_way({seconds, 7, 8, 64}, [this](long count) { return round_trips(count); });
}

bool PingPong::verify() {
  std::fill(in_.begin(), in_.end(), untouched);
  round_trips(1);
  return on_all(arrived(shape_, partner_, in_));
}

}  // namespace weft::benchmarks
