#include "ompi-component/hook/statistics.hpp"

#include <chrono>
#include <cstdio>
#include <vector>

#include "ompi-component/hook/report.hpp"
#include "ompi-component/ompi.hpp"

namespace weft::ompi {
namespace {

using Clock = std::chrono::steady_clock;

// MPI_Finalize itself waits for every process of the job, so waiting costs nothing. It ends early
// only where a process will never report: it died, or knows nothing of weft or of this setting.
constexpr std::chrono::seconds longest_silence{30};

// Open MPI's own collectives use -10 and below; a receive from MPI_ANY_TAG matches no negative tag.
constexpr int report_tag = -9;

// Buffers of a message that nobody came to fetch live until the process ends.
template <typename T>
T& leaked(T value) {
  return *new T(std::move(value));
}

void send_report(const Report& report, ompi_communicator_t* world) {
  const Report& message = leaked(report);
  ompi_request_t* request = nullptr;
  if (MCA_PML_CALL(isend(&message, sizeof message, MPI_BYTE, 0, report_tag,
                         MCA_PML_BASE_SEND_STANDARD, world, &request)) != OMPI_SUCCESS)
    return;
  const auto deadline = Clock::now() + longest_silence;
  while (!REQUEST_COMPLETE(request) && Clock::now() < deadline) opal_progress();
  if (REQUEST_COMPLETE(request)) (void)ompi_request_free(&request);
}

// Adds every report that comes in, until the last one or a long silence.
void add_reports(Report& sum, ompi_communicator_t* world, int size) {
  auto& reports = leaked(std::vector<Report>(static_cast<std::size_t>(size)));
  std::vector<ompi_request_t*> requests(reports.size(), nullptr);
  int missing = 0;
  for (int rank = 1; rank < size; ++rank)
    if (MCA_PML_CALL(irecv(&reports[rank], sizeof(Report), MPI_BYTE, rank, report_tag, world,
                           &requests[rank])) == OMPI_SUCCESS)
      ++missing;
  for (auto last_news = Clock::now(); missing > 0 && Clock::now() < last_news + longest_silence;) {
    opal_progress();
    for (int rank = 1; rank < size; ++rank) {
      if (requests[rank] == nullptr || !REQUEST_COMPLETE(requests[rank])) continue;
      (void)ompi_request_free(&requests[rank]);
      requests[rank] = nullptr;
      sum += reports[rank];
      last_news = Clock::now();
      --missing;
    }
  }
}

}  // namespace

void report_statistics() {
  ompi_communicator_t* world = &ompi_mpi_comm_world.comm;
  const int size = ompi_comm_size(world);
  Report sum = Report::of_this_process();
  if (ompi_comm_rank(world) != 0) {
    send_report(sum, world);
    return;
  }
  add_reports(sum, world, size);
  const std::string text = table(sum, size);
  std::fwrite(text.data(), 1, text.size(), stderr);
}

}  // namespace weft::ompi
