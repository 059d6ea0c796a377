#include "tests/mpi/random/verify.hpp"

namespace weft::random_types {
namespace {

/// Which part of the type map a displacement belongs to, for the report.
std::string locate(const oracle::TypeMap& map, std::ptrdiff_t at) {
  std::int64_t packed = 0;
  for (const oracle::Run& run : map.runs()) {
    if (at >= run.displacement && at < run.end()) {
      return "packed byte " + std::to_string(packed + at - run.displacement);
    }
    packed += run.bytes();
  }
  if (at < map.true_lb()) return "before the data";
  return at >= map.true_ub() ? "after the data" : "in a gap";
}

void expect(const char* what, std::int64_t got, std::int64_t wanted,
            std::vector<std::string>& wrong) {
  if (got == wanted) return;
  wrong.push_back(std::string(what) + " is " + std::to_string(got) + ", not " +
                  std::to_string(wanted));
}

void verify_status(const MessagePlan& plan, const MPI_Status& status,
                   std::vector<std::string>& wrong) {
  const std::int64_t bytes = plan.send.map.size(), one = plan.recv.type.map().size();
  MPI_Datatype type = plan.recv.type.type();
  int count, elements;
  MPI_Count elements_x;
  expect("the source", status.MPI_SOURCE, plan.from, wrong);
  expect("the tag", status.MPI_TAG, plan.tag, wrong);
  MPI_Get_count(&status, MPI_BYTE, &count);
  expect("the count of bytes", count, bytes, wrong);
  MPI_Get_count(&status, type, &count);
  expect("MPI_Get_count", count, one == 0 ? 0 : bytes % one ? MPI_UNDEFINED : bytes / one, wrong);
  // For a predefined pair type Open MPI counts pairs where the standard has it count their halves.
  if (plan.recv.type.predefined()) return;
  // Open MPI keeps an entry per loop of the type on the thread's stack here: it crashes at some
  // 260000.
  constexpr std::size_t most_runs = 100000;
  if (plan.recv.type.map().runs().size() > most_runs) return;
  const std::int64_t expected = plan.recv.map.elements_within(bytes);
  MPI_Get_elements(&status, type, &elements);
  expect("MPI_Get_elements", elements, expected, wrong);
  MPI_Get_elements_x(&status, type, &elements_x);
  expect("MPI_Get_elements_x", elements_x, expected, wrong);
}

}  // namespace

std::uint64_t send_pattern(const MessagePlan& plan, int round) {
  return plan.pattern + 2 * round;
}
std::uint64_t recv_pattern(const MessagePlan& plan, int round) {
  return plan.pattern + 2 * round + 1;
}

void verify_received(const MessagePlan& plan, const MPI_Status& status, const Buffer& buffer,
                     int round, std::vector<std::string>& wrong) {
  const bool status_kept = !plan.ignore_status;
  if (status_kept) verify_status(plan, status, wrong);

  Buffer sent(plan.send.map, plan.send_misalignment);
  sent.fill(send_pattern(plan, round));
  Buffer expected(plan.recv.map, plan.recv_misalignment);
  expected.fill(recv_pattern(plan, round));
  plan.recv.map.unpack(plan.send.map.pack(sent.base()), expected.base());
  if (auto at = buffer.first_difference(expected)) {
    wrong.push_back("received memory differs in round " + std::to_string(round) +
                    " at displacement " + std::to_string(*at) + " (" + locate(plan.recv.map, *at) +
                    " of " + std::to_string(plan.send.map.size()) + ")");
  }
}

void verify_unchanged(const MessagePlan& plan, const Buffer& buffer, int round,
                      std::vector<std::string>& wrong) {
  Buffer before(plan.send.map, plan.send_misalignment);
  before.fill(send_pattern(plan, round));
  if (auto at = buffer.first_difference(before)) {
    wrong.push_back("the send buffer changed at displacement " + std::to_string(*at));
  }
}

}  // namespace weft::random_types
