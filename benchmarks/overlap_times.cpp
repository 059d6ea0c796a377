// How much of a large transfer goes on while the ranks compute. A plain MPI program;
// benchmarks/overlap starts it under every contender and compares.
//
//   mpirun -np 2 overlap_times [--repetitions N] [--only NUMBER,NUMBER..] [--tests N]
//
// Rank 0 sends by MPI_Isend, rank 1 receives by MPI_Irecv, both compute, both wait. "announced":
// the receive is posted when the message is known to be there (MPI_Probe), so that nothing is left
// to be matched while they compute; "posted": before the send. "compute" keeps the cores busy,
// "sleep" leaves them idle, as a program does that waits for a device or a disk. `--tests N`:
// both call MPI_Test N times, at equal distances, while they compute.
//
// Prints a JSON object per line; times are medians in seconds: "transfer" alone, the phase "alone",
// "both" together, and "phase", how long the phase took while the transfer was under way.
#include <mpi.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <sstream>
#include <string>
#include <thread>
#include <vector>

#include "benchmarks/content.hpp"
#include "benchmarks/one_way.hpp"
#include "benchmarks/shape.hpp"

namespace {

using weft::benchmarks::Shape;

constexpr int usage_error = 2;

struct Options {
  int repetitions = 15;
  int tests = 0;
  std::vector<int> only = {3, 5, 13, 107, 108, 109};
};

Options parse(int argc, char** argv) {
  Options options;
  for (int i = 1; i < argc; ++i) {
    const std::string option = argv[i];
    if (option == "--repetitions" && i + 1 < argc) {
      options.repetitions = std::max(1, std::atoi(argv[++i]));
    } else if (option == "--tests" && i + 1 < argc) {
      options.tests = std::max(0, std::atoi(argv[++i]));
    } else if (option == "--only" && i + 1 < argc) {
      options.only.clear();
      std::stringstream numbers(argv[++i]);
      for (std::string number; std::getline(numbers, number, ',');) {
        options.only.push_back(std::atoi(number.c_str()));
      }
    } else {
      std::fprintf(stderr,
                   "usage: overlap_times [--repetitions N] [--tests N] [--only NUMBER,NUMBER..]\n");
      std::exit(usage_error);
    }
  }
  return options;
}

std::vector<Shape> shapes() {
  std::vector<Shape> all = weft::benchmarks::all_shapes();
  constexpr std::size_t bytes = 16 << 20;
  const weft::benchmarks::Side flat{MPI_BYTE, static_cast<int>(bytes), bytes, {{0, bytes}}};
  all.push_back({109, "contiguous 16 MiB", flat, flat});
  return all;
}

/// What a rank does between posting and waiting.
class Phase {
 public:
  enum Kind { compute, sleep };

  explicit Phase(Kind kind) : kind_(kind) { numbers_.fill(1.5); }
  /// Makes it take about so many seconds; the same work on both ranks.
  void last(double seconds) {
    seconds_ = seconds;
    if (kind_ == sleep) return;
    constexpr long trial = 2000;
    double each = 1;
    for (int i = 0; i < 5; ++i) {
      const double began = MPI_Wtime();
      multiply(trial);
      each = std::min(each, (MPI_Wtime() - began) / trial);
    }
    rounds_ = std::max(1L, std::lround(seconds / each));
    MPI_Bcast(&rounds_, 1, MPI_LONG, 0, MPI_COMM_WORLD);
  }
  /// One of `parts` equal parts of it.
  void run(int parts) {
    if (kind_ == sleep) {
      std::this_thread::sleep_for(std::chrono::duration<double>(seconds_ / parts));
    } else {
      multiply(rounds_ / parts);
    }
  }

 private:
  /// Passes over a few KiB, which stay in the L1 cache.
  void multiply(long rounds) {
    for (long i = 0; i < rounds; ++i) {
      for (double& number : numbers_) number = number * 0.999999 + 1e-6;
      // Each pass is done, whatever becomes of its result.
      asm volatile("" : : "r"(numbers_.data()) : "memory");
    }
  }

  Kind kind_;
  double seconds_ = 0;
  long rounds_ = 0;
  std::array<double, 512> numbers_{};
};

struct Times {
  double all = 0;    ///< until both ranks have done everything
  double phase = 0;  ///< of the phase, mean of the ranks
};

class Overlap {
 public:
  Overlap(const Shape& shape, bool announced, int tests)
      : shape_(shape),
        announced_(announced),
        tests_(tests),
        out_(shape.send.memory),
        in_(shape.recv.memory, weft::benchmarks::untouched) {
    MPI_Comm_rank(MPI_COMM_WORLD, &rank_);
    weft::benchmarks::fill(shape.send, 0, out_);
  }

