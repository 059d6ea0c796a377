// Report: the counters of one process, as it sends them to rank 0, and their sum.
#pragma once

#include <array>
#include <cstdint>
#include <string>

#include "ompi-component/hook/counters.hpp"

namespace weft::ompi {

struct Count {
  std::uint64_t messages;
  std::uint64_t bytes;

  Count& operator+=(const Count& other) {
    messages += other.messages;
    bytes += other.bytes;
    return *this;
  }
};

/// Plain data: it travels as bytes between processes of one program.
struct Report {
  std::array<std::array<Count, layout_kinds>, directions> offloaded;
  std::array<std::array<Count, fallbacks>, directions> fallen_back;
  /// Processes that could offload, and why the others could not (of the first of them).
  std::uint32_t processes;
  std::uint32_t active;
  std::array<char, 192> why_inactive;

  static Report of_this_process();
  Report& operator+=(const Report& other);
};

/// The table, with a line end after each line.
std::string table(const Report& sum, int job_size);

}  // namespace weft::ompi
