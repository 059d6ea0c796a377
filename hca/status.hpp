// Completion statuses and errors, under the names of the IB specification (11.6.2).
#pragma once

#include <cstdint>
#include <stdexcept>
#include <string>

namespace weft::hca {

/// Status of a completed work request.
enum class WcStatus : std::uint8_t {
  success,
  loc_len_err,        ///< the message is longer than the buffers given for it
  loc_qp_op_err,      ///< the work request itself is malformed
  loc_prot_err,       ///< a local key does not cover the buffer
  wr_flush_err,       ///< the QP was in the error state
  rem_inv_req_err,    ///< the responder cannot do what was asked
  rem_access_err,     ///< the remote key, its bounds or its access flags forbid the access
  rem_op_err,         ///< the responder failed while it worked
  retry_exc_err,      ///< the peer is dead or does not answer
  rnr_retry_exc_err,  ///< the peer had no receive posted
  mw_bind_err,        ///< a memory window cannot be bound like that
};

/// Name of a status, as `ibv_wc_status_str` would give it.
const char* to_string(WcStatus status) noexcept;

/// Thrown by the cold calls (open, register, create). `code` is an errno value.
class Error : public std::runtime_error {
 public:
  Error(int code, const std::string& what) : std::runtime_error(what), code_(code) {}
  [[nodiscard]] int code() const noexcept { return code_; }

 private:
  int code_;
};

}  // namespace weft::hca
