#include "hca/status.hpp"

namespace weft::hca {

const char* to_string(WcStatus status) noexcept {
  switch (status) {
    case WcStatus::success:
      return "success";
    case WcStatus::loc_len_err:
      return "local length error";
    case WcStatus::loc_qp_op_err:
      return "local QP operation error";
    case WcStatus::loc_prot_err:
      return "local protection error";
    case WcStatus::wr_flush_err:
      return "work request flushed error";
    case WcStatus::rem_inv_req_err:
      return "remote invalid request error";
    case WcStatus::rem_access_err:
      return "remote access error";
    case WcStatus::rem_op_err:
      return "remote operation error";
    case WcStatus::retry_exc_err:
      return "transport retry counter exceeded";
    case WcStatus::rnr_retry_exc_err:
      return "RNR retry counter exceeded";
    case WcStatus::mw_bind_err:
      return "memory bind operation error";
  }
  return "unknown status";
}

}  // namespace weft::hca
