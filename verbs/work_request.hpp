// Send work requests: from the verbs' form to the core's.
#pragma once

#include <infiniband/verbs.h>

#include <cstdint>

#include "hca/emu/work_request.hpp"

namespace weft::verbs {

struct QueuePair;

/// The request in an object of the calling thread's. Throws hca::Error EINVAL for an opcode or a
/// flag that the device has not.
hca::emu::SendWr& translated(QueuePair& qp, const ibv_send_wr& wr);
/// Where a datagram goes; `qkey` with its upper bit set stands for the QP's own.
hca::emu::Destination destination_of(QueuePair& qp, ibv_ah* ah, std::uint32_t remote_qpn,
                                     std::uint32_t qkey);
bool is_of_qp(ibv_event_type type) noexcept;

}  // namespace weft::verbs
