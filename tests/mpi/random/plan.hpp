// What happens in one batch of the randomized test. Every rank derives the same plan from the seed.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "tests/mpi/oracle/generator.hpp"

namespace weft::random_types {

enum class SendMode {
  send,
  ssend,
  rsend,
  bsend,
  isend,
  issend,
  irsend,
  ibsend,
  send_init,
  ssend_init,
  bsend_init,
  rsend_init,
  sendrecv,
};
enum class RecvMode {
  irecv_early,
  recv_init,
  recv,
  irecv_late,
  probe_recv,
  iprobe_irecv,
  mprobe_mrecv,
  mprobe_imrecv,
  improbe_mrecv,
  sendrecv,
};
const char* name(SendMode mode);
const char* name(RecvMode mode);
bool blocking(SendMode mode);
bool ready(SendMode mode);
bool persistent(SendMode mode);
bool buffered(SendMode mode);
/// Receives posted before any message is sent.
bool early(RecvMode mode);

/// One message, and with it one pair of types.
struct MessagePlan {
  int from, to, tag;
  SendMode send_mode;
  RecvMode recv_mode;
  bool any_source, any_tag;
  bool ignore_status;
  bool free_type_early;               ///< the posted type is freed while the message is under way
  bool send_absolute, recv_absolute;  ///< addressed from MPI_BOTTOM
  int send_misalignment, recv_misalignment;
  oracle::Message send, recv;
  std::uint64_t pattern;

  std::string describe() const;
};

enum class Kind {
  one_way,    ///< one message
  both_ways,  ///< one message in each direction at the same time
  burst,      ///< several messages under way in one direction
  self,       ///< each rank to itself
};

struct Batch {
  std::uint64_t number;
  Kind kind;
  int rounds;            ///< how often everything is sent (persistent requests: started)
  bool receivers_first;  ///< a barrier after the early receives
  bool by_tag;           ///< late receives in an order of their own
  int sender_delay_us, receiver_delay_us;
  std::vector<int> recv_order;
  std::vector<MessagePlan> messages;

  std::string describe() const;
};

/// Batch number `number` of the run with this seed. Makes the MPI datatypes of both sides.
Batch make_batch(std::uint64_t seed, std::uint64_t number, std::int64_t max_bytes);

}  // namespace weft::random_types
