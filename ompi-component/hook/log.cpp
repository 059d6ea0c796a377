#include "ompi-component/hook/log.hpp"

#include <cstdio>
#include <cstdlib>

namespace weft::ompi {
namespace {

// Known before MPI_Init has got anywhere, where a process manager started us.
const char* rank_from_environment() {
  for (const char* name : {"OMPI_COMM_WORLD_RANK", "PMIX_RANK", "SLURM_PROCID"})
    if (const char* rank = std::getenv(name)) return rank;
  return nullptr;
}

}  // namespace

bool speaks_for_the_job() {
  const char* rank = rank_from_environment();
  return rank == nullptr || std::string_view(rank) == "0";
}

void say(std::string_view text) {
  const char* rank = params.verbose > 0 ? rank_from_environment() : nullptr;
  const std::string line =
      rank ? fmt::format("weft: rank {}: {}\n", rank, text) : fmt::format("weft: {}\n", text);
  std::fwrite(line.data(), 1, line.size(), stderr);
}

}  // namespace weft::ompi
