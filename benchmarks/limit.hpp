// What the machine allows: one shape between two processes through memory they share, without MPI's
// work. The best of a fixed set of piece sizes and ways to fill a piece.
#pragma once

#include <mpi.h>

#include <atomic>
#include <cstddef>
#include <vector>

#include "benchmarks/hand_pack.hpp"
#include "benchmarks/shape.hpp"

namespace weft::benchmarks {

class Limit {
 public:
  /// Collective over MPI_COMM_WORLD's two ranks, which must share memory.
  explicit Limit(const Shape& shape);
  ~Limit();
  Limit(const Limit&) = delete;
  Limit& operator=(const Limit&) = delete;

  /// Seconds one way of the best way found, each tried for its share of `seconds`. On both ranks.
  double time(double seconds);
  /// One exchange in each direction in the way that was best, every byte checked, the gaps too.
  bool verify();

 private:
  static constexpr int slots = 8;
  static constexpr std::size_t line = 64;
  static constexpr std::size_t most_piece = 64 * 1024;

  /// One direction: a slot's line says which piece it holds, and has room for a short one.
  struct Slot {
    alignas(line) std::atomic<long> filled;
    std::byte inlined[line - sizeof(std::atomic<long>)];
    alignas(line) std::byte data[most_piece];
    alignas(line) std::byte gap[line];  ///< slots 64 KiB apart would share their cache sets
  };
  struct Channel {
    alignas(line) std::atomic<long> taken;
    Slot slot[slots];
  };
  struct Piece {
    HandPack pack, unpack;
    std::size_t bytes;
  };
  struct Way {
    std::vector<Piece>* pieces;
    bool staged;  ///< packed in the cache first, then copied into the slot in whole lines
  };

  static std::vector<Piece> cut(const Shape& shape, std::size_t bytes);
  void send(const Way& way);
  void receive(const Way& way);
  double round_trips(const Way& way, long count);

  const Shape& shape_;
  int rank_ = 0;
  MPI_Win window_ = MPI_WIN_NULL;
  Channel* out_ = nullptr;
  Channel* in_ = nullptr;
  long sent_ = 0, received_ = 0;
  std::vector<std::byte> from_, to_, stage_;
  std::vector<std::vector<Piece>> cuts_;
  std::vector<Way> ways_;
  Way best_{};
};

}  // namespace weft::benchmarks