  /// Each may be left out.
  Times run(bool transfer, Phase* phase) {
    MPI_Request request = MPI_REQUEST_NULL;
    MPI_Barrier(MPI_COMM_WORLD);
    const double began = MPI_Wtime();
    if (transfer) post(&request);
    const double posted = MPI_Wtime();
    if (phase != nullptr) {
      for (int i = 0; i < tests_; ++i) {
        phase->run(tests_ + 1);
        int done = 0;
        MPI_Test(&request, &done, MPI_STATUS_IGNORE);
      }
      phase->run(tests_ + 1);
    }
    const double computed = MPI_Wtime();
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    const double ended = MPI_Wtime();
    double last = 0, sum = 0;
    const double mine = ended - began, length = computed - posted;
    MPI_Allreduce(&mine, &last, 1, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD);
    MPI_Allreduce(&length, &sum, 1, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
    return {last, sum / 2};
  }
  bool verify(Phase& phase) {
    std::fill(in_.begin(), in_.end(), weft::benchmarks::untouched);
    run(true, &phase);
    return weft::benchmarks::on_all(rank_ == 0 || weft::benchmarks::arrived(shape_, 0, in_));
  }

 private:
  void post(MPI_Request* request) {
    if (rank_ == 0) {
      if (!announced_) MPI_Recv(nullptr, 0, MPI_BYTE, 1, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
      MPI_Isend(out_.data(), shape_.send.count, shape_.send.type, 1, 0, MPI_COMM_WORLD, request);
      return;
    }
    if (announced_) MPI_Probe(0, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    MPI_Irecv(in_.data(), shape_.recv.count, shape_.recv.type, 0, 0, MPI_COMM_WORLD, request);
    if (!announced_) MPI_Send(nullptr, 0, MPI_BYTE, 0, 1, MPI_COMM_WORLD);
  }

  const Shape& shape_;
  bool announced_;
  int tests_;
  int rank_ = 0;
  std::vector<std::byte> out_;
  std::vector<std::byte> in_;
};

double median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  return values[values.size() / 2];
}

/// One line of the output.
bool measure(const Options& options, const Shape& shape, bool announced, Phase::Kind kind,
             int factor, int rank) {
  Overlap overlap(shape, announced, options.tests);
  std::vector<double> transfer, alone, both, phase_alone, phase_both;
  const auto add_transfer = [&] { transfer.push_back(overlap.run(true, nullptr).all); };
  for (int i = 0; i < 8; ++i) add_transfer();
  double length = factor * *std::min_element(transfer.begin(), transfer.end());
  MPI_Bcast(&length, 1, MPI_DOUBLE, 0, MPI_COMM_WORLD);
  transfer.clear();
  Phase phase(kind);
  phase.last(length);
  for (int i = 0; i < options.repetitions; ++i) {
    add_transfer();
    const Times without = overlap.run(false, &phase);
    alone.push_back(without.all);
    phase_alone.push_back(without.phase);
    const Times with = overlap.run(true, &phase);
    both.push_back(with.all);
    phase_both.push_back(with.phase);
  }
  const bool right = overlap.verify(phase);
  if (rank == 0) {
    std::printf(
        R"({"shape": %d, "name": "%s", "bytes": %zu, "order": "%s", "phase_kind": "%s", )"
        R"("factor": %d, "transfer": %.9g, "alone": %.9g, "both": %.9g, "phase_alone": %.9g, )"
        R"("phase": %.9g, "right": %s})"
        "\n",
        shape.number, shape.name.c_str(), shape.bytes(), announced ? "announced" : "posted",
        kind == Phase::compute ? "compute" : "sleep", factor, median(transfer), median(alone),
        median(both), median(phase_alone), median(phase_both), right ? "true" : "false");
    std::fflush(stdout);
  }
  return right;
}

bool run(const Options& options, int rank) {
  bool all_right = true;
  for (const Shape& shape : shapes()) {
    if (std::find(options.only.begin(), options.only.end(), shape.number) == options.only.end()) {
      continue;
    }
    for (const bool announced : {true, false}) {
      for (const Phase::Kind kind : {Phase::compute, Phase::sleep}) {
        for (const int factor : {1, 4}) {
          all_right = measure(options, shape, announced, kind, factor, rank) && all_right;
        }
      }
    }
  }
  return all_right;
}

}  // namespace

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  int rank, size;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  const Options options = parse(argc, argv);
  if (size != 2) {
    std::fprintf(stderr, "overlap_times: needs two ranks\n");
    MPI_Abort(MPI_COMM_WORLD, usage_error);
  }
  const bool right = run(options, rank);
  MPI_Finalize();
  return right ? 0 : 1;
}
