#include "tests/mpi/random/exchange.hpp"

#include <unistd.h>

#include <list>

#include "tests/mpi/random/buffer.hpp"
#include "tests/mpi/random/verify.hpp"

namespace weft::random_types {
namespace {

/// One end of a message on this rank: its memory and what the MPI calls are given.
struct End {
  End(const MessagePlan& plan, bool sends)
      : plan(plan),
        sends(sends),
        message(sends ? plan.send : plan.recv),
        buffer(message.map, sends ? plan.send_misalignment : plan.recv_misalignment) {}

  const MessagePlan& plan;
  bool sends;
  const oracle::Message& message;
  Buffer buffer;
  MPI_Request request = MPI_REQUEST_NULL;
  MPI_Status status{};
};

/// The arguments (buffer, count, datatype) of one call. The datatype is freed when the call is
/// over, which for a non-blocking call means: while the message is under way.
class Arguments {
 public:
  explicit Arguments(End& end) : buffer(end.buffer.base()), count(end.message.count) {
    const bool absolute = end.sends ? end.plan.send_absolute : end.plan.recv_absolute;
    type = end.message.type.type();
    if (absolute) {
      MPI_Aint address;
      MPI_Get_address(buffer, &address);
      MPI_Type_create_hindexed(1, &count, &address, end.message.type.type(), &type);
      buffer = MPI_BOTTOM;
      count = 1;
      owned_ = true;
    } else if (end.plan.free_type_early) {
      MPI_Type_dup(end.message.type.type(), &type);
      owned_ = true;
    }
    MPI_Type_commit(&type);
  }
  ~Arguments() {
    if (owned_) MPI_Type_free(&type);
  }
  Arguments(const Arguments&) = delete;
  Arguments& operator=(const Arguments&) = delete;

  void* buffer;
  int count;
  MPI_Datatype type;

 private:
  bool owned_ = false;
};

class BatchRun {
 public:
  BatchRun(const Batch& batch, MPI_Comm comm) : batch_(batch), comm_(comm) {
    MPI_Comm_rank(comm, &rank_);
    for (const MessagePlan& plan : batch.messages) {
      if (plan.from == rank_) outgoing_.emplace_back(plan, true);
    }
    for (int i : batch.recv_order) {
      if (batch.messages[i].to == rank_) incoming_.emplace_back(batch.messages[i], false);
    }
    attach_bsend_buffer();
  }

  std::vector<std::string> run() {
    std::vector<std::string> wrong;
    for (round_ = 0; round_ < batch_.rounds; ++round_) {
      exchange();
      for (End& end : incoming_) {
        verify_received(end.plan, end.status, end.buffer, round_, wrong);
      }
      for (End& end : outgoing_) verify_unchanged(end.plan, end.buffer, round_, wrong);
    }
    for (End& end : outgoing_) free_persistent(end);
    for (End& end : incoming_) free_persistent(end);
    if (!bsend_buffer_.empty()) {
      void* old;
      int size;
      MPI_Buffer_detach(&old, &size);
    }
    return wrong;
  }

 private:
  void attach_bsend_buffer() {
    std::size_t size = 0;
    for (const End& end : outgoing_) {
      if (buffered(end.plan.send_mode)) size += end.message.map.size() + MPI_BSEND_OVERHEAD + 64;
    }
    bsend_buffer_.resize(size * batch_.rounds);
    if (size) MPI_Buffer_attach(bsend_buffer_.data(), static_cast<int>(bsend_buffer_.size()));
  }

  void exchange() {
    for (End& end : outgoing_) end.buffer.fill(send_pattern(end.plan, round_));
    for (End& end : incoming_) end.buffer.fill(recv_pattern(end.plan, round_));
    for (End& end : incoming_) {
      if (early(end.plan.recv_mode)) post_receive(end);
    }
    if (batch_.receivers_first) MPI_Barrier(comm_);
    if (!outgoing_.empty() && batch_.sender_delay_us) usleep(batch_.sender_delay_us);
    if (!outgoing_.empty() && outgoing_.front().plan.send_mode == SendMode::sendrecv) {
      send_and_receive(outgoing_.front(), incoming_.front());
      return;
    }
    for (End& end : outgoing_) send(end);
    if (!incoming_.empty() && batch_.receiver_delay_us) usleep(batch_.receiver_delay_us);
    for (End& end : incoming_) {
      if (!early(end.plan.recv_mode)) receive(end);
    }
    complete();
  }

  void post_receive(End& end) {
    const MessagePlan& m = end.plan;
    const int source = m.any_source ? MPI_ANY_SOURCE : m.from;
    const int tag = m.any_tag ? MPI_ANY_TAG : m.tag;
    if (m.recv_mode != RecvMode::recv_init) {
      Arguments a(end);
      MPI_Irecv(a.buffer, a.count, a.type, source, tag, comm_, &end.request);
      return;
    }
    if (round_ == 0) {
      Arguments a(end);
      MPI_Recv_init(a.buffer, a.count, a.type, source, tag, comm_, &end.request);
    }
    MPI_Start(&end.request);
  }

