#include "ucx-tl/weft_status.hpp"

#include <cerrno>

namespace weft::ucx::wire {

ucs_status_t status_of(const hca::Error& error) noexcept {
  switch (error.code()) {
    case ENOMEM:
    case ENOSPC:
      return UCS_ERR_NO_MEMORY;
    case EHOSTUNREACH:
      return UCS_ERR_UNREACHABLE;
    case EINVAL:
      return UCS_ERR_INVALID_PARAM;
    case EACCES:
    case EPROTO:
      return UCS_ERR_NO_DEVICE;
    default:
      return UCS_ERR_IO_ERROR;
  }
}

ucs_status_t failure_of(hca::WcStatus status) noexcept {
  switch (status) {
    case hca::WcStatus::success:
      return UCS_OK;
    case hca::WcStatus::retry_exc_err:
      return UCS_ERR_ENDPOINT_TIMEOUT;  // what UCX's own transports report for a dead peer
    case hca::WcStatus::wr_flush_err:
      return UCS_ERR_CANCELED;
    case hca::WcStatus::rem_access_err:
      return UCS_ERR_REJECTED;
    case hca::WcStatus::loc_prot_err:
      return UCS_ERR_INVALID_ADDR;
    case hca::WcStatus::loc_len_err:
    case hca::WcStatus::loc_qp_op_err:
      return UCS_ERR_INVALID_PARAM;
    default:
      return UCS_ERR_IO_ERROR;
  }
}

}  // namespace weft::ucx::wire
