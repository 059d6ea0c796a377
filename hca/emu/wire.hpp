// What travels on the two rings of a port: opcodes and the fields of each line's payload.
//
// Everything here is written by a peer: a reader copies the fields out once and checks them.
#pragma once

#include <cstdint>
#include <cstring>

#include "hca/emu/ring.hpp"

namespace weft::hca::emu {

/// Lines of the message ring.
enum class MessageOp : std::uint8_t {
  pad = pad_op,
  inlined,  ///< the message itself
  bulk,     ///< BulkLine
  order,    ///< OrderLine: what follows comes after a part of the wire ring
};

struct BulkLine {
  std::uint32_t slot;
  std::uint32_t length;
};

struct OrderLine {
  std::uint32_t wire_tail;
};

/// Lines of the wire ring.
enum class WireOp : std::uint8_t {
  pad = pad_op,
  write_inline,   ///< WriteLine, then the data
  write_data,     ///< WriteLine
  read_request,   ///< ReadLine
  atomic,         ///< AtomicLine
  ack,            ///< AckLine
  ack_count,      ///< AckCountLine: for operations nobody waits for one by one
  read_inline,    ///< AnswerLine, then the data
  read_data,      ///< DataLine
  atomic_answer,  ///< AtomicAnswerLine
  send_data,      ///< SendLine
  send_inline     ///< SendLine, then the data
};

constexpr std::uint8_t raw(WireOp op) noexcept {
  return static_cast<std::uint8_t>(op);
}

/// In `flags` of a request to a QP; the upper 24 bits are its PSN.
struct RequestFlags {
  static constexpr std::uint32_t first = 1;
  static constexpr std::uint32_t last = 2;
  static constexpr std::uint32_t immediate = 4;
  static constexpr std::uint32_t solicited = 8;
  static constexpr std::uint32_t invalidate = 16;
  static constexpr unsigned psn_shift = 8;
};

struct WriteLine {
  std::uint64_t addr;       ///< where this piece goes
  std::uint64_t remaining;  ///< bytes of the operation from this piece on
  std::uint32_t op;         ///< 0: counted only
  std::uint32_t rkey;
  std::uint32_t length;  ///< of this piece
  std::uint32_t immediate;
  std::uint32_t flags;
  std::uint16_t slot;  ///< write_data
  std::uint16_t qp;    ///< 0: none
};

struct SendLine {
  std::uint64_t remaining;  ///< bytes of the message from this piece on
  std::uint32_t op;
  std::uint32_t length;  ///< of this piece
  std::uint32_t immediate;
  std::uint32_t flags;
  std::uint32_t source_qp;
  std::uint32_t qkey;
  std::uint16_t slot;  ///< send_data
  std::uint16_t qp;
};

struct ReadLine {
  std::uint64_t addr;
  std::uint64_t length;
  std::uint32_t op;
  std::uint32_t rkey;
  std::uint32_t flags;
  std::uint16_t qp;
  std::uint8_t coarse;  ///< the memory that the data will go to
};

struct AtomicLine {
  std::uint64_t addr;
  std::uint64_t operand;
  std::uint64_t compare;
  std::uint32_t op;
  std::uint32_t rkey;
  std::uint32_t flags;
  std::uint16_t qp;
  std::uint8_t code;
  std::uint8_t size;
};

struct AckLine {
  std::uint32_t op;
  std::uint8_t status;
  std::uint8_t rnr_timer;
};

struct AckCountLine {
  std::uint32_t count;
};

struct AnswerLine {
  std::uint32_t op;
  std::uint32_t length;
};

struct DataLine {
  std::uint32_t op;
  std::uint32_t slot;
  std::uint32_t length;
};

struct AtomicAnswerLine {
  std::uint64_t value;
  std::uint32_t op;
};

constexpr std::size_t max_line_payload = line_bytes - sizeof(LineHeader);
static_assert(sizeof(WriteLine) <= max_line_payload && sizeof(AtomicLine) <= max_line_payload &&
              sizeof(SendLine) <= max_line_payload);

template <class Fields>
Fields read_fields(const Line* line) noexcept {
  Fields fields;
  std::memcpy(&fields, line->payload, sizeof fields);
  return fields;
}

template <class Fields>
void write_fields(Line* line, const Fields& fields) noexcept {
  std::memcpy(line->payload, &fields, sizeof fields);
}

}  // namespace weft::hca::emu
