// Atomics on 4 and 8 bytes. Whoever executes them uses the processor's own, so they agree with what
// the target process does with std::atomic, and with UCX's transport to itself.
#include <array>
#include <cstring>

#include "hca/emu/atomics.hpp"
#include "ucx-tl/weft_ep.hpp"
#include "ucx-tl/weft_status.hpp"

namespace weft::ucx::wire {

using hca::WcStatus;
using hca::emu::AtomicOp;
using hca::emu::Operation;

namespace {

constexpr std::array<AtomicOp, UCT_ATOMIC_OP_LAST> code_of = [] {
  std::array<AtomicOp, UCT_ATOMIC_OP_LAST> table{};
  table[UCT_ATOMIC_OP_ADD] = AtomicOp::fetch_add;
  table[UCT_ATOMIC_OP_AND] = AtomicOp::fetch_and;
  table[UCT_ATOMIC_OP_OR] = AtomicOp::fetch_or;
  table[UCT_ATOMIC_OP_XOR] = AtomicOp::fetch_xor;
  table[UCT_ATOMIC_OP_SWAP] = AtomicOp::swap;
  table[UCT_ATOMIC_OP_CSWAP] = AtomicOp::compare_swap;
  return table;
}();

void post_done(Operation* self, WcStatus status) {
  operation_done(static_cast<WireOperation*>(self), status_of(status));
}

template <class Value>
void fetch_done(Operation* self, WcStatus status) {
  auto* op = static_cast<WireOperation*>(self);
  if (status == WcStatus::success) {
    const auto value = static_cast<Value>(op->Operation::result);
    std::memcpy(op->result, &value, sizeof value);
  }
  operation_done(op, status_of(status));
}

template <class Value>
ucs_status_t post(uct_ep_h uct_ep, AtomicOp code, Value operand, Value compare,
                  std::uint64_t remote_addr, uct_rkey_t rkey, Value* result,
                  uct_completion_t* comp) {
  Ep* ep = ep_of(uct_ep);
  if (ep->blocked) [[unlikely]] {
    return UCS_ERR_NO_RESOURCE;
  }
  if (!ep->link->alive()) [[unlikely]] {
    return why_no_room(ep);
  }
  if (std::byte* at = ep->shared.at(*ep->link, remote_addr, sizeof(Value), rkey);
      at != nullptr && remote_addr % sizeof(Value) == 0) {
    const Value before = hca::emu::apply_atomic_word(at, code, operand, compare);
    if (result != nullptr) *result = before;
    return UCS_OK;
  }
  WireOperation* op = ep->iface->operations.acquire();
  op->ep = ep;
  op->comp = comp;
  op->staging = nullptr;
  op->result = result;
  op->done = result == nullptr ? post_done : fetch_done<Value>;
  const hca::emu::RemoteMemory remote{.addr = remote_addr,
                                      .rkey = static_cast<std::uint32_t>(rkey)};
  if (!ep->link->atomic(op, code, sizeof(Value), remote, operand, compare)) [[unlikely]] {
    ep->iface->operations.put_back(op);
    return why_no_room(ep);
  }
  op->span = ep->flushes.start();
  return UCS_INPROGRESS;
}

ucs_status_t posted(ucs_status_t status) {
  return status == UCS_INPROGRESS ? UCS_OK : status;
}

}  // namespace

ucs_status_t ep_atomic32_post(uct_ep_h ep, unsigned code, std::uint32_t value,
                              std::uint64_t remote_addr, uct_rkey_t rkey) {
  return posted(
      post<std::uint32_t>(ep, code_of[code], value, 0, remote_addr, rkey, nullptr, nullptr));
}

ucs_status_t ep_atomic64_post(uct_ep_h ep, unsigned code, std::uint64_t value,
                              std::uint64_t remote_addr, uct_rkey_t rkey) {
  return posted(
      post<std::uint64_t>(ep, code_of[code], value, 0, remote_addr, rkey, nullptr, nullptr));
}

ucs_status_t ep_atomic32_fetch(uct_ep_h ep, unsigned code, std::uint32_t value,
                               std::uint32_t* result, std::uint64_t remote_addr, uct_rkey_t rkey,
                               uct_completion_t* comp) {
  return post<std::uint32_t>(ep, code_of[code], value, 0, remote_addr, rkey, result, comp);
}

ucs_status_t ep_atomic64_fetch(uct_ep_h ep, unsigned code, std::uint64_t value,
                               std::uint64_t* result, std::uint64_t remote_addr, uct_rkey_t rkey,
                               uct_completion_t* comp) {
  return post<std::uint64_t>(ep, code_of[code], value, 0, remote_addr, rkey, result, comp);
}

ucs_status_t ep_atomic_cswap32(uct_ep_h ep, std::uint32_t compare, std::uint32_t swap,
                               std::uint64_t remote_addr, uct_rkey_t rkey, std::uint32_t* result,
                               uct_completion_t* comp) {
  return post(ep, AtomicOp::compare_swap, swap, compare, remote_addr, rkey, result, comp);
}

ucs_status_t ep_atomic_cswap64(uct_ep_h ep, std::uint64_t compare, std::uint64_t swap,
                               std::uint64_t remote_addr, uct_rkey_t rkey, std::uint64_t* result,
                               uct_completion_t* comp) {
  return post(ep, AtomicOp::compare_swap, swap, compare, remote_addr, rkey, result, comp);
}

}  // namespace weft::ucx::wire