  void send(End& end) {
    const MessagePlan& m = end.plan;
    if (persistent(m.send_mode)) {
      if (round_ == 0) init_send(end);
      MPI_Start(&end.request);
      return;
    }
    Arguments a(end);
    MPI_Request* request = &end.request;
    switch (m.send_mode) {
      case SendMode::send:
        MPI_Send(a.buffer, a.count, a.type, m.to, m.tag, comm_);
        break;
      case SendMode::ssend:
        MPI_Ssend(a.buffer, a.count, a.type, m.to, m.tag, comm_);
        break;
      case SendMode::rsend:
        MPI_Rsend(a.buffer, a.count, a.type, m.to, m.tag, comm_);
        break;
      case SendMode::bsend:
        MPI_Bsend(a.buffer, a.count, a.type, m.to, m.tag, comm_);
        break;
      case SendMode::issend:
        MPI_Issend(a.buffer, a.count, a.type, m.to, m.tag, comm_, request);
        break;
      case SendMode::irsend:
        MPI_Irsend(a.buffer, a.count, a.type, m.to, m.tag, comm_, request);
        break;
      case SendMode::ibsend:
        MPI_Ibsend(a.buffer, a.count, a.type, m.to, m.tag, comm_, request);
        break;
      default:
        MPI_Isend(a.buffer, a.count, a.type, m.to, m.tag, comm_, request);
    }
  }

  void init_send(End& end) {
    const MessagePlan& m = end.plan;
    Arguments a(end);
    auto init = m.send_mode == SendMode::ssend_init   ? MPI_Ssend_init
                : m.send_mode == SendMode::bsend_init ? MPI_Bsend_init
                : m.send_mode == SendMode::rsend_init ? MPI_Rsend_init
                                                      : MPI_Send_init;
    init(a.buffer, a.count, a.type, m.to, m.tag, comm_, &end.request);
  }

  /// The ways to receive a message that is perhaps already there.
  void receive(End& end) {
    const MessagePlan& m = end.plan;
    int source = m.any_source ? MPI_ANY_SOURCE : m.from;
    int tag = m.any_tag ? MPI_ANY_TAG : m.tag;
    Arguments a(end);
    MPI_Message message;
    int there = 0;
    switch (m.recv_mode) {
      case RecvMode::probe_recv:
        MPI_Probe(source, tag, comm_, &end.status);
        MPI_Recv(a.buffer, a.count, a.type, end.status.MPI_SOURCE, end.status.MPI_TAG, comm_,
                 &end.status);
        break;
      case RecvMode::iprobe_irecv:
        while (!there) MPI_Iprobe(source, tag, comm_, &there, &end.status);
        MPI_Irecv(a.buffer, a.count, a.type, end.status.MPI_SOURCE, end.status.MPI_TAG, comm_,
                  &end.request);
        break;
      case RecvMode::mprobe_mrecv:
        MPI_Mprobe(source, tag, comm_, &message, &end.status);
        MPI_Mrecv(a.buffer, a.count, a.type, &message, &end.status);
        break;
      case RecvMode::mprobe_imrecv:
        MPI_Mprobe(source, tag, comm_, &message, &end.status);
        MPI_Imrecv(a.buffer, a.count, a.type, &message, &end.request);
        break;
      case RecvMode::improbe_mrecv:
        while (!there) MPI_Improbe(source, tag, comm_, &there, &message, &end.status);
        MPI_Mrecv(a.buffer, a.count, a.type, &message, &end.status);
        break;
      case RecvMode::recv:
        MPI_Recv(a.buffer, a.count, a.type, source, tag, comm_,
                 m.ignore_status ? MPI_STATUS_IGNORE : &end.status);
        break;
      default:
        MPI_Irecv(a.buffer, a.count, a.type, source, tag, comm_, &end.request);
    }
  }

  void send_and_receive(End& out, End& in) {
    Arguments a(out), b(in);
    MPI_Sendrecv(a.buffer, a.count, a.type, out.plan.to, out.plan.tag, b.buffer, b.count, b.type,
                 in.plan.any_source ? MPI_ANY_SOURCE : in.plan.from,
                 in.plan.any_tag ? MPI_ANY_TAG : in.plan.tag, comm_,
                 in.plan.ignore_status ? MPI_STATUS_IGNORE : &in.status);
  }

  /// All ways to complete requests, in turn.
  void complete() {
    std::vector<End*> ends;
    std::vector<MPI_Request> requests;
    for (auto* list : {&incoming_, &outgoing_}) {
      for (End& end : *list) {
        if (end.request == MPI_REQUEST_NULL) continue;
        ends.push_back(&end);
        requests.push_back(end.request);
      }
    }
    const int n = static_cast<int>(requests.size());
    std::vector<MPI_Status> statuses(n);
    int done = 0, index;
    switch (batch_.number % 5) {
      case 0:
        MPI_Waitall(n, requests.data(), statuses.data());
        break;
      case 1:
        while (!done) MPI_Testall(n, requests.data(), &done, statuses.data());
        break;
      case 2:
        for (int i = 0; i < n; ++i) {
          MPI_Status status;
          MPI_Waitany(n, requests.data(), &index, &status);
          statuses[index] = status;
        }
        break;
      case 3:
        for (int i = 0; i < n; ++i) {
          for (done = 0; !done;) MPI_Test(&requests[i], &done, &statuses[i]);
        }
        break;
      default:
        for (int i = n - 1; i >= 0; --i) MPI_Wait(&requests[i], &statuses[i]);
    }
    for (int i = 0; i < n; ++i) {
      ends[i]->request = requests[i];
      ends[i]->status = statuses[i];
    }
  }

  static void free_persistent(End& end) {
    if (end.request != MPI_REQUEST_NULL) MPI_Request_free(&end.request);
  }

  const Batch& batch_;
  MPI_Comm comm_;
  int rank_ = 0;
  int round_ = 0;
  std::list<End> outgoing_, incoming_;
  std::vector<std::byte> bsend_buffer_;
};

}  // namespace

std::vector<std::string> run_batch(const Batch& batch, MPI_Comm comm) {
  std::vector<std::string> wrong = BatchRun(batch, comm).run();
  MPI_Barrier(comm);
  return wrong;
}

}  // namespace weft::random_types
