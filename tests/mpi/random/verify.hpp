// What a message must have done to memory and status, computed from the type maps alone.
#pragma once

#include <mpi.h>

#include <cstdint>
#include <string>
#include <vector>

#include "tests/mpi/random/buffer.hpp"
#include "tests/mpi/random/plan.hpp"

namespace weft::random_types {

/// Numbers of the patterns that fill the buffers in a round.
std::uint64_t send_pattern(const MessagePlan& plan, int round);
std::uint64_t recv_pattern(const MessagePlan& plan, int round);

/// Appends to `wrong` whatever differs from what should have arrived.
void verify_received(const MessagePlan& plan, const MPI_Status& status, const Buffer& buffer,
                     int round, std::vector<std::string>& wrong);
/// Likewise if the send buffer was written to.
void verify_unchanged(const MessagePlan& plan, const Buffer& buffer, int round,
                      std::vector<std::string>& wrong);

}  // namespace weft::random_types
