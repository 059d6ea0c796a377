// The randomized test of derived datatypes: pairs of random types with the same signature, one
// built by the sender and one by the receiver, in every mode of sending and receiving, compared
// byte by byte with type maps that no MPI library computed.
//
//   mpirun -np 2 random_types [--seed N] [--pairs N] [--max-bytes N] [--only BATCH] [--stall
//   SECONDS]
//
// Prints the seed first and ends with a line that begins with OK, or says what failed and how to
// run just that again.
#include <malloc.h>
#include <mpi.h>
#include <unistd.h>

#include <chrono>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <optional>
#include <string>

#include "tests/mpi/random/exchange.hpp"
#include "tests/mpi/random/plan.hpp"

namespace {

using weft::random_types::Batch;
using weft::random_types::MessagePlan;

struct Options {
  std::uint64_t seed = 0;
  std::int64_t pairs = 2000;
  std::int64_t max_bytes = 8 << 20;
  std::optional<std::uint64_t> only;
  int stall_seconds = 60;
};

constexpr int usage_error = 2;

Options parse(int argc, char** argv) {
  Options options;
  options.seed = std::chrono::system_clock::now().time_since_epoch().count() % 1000000000;
  for (int i = 1; i < argc; i += 2) {
    const std::string option = argv[i];
    char* end = nullptr;
    const unsigned long long value = i + 1 < argc ? std::strtoull(argv[i + 1], &end, 10) : 0;
    const bool number = end && *end == '\0' && end != argv[i + 1];
    if (number && option == "--seed") {
      options.seed = value;
    } else if (number && option == "--pairs") {
      options.pairs = static_cast<std::int64_t>(value);
    } else if (number && option == "--max-bytes") {
      options.max_bytes = static_cast<std::int64_t>(value);
    } else if (number && option == "--only") {
      options.only = value;
    } else if (number && option == "--stall") {
      options.stall_seconds = static_cast<int>(value);
    } else {
      std::fprintf(stderr,
                   "usage: random_types [--seed N] [--pairs N] [--max-bytes N] [--only BATCH] "
                   "[--stall SECONDS]\n");
      std::exit(usage_error);
    }
  }
  return options;
}

// What is going on, kept for the moment when something ends the process.
std::string current;

void report_current(const char* why) {
  std::fprintf(stderr, "random_types: %s in\n%s", why, current.c_str());
}
extern "C" void on_signal(int signal) {
  report_current(signal == SIGALRM ? "nothing moves any more" : strsignal(signal));
  std::signal(signal, SIG_DFL);
  if (signal == SIGALRM) std::abort();
  std::raise(signal);
}
void on_mpi_error(MPI_Comm* comm, int* code, ...) {
  char text[MPI_MAX_ERROR_STRING];
  int length;
  MPI_Error_string(*code, text, &length);
  report_current(text);
  MPI_Abort(*comm, 1);
}

std::string rerun(const Options& options, std::uint64_t batch) {
  return "random_types --seed " + std::to_string(options.seed) + " --max-bytes " +
         std::to_string(options.max_bytes) + " --only " + std::to_string(batch);
}

struct Result {
  std::int64_t pairs = 0, bytes = 0, failures = 0;
};

Result run(const Options& options, MPI_Comm comm, int rank) {
  constexpr int failures_shown = 5;
  Result result;
  std::uint64_t number = options.only.value_or(0);
  do {
    alarm(options.stall_seconds);
    Batch batch = weft::random_types::make_batch(options.seed, number, options.max_bytes);
    current = batch.describe() + "  again: " + rerun(options, number) + "\n";
    for (MessagePlan& m : batch.messages) {
      m.send.type.commit();
      m.recv.type.commit();
      result.bytes += m.send.map.size() * batch.rounds;
    }
    std::vector<std::string> wrong = weft::random_types::run_batch(batch, comm);
    if (!wrong.empty() && result.failures++ < failures_shown) {
      std::string text = "rank " + std::to_string(rank) + ": " + current;
      for (const std::string& line : wrong) text += "  WRONG: " + line + "\n";
      std::fputs(text.c_str(), stderr);
    }
    result.pairs += std::ssize(batch.messages);
    ++number;
  } while (!options.only && result.pairs < options.pairs);
  alarm(0);
  return result;
}

}  // namespace

int main(int argc, char** argv) {
  // Large maps and buffers come and go: keep their pages, faulting them in anew is half of the
  // time.
  mallopt(M_MMAP_THRESHOLD, 1 << 30);
  mallopt(M_TRIM_THRESHOLD, 1 << 30);
  MPI_Init(&argc, &argv);
  int rank, size;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  Options options = parse(argc, argv);
  if (size < 2) {
    std::fprintf(stderr, "random_types: needs two ranks\n");
    MPI_Abort(MPI_COMM_WORLD, usage_error);
  }
  MPI_Bcast(&options.seed, 1, MPI_UINT64_T, 0, MPI_COMM_WORLD);
  if (rank == 0) {
    std::printf("seed %llu\n", static_cast<unsigned long long>(options.seed));
    std::fflush(stdout);
  }
  for (int signal : {SIGALRM, SIGSEGV, SIGBUS, SIGABRT}) std::signal(signal, on_signal);

  MPI_Comm comm;
  MPI_Comm_split(MPI_COMM_WORLD, rank < 2 ? 0 : MPI_UNDEFINED, rank, &comm);
  Result result;
  if (comm != MPI_COMM_NULL) {
    MPI_Errhandler handler;
    MPI_Comm_create_errhandler(on_mpi_error, &handler);
    MPI_Comm_set_errhandler(comm, handler);
    MPI_Errhandler_free(&handler);
    result = run(options, comm, rank);
    MPI_Comm_free(&comm);
  }
  std::int64_t failures = 0;
  MPI_Allreduce(&result.failures, &failures, 1, MPI_INT64_T, MPI_SUM, MPI_COMM_WORLD);
  if (rank == 0) {
    std::printf("%s: %lld type pairs, %lld bytes, seed %llu\n", failures ? "WRONG" : "OK",
                static_cast<long long>(result.pairs), static_cast<long long>(result.bytes),
                static_cast<unsigned long long>(options.seed));
  }
  MPI_Finalize();
  return failures != 0;
}
