// The device's statuses and errors in UCX's words.
#pragma once

#include <ucs/type/status.h>

#include "hca/status.hpp"

namespace weft::ucx::wire {

ucs_status_t status_of(const hca::Error& error) noexcept;

ucs_status_t failure_of(hca::WcStatus status) noexcept;
inline ucs_status_t status_of(hca::WcStatus status) noexcept {
  return status == hca::WcStatus::success ? UCS_OK : failure_of(status);
}

}  // namespace weft::ucx::wire
