// Times all shapes between two ranks, or between pairs of neighbours at the same time: then the
// slowest pair's time counts. A plain MPI program; benchmarks/run starts it under every contender
// and compares.
//
//   mpirun -np 2 shapes [--by-hand|--limit] [--scaling strided|indexed] [--milliseconds N]
//                       [--only NUMBER,NUMBER..] [--list]
//
// Prints a JSON object per line: shape, name, bytes, seconds (one way), right.
#include <mpi.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <optional>
#include <sstream>
#include <string>
#include <vector>

#include "benchmarks/limit.hpp"
#include "benchmarks/ping_pong.hpp"
#include "benchmarks/shape.hpp"

namespace {

using weft::benchmarks::Family;
using weft::benchmarks::Limit;
using weft::benchmarks::PingPong;
using weft::benchmarks::Shape;

struct Options {
  bool by_hand = false;
  bool limit = false;  ///< what two processes reach without MPI
  bool list = false;
  std::optional<Family> scaling{};  ///< one shape of so many blocks instead of all shapes
  double milliseconds = 20;
  std::vector<int> only;
};

constexpr int usage_error = 2;

Options parse(int argc, char** argv) {
  Options options;
  for (int i = 1; i < argc; ++i) {
    const std::string option = argv[i];
    if (option == "--by-hand") {
      options.by_hand = true;
    } else if (option == "--limit") {
      options.limit = true;
    } else if (option == "--list") {
      options.list = true;
    } else if (option == "--scaling" && i + 1 < argc && argv[i + 1] == std::string("strided")) {
      options.scaling = Family::strided;
      ++i;
    } else if (option == "--scaling" && i + 1 < argc && argv[i + 1] == std::string("indexed")) {
      options.scaling = Family::indexed;
      ++i;
    } else if (option == "--milliseconds" && i + 1 < argc) {
      options.milliseconds = std::atof(argv[++i]);
    } else if (option == "--only" && i + 1 < argc) {
      std::stringstream numbers(argv[++i]);
      for (std::string number; std::getline(numbers, number, ',');) {
        options.only.push_back(std::atoi(number.c_str()));
      }
    } else {
      std::fprintf(stderr,
                   "usage: shapes [--by-hand|--limit] [--scaling strided|indexed] "
                   "[--milliseconds N] [--only NUMBER,NUMBER..] [--list]\n");
      std::exit(usage_error);
    }
  }
  return options;
}

bool wanted(const Options& options, int number) {
  return options.only.empty() ||
         std::find(options.only.begin(), options.only.end(), number) != options.only.end();
}

bool run(const Options& options, int rank) {
  bool all_right = true;
  for (const Shape& shape : options.scaling ? weft::benchmarks::scaling_shapes(*options.scaling)
                                            : weft::benchmarks::all_shapes()) {
    if (!wanted(options, shape.number)) continue;
    double seconds = 0;
    bool right = true;
    if (!options.list) {
      const auto measure = [&](auto exchange) {
        seconds = exchange->time(options.milliseconds / 1000);
        right = exchange->verify();
      };
      if (options.limit) {
        measure(std::make_unique<Limit>(shape));
      } else {
        measure(std::make_unique<PingPong>(shape, options.by_hand));
      }
      all_right = all_right && right;
    }
    if (rank != 0) continue;
    std::printf(R"({"shape": %d, "name": "%s", "bytes": %zu, "seconds": %.9g, "right": %s})"
                "\n",
                shape.number, shape.name.c_str(), shape.bytes(), seconds, right ? "true" : "false");
    std::fflush(stdout);
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
  if ((size % 2 != 0 || (options.limit && size != 2)) && !options.list) {
    std::fprintf(stderr, "shapes: needs %s\n",
                 options.limit ? "two ranks for the limit" : "an even number of ranks");
    MPI_Abort(MPI_COMM_WORLD, usage_error);
  }
  const bool right = run(options, rank);
  MPI_Finalize();
  return right ? 0 : 1;
}
