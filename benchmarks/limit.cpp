#include "benchmarks/limit.hpp"

#include <algorithm>
#include <cstring>
#include <limits>
#include <memory>
#include <new>

#include "benchmarks/content.hpp"
#include "benchmarks/one_way.hpp"

namespace weft::benchmarks {
namespace {

/// Takes a side apart from its first byte on, in one pass over its blocks.
class Cutter {
 public:
  explicit Cutter(const Side& side) : blocks_(side.blocks) {}

  /// The blocks of the next `bytes` packed bytes.
  Side next(std::size_t bytes) {
    Side part;
    while (bytes != 0) {
      const Block& block = blocks_[index_];
      const std::size_t length = std::min(block.length - within_, bytes);
      part.blocks.push_back({block.offset + within_, length});
      bytes -= length;
      within_ += length;
      if (within_ == block.length) {
        ++index_;
        within_ = 0;
      }
    }
    return part;
  }

 private:
  const std::vector<Block>& blocks_;
  std::size_t index_ = 0, within_ = 0;
};

}  // namespace

Limit::Limit(const Shape& shape)
    : shape_(shape),
      from_(shape.send.memory),
      to_(shape.recv.memory, untouched),
      stage_(most_piece) {
  MPI_Comm_rank(MPI_COMM_WORLD, &rank_);
  void* own = nullptr;
  MPI_Win_allocate_shared(sizeof(Channel) + line, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &own, &window_);
  const auto channel_of = [this](int rank) {
    MPI_Aint size;
    int unit;
    void* base = nullptr;
    MPI_Win_shared_query(window_, rank, &size, &unit, &base);
    std::size_t room = sizeof(Channel) + line;
    return std::align(line, sizeof(Channel), base, room);
  };
  out_ = new (channel_of(rank_)) Channel{};
  for (Slot& slot : out_->slot) slot.filled = -1;
  in_ = static_cast<Channel*>(channel_of(1 - rank_));
  fill(shape.send, rank_, from_);

  const std::size_t bytes = shape.bytes();
  for (std::size_t piece = std::min<std::size_t>(bytes, 2048);; piece *= 4) {
    cuts_.push_back(cut(shape, std::min(piece, most_piece)));
    if (piece >= bytes || piece >= most_piece) break;
  }
  for (std::vector<Piece>& pieces : cuts_) {
    ways_.push_back({&pieces, false});
    if (shape.send.blocks.size() > 1) ways_.push_back({&pieces, true});
  }
  best_ = ways_.front();
  MPI_Barrier(MPI_COMM_WORLD);
}

Limit::~Limit() {
  MPI_Win_free(&window_);
}

std::vector<Limit::Piece> Limit::cut(const Shape& shape, std::size_t bytes) {
  std::vector<Piece> pieces;
  Cutter send(shape.send), recv(shape.recv);
  for (std::size_t left = shape.bytes(); left != 0;) {
    const std::size_t piece = std::min(bytes, left);
    pieces.push_back({HandPack(send.next(piece)), HandPack(recv.next(piece)), piece});
    left -= piece;
  }
  return pieces;
}

void Limit::send(const Way& way) {
  for (const Piece& piece : *way.pieces) {
    while (sent_ - out_->taken.load(std::memory_order_acquire) >= slots) {
    }
    Slot& slot = out_->slot[sent_ % slots];
    std::byte* to = piece.bytes <= sizeof slot.inlined ? slot.inlined : slot.data;
    piece.pack.pack(from_.data(), way.staged ? stage_.data() : to);
    if (way.staged) std::memcpy(to, stage_.data(), piece.bytes);
    slot.filled.store(sent_++, std::memory_order_release);
  }
}

void Limit::receive(const Way& way) {
  for (const Piece& piece : *way.pieces) {
    Slot& slot = in_->slot[received_ % slots];
    while (slot.filled.load(std::memory_order_acquire) != received_) {
    }
    const std::byte* from = piece.bytes <= sizeof slot.inlined ? slot.inlined : slot.data;
    piece.unpack.unpack(from, to_.data());
    ++received_;
    // A sender of few pieces does not wait for each of them.
    if (received_ % (slots / 4) == 0) in_->taken.store(received_, std::memory_order_release);
  }
}

double Limit::round_trips(const Way& way, long count) {
  return benchmarks::round_trips(
      rank_, count, [&] { send(way); }, [&] { receive(way); });
}

double Limit::time(double seconds) {
  const Effort effort{seconds / static_cast<double>(ways_.size()), 5, 4, 16};
  double least = std::numeric_limits<double>::infinity();
  for (const Way& way : ways_) {
    const double median = one_way(effort, [&](long count) { return round_trips(way, count); });
    if (median < least) {
      least = median;
      best_ = way;
    }
  }
  return least;
}

bool Limit::verify() {
  std::fill(to_.begin(), to_.end(), untouched);
  round_trips(best_, 1);
  return on_all(arrived(shape_, 1 - rank_, to_));
}

}  // namespace weft::benchmarks
