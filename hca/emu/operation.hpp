// An RDMA or atomic operation under way: owned by the caller, linked into the engine until done.
#pragma once

#include <cstddef>
#include <cstdint>

#include "hca/layout.hpp"
#include "hca/status.hpp"

namespace weft::hca::emu {

/// Local memory of an operation: `layout` null means contiguous bytes at `base + offset`.
/// Whoever posts it has checked lkey and bounds, and keeps layout and memory alive until
/// completion.
struct LocalMemory {
  std::byte* base = nullptr;
  const Layout* layout = nullptr;
  std::uint64_t offset = 0;  ///< into the packed stream of `layout`, or added to `base`
};

/// Remote memory: an address that the key covers.
struct RemoteMemory {
  std::uint64_t addr = 0;
  std::uint32_t rkey = 0;
};

enum class AtomicOp : std::uint8_t {
  fetch_add,
  swap,
  compare_swap,
  fetch_and,
  fetch_or,
  fetch_xor
};

class Link;

/// Four bytes that travel with a send, when `present`.
struct Immediate {
  std::uint32_t data = 0;
  bool present = false;
};

/// What a request to a QP carries besides memory. All zero for operations of no QP: then the key
/// alone decides.
struct Envelope {
  std::uint16_t qp = 0;         ///< index of the peer's QP in its context
  std::uint32_t psn = 0;        ///< RC: its place in the order of the QP's requests, 24 bits
  std::uint32_t source_qp = 0;  ///< UD
  std::uint32_t qkey = 0;       ///< UD
  Immediate immediate{};
  bool solicited = false;
  bool invalidate = false;  ///< send: the immediate is a key that the receiver loses
};

/// Completed exactly once: from Context::progress() of the posting process, in the thread that
/// calls it, or, when `in_engine`, under the engine's lock in whatever thread runs it.
struct Operation {
  using Done = void (*)(Operation* self, WcStatus status);
  Done done = nullptr;
  std::uint64_t result = 0;  ///< atomics: the value before
  bool in_engine = false;
  std::uint8_t rnr_timer = 0;  ///< with rnr_retry_exc_err: what the peer's QP asks to wait for

  // Of the engine; not for callers.
  enum class Kind : std::uint8_t { write, read, atomic, send };
  LocalMemory local{};
  std::uint64_t length = 0;
  std::uint64_t moved = 0;
  std::uint64_t remote_addr = 0;
  Link* link = nullptr;
  Operation* next = nullptr;
  std::uint32_t id = 0;
  std::uint32_t rkey = 0;
  Envelope envelope{};
  WcStatus status = WcStatus::success;
  Kind kind = Kind::write;
};

}  // namespace weft::hca::emu
