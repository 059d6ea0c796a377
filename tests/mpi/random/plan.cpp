#include "tests/mpi/random/plan.hpp"

#include <algorithm>
#include <array>
#include <iterator>

namespace weft::random_types {
namespace {

using oracle::Rng;

constexpr std::array send_names{"send",       "ssend",      "rsend",   "bsend",     "isend",
                                "issend",     "irsend",     "ibsend",  "send_init", "ssend_init",
                                "bsend_init", "rsend_init", "sendrecv"};
constexpr std::array recv_names{
    "irecv before the send", "recv_init",    "recv",          "irecv",         "probe+recv",
    "iprobe+irecv",          "mprobe+mrecv", "mprobe+imrecv", "improbe+mrecv", "sendrecv"};

/// Mostly small, sometimes large, and sometimes nothing.
std::int64_t random_bytes(Rng& rng, std::int64_t max_bytes) {
  struct Class {
    int percent;
    std::int64_t most;
  };
  constexpr std::array classes{Class{5, 0},          Class{45, 600},    Class{25, 16 << 10},
                               Class{14, 128 << 10}, Class{9, 1 << 20}, Class{2, 8 << 20}};
  std::int64_t draw = rng.between(0, 99);
  for (const Class& c : classes) {
    draw -= c.percent;
    if (draw >= 0) continue;
    std::int64_t most = std::min(c.most, max_bytes);
    return most ? rng.between(most / 30 + 1, most) : 0;
  }
  return 1;
}

SendMode random_send_mode(Rng& rng, Kind kind) {
  // Blocking sends only where nothing but their own receive stands between them and completion.
  if (kind == Kind::one_way) return static_cast<SendMode>(rng.between(0, 11));
  if (rng.one_in(2)) return SendMode::isend;
  return static_cast<SendMode>(rng.between(4, 11));
}

void choose_types(Rng& rng, MessagePlan& m, std::int64_t max_bytes) {
  oracle::Signature signature = random_signature(rng, random_bytes(rng, max_bytes));
  m.send = oracle::Generator(rng, true).message(signature);
  // A receiver may ask for more than comes.
  if (rng.one_in(5)) signature.units += rng.between(1, 2 + signature.units / 4);
  m.recv = oracle::Generator(rng, false).message(signature);
}

MessagePlan random_message(Rng& rng, Kind kind, std::int64_t max_bytes) {
  MessagePlan m{};
  m.send_mode = random_send_mode(rng, kind);
  m.recv_mode = static_cast<RecvMode>(rng.between(0, 8));
  if (ready(m.send_mode) && !early(m.recv_mode)) {
    m.recv_mode = rng.one_in(2) ? RecvMode::irecv_early : RecvMode::recv_init;
  }
  m.tag = static_cast<int>(rng.between(0, 3000));
  m.any_source = rng.one_in(4);
  m.any_tag = rng.one_in(4);
  m.ignore_status = rng.one_in(6);
  m.free_type_early = rng.one_in(3);
  m.send_absolute = rng.one_in(8);
  m.recv_absolute = rng.one_in(8);
  m.send_misalignment = static_cast<int>(rng.one_in(2) ? 0 : rng.between(0, 15));
  m.recv_misalignment = static_cast<int>(rng.one_in(2) ? 0 : rng.between(0, 15));
  m.pattern = rng.next();
  choose_types(rng, m, max_bytes);
  return m;
}

Kind random_kind(Rng& rng) {
  std::int64_t draw = rng.between(0, 99);
  if (draw < 50) return Kind::one_way;
  if (draw < 80) return Kind::both_ways;
  return draw < 92 ? Kind::burst : Kind::self;
}

std::string side(const oracle::Message& message, bool absolute) {
  std::string text = message.type.text();
  constexpr std::size_t longest = 3000;
  if (text.size() > longest) text = text.substr(0, longest) + " ...";
  return std::to_string(message.count) + " x " + text + (absolute ? " from MPI_BOTTOM" : "");
}

}  // namespace

const char* name(SendMode mode) {
  return send_names[static_cast<int>(mode)];
}
const char* name(RecvMode mode) {
  return recv_names[static_cast<int>(mode)];
}
bool blocking(SendMode mode) {
  return mode <= SendMode::bsend;
}
bool ready(SendMode mode) {
  return mode == SendMode::rsend || mode == SendMode::irsend || mode == SendMode::rsend_init;
}
bool persistent(SendMode mode) {
  return mode >= SendMode::send_init && mode <= SendMode::rsend_init;
}
bool buffered(SendMode mode) {
  return mode == SendMode::bsend || mode == SendMode::ibsend || mode == SendMode::bsend_init;
}
bool early(RecvMode mode) {
  return mode <= RecvMode::recv_init;
}

std::string MessagePlan::describe() const {
  return "  rank " + std::to_string(from) + " to " + std::to_string(to) + ", " + name(send_mode) +
         ", " + name(recv_mode) + ", tag " + std::to_string(tag) +
         (any_source ? ", any source" : "") + (any_tag ? ", any tag" : "") +
         (free_type_early ? ", types freed early" : "") + ", " + std::to_string(send.map.size()) +
         " bytes of at most " + std::to_string(recv.map.size()) + "\n    sends    " +
         side(send, send_absolute) + "\n    receives " + side(recv, recv_absolute) + "\n";
}

std::string Batch::describe() const {
  constexpr std::array kinds{"one way", "both ways", "burst", "self"};
  std::string text = "batch " + std::to_string(number) + " (" + kinds[static_cast<int>(kind)] +
                     ", rounds: " + std::to_string(rounds) + ")\n";
  for (const MessagePlan& message : messages) text += message.describe();
  return text;
}

Batch make_batch(std::uint64_t seed, std::uint64_t number, std::int64_t max_bytes) {
  Rng rng = Rng::child(seed, number);
  Batch batch{};
  batch.number = number;
  batch.kind = random_kind(rng);
  const int from = static_cast<int>(rng.between(0, 1));
  const int n = batch.kind == Kind::one_way ? 1
                : batch.kind == Kind::burst ? static_cast<int>(rng.between(2, 6))
                                            : 2;
  // Several large messages at once would only be slow.
  const std::int64_t most = n > 2 ? std::min<std::int64_t>(max_bytes, 512 << 10) : max_bytes;
  for (int i = 0; i < n; ++i) {
    MessagePlan m = random_message(rng, batch.kind, most);
    m.from = batch.kind == Kind::burst || i == 0 ? from : 1 - from;
    m.to = batch.kind == Kind::self ? m.from : 1 - m.from;
    batch.messages.push_back(std::move(m));
  }
  if (batch.kind != Kind::one_way && batch.kind != Kind::burst && rng.one_in(3)) {
    for (MessagePlan& m : batch.messages) {
      m.send_mode = SendMode::sendrecv;
      m.recv_mode = RecvMode::sendrecv;
    }
  }
  for (const MessagePlan& m : batch.messages) {
    batch.receivers_first |= ready(m.send_mode);
    if (persistent(m.send_mode) || m.recv_mode == RecvMode::recv_init) {
      batch.rounds = static_cast<int>(rng.between(1, 3));
    }
  }
  batch.rounds = std::max(batch.rounds, 1);
  for (const MessagePlan& m : batch.messages) {
    // Open MPI's ob1 sends a persistent buffered message's first data again when it is started
    // again.
    if (m.send_mode == SendMode::bsend_init) batch.rounds = 1;
  }
  batch.receivers_first |= rng.one_in(3);
  batch.sender_delay_us = rng.one_in(4) ? static_cast<int>(rng.between(1, 300)) : 0;
  batch.receiver_delay_us = rng.one_in(4) ? static_cast<int>(rng.between(1, 300)) : 0;
  batch.by_tag = batch.kind == Kind::burst && rng.one_in(2);
  batch.recv_order = batch.by_tag ? rng.permutation(n) : std::vector<int>{};
  for (int i = 0; i < n; ++i) {
    MessagePlan& m = batch.messages[i];
    if (!batch.by_tag) batch.recv_order.push_back(i);
    if (batch.kind != Kind::burst) continue;
    // In a burst the tag tells the messages apart, or else they share it and order does; then all
    // are received the same way, because an early receive would match before a late one.
    m.tag = batch.by_tag ? batch.messages[0].tag + i : batch.messages[0].tag;
    if (batch.by_tag) m.any_tag = false;
    if (!batch.by_tag) m.recv_mode = batch.messages[0].recv_mode;
    if (!batch.by_tag && ready(m.send_mode) && !early(m.recv_mode)) m.send_mode = SendMode::isend;
  }
  return batch;
}

}  // namespace weft::random_types
