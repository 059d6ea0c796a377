#include "ompi-component/hook/report.hpp"

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "ompi-component/hook/hook.hpp"
#include "ompi-component/hook/log.hpp"

namespace weft::ompi {
namespace {

Count count_of(const Tally& tally) {
  return {tally.messages(), tally.bytes()};
}

template <std::size_t N>
std::array<Count, directions> sums(const std::array<std::array<Count, N>, directions>& counts) {
  std::array<Count, directions> total{};
  for (std::size_t d = 0; d < directions; ++d)
    for (const Count& count : counts[d]) total[d] += count;
  return total;
}

std::string row(std::string_view label, const Count& sent, const Count& received) {
  return fmt::format("  {:<28}{:>12}{:>18}{:>12}{:>18}\n", label, sent.messages, sent.bytes,
                     received.messages, received.bytes);
}

bool is_zero(const Count& sent, const Count& received) {
  return sent.messages == 0 && received.messages == 0;
}

std::string rows_offloaded(const Report& sum) {
  std::string text;
  for (std::size_t i = 0; i < layout_kinds; ++i)
    if (!is_zero(sum.offloaded[0][i], sum.offloaded[1][i]))
      text += row(hca::to_string(static_cast<hca::LayoutKind>(i)), sum.offloaded[0][i],
                  sum.offloaded[1][i]);
  const auto total = sums(sum.offloaded);
  return text + row("offloaded", total[0], total[1]);
}

std::string rows_fallen_back(const Report& sum) {
  std::string text;
  for (std::size_t i = 0; i < fallbacks; ++i)
    if (!is_zero(sum.fallen_back[0][i], sum.fallen_back[1][i]))
      text += row(explain(static_cast<Fallback>(i)), sum.fallen_back[0][i], sum.fallen_back[1][i]);
  const auto total = sums(sum.fallen_back);
  return text + row("fell back", total[0], total[1]);
}

std::string remarks(const Report& sum, int job_size) {
  std::string text;
  const auto offloaded = sums(sum.offloaded);
  if (is_zero(offloaded[0], offloaded[1])) {
    const auto fallen_back = sums(sum.fallen_back);
    std::string_view why = "no message had a non-contiguous datatype";
    if (sum.active == 0)
      why = sum.why_inactive.data();
    else if (!is_zero(fallen_back[0], fallen_back[1]))
      why = "all messages with a non-contiguous datatype fell back";
    text += fmt::format("  nothing was offloaded: {}\n", why);
  } else if (sum.active < sum.processes) {
    text += fmt::format("  {} of {} processes could not offload: {}\n", sum.processes - sum.active,
                        sum.processes, sum.why_inactive.data());
  }
  if (sum.processes < static_cast<std::uint32_t>(job_size))
    text +=
        fmt::format("  {} of {} processes did not report\n", job_size - sum.processes, job_size);
  return text;
}

}  // namespace

Report Report::of_this_process() {
  Report report{};
  for (std::size_t d = 0; d < directions; ++d) {
    std::transform(counters.offloaded[d].begin(), counters.offloaded[d].end(),
                   report.offloaded[d].begin(), count_of);
    std::transform(counters.fallen_back[d].begin(), counters.fallen_back[d].end(),
                   report.fallen_back[d].begin(), count_of);
  }
  report.processes = 1;
  report.active = hook.offloads ? 1 : 0;
  if (!hook.offloads)
    hook.why_inactive.copy(report.why_inactive.data(), report.why_inactive.size() - 1);
  return report;
}

Report& Report::operator+=(const Report& other) {
  for (std::size_t d = 0; d < directions; ++d) {
    for (std::size_t i = 0; i < layout_kinds; ++i) offloaded[d][i] += other.offloaded[d][i];
    for (std::size_t i = 0; i < fallbacks; ++i) fallen_back[d][i] += other.fallen_back[d][i];
  }
  if (why_inactive[0] == '\0') why_inactive = other.why_inactive;
  processes += other.processes;
  active += other.active;
  return *this;
}

std::string table(const Report& sum, int job_size) {
  std::string text =
      fmt::format("weft: non-contiguous messages of {} ({} {}, pml {})\n",
                  program_invocation_short_name, job_size, job_size == 1 ? "process" : "processes",
                  mca_pml_base_selected_component.pmlm_version.mca_component_name);
  text += fmt::format("  {:<28}{:>12}{:>18}{:>12}{:>18}\n", "layout", "sent", "bytes", "received",
                      "bytes");
  text += rows_offloaded(sum);
  text += rows_fallen_back(sum);
  return text + remarks(sum, job_size);
}

}  // namespace weft::ompi
