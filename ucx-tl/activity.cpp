#include "ucx-tl/activity.hpp"

#include <mutex>

#include "ucx-tl/window.hpp"

namespace weft::ucx {
namespace {

std::mutex reason_mutex;
std::string& reason() {
  static auto* text = new std::string;  // outlives static destructors
  return *text;
}

}  // namespace

void Activity::note(std::string text) noexcept {
  const std::lock_guard lock(reason_mutex);
  reason() = std::move(text);
}

const char* Activity::why_not() noexcept {
  if (both_open()) return "";
  const std::lock_guard lock(reason_mutex);
  if (!reason().empty()) return reason().c_str();
  if (copy_ifaces.load() > 0) return "UCX did not open the transport weft (UCX_TLS leaves it out?)";
  if (wire_ifaces.load() > 0)
    return "UCX did not open the transport weft_cp (UCX_TLS leaves it out?)";
  return "UCX opened neither weft nor weft_cp (UCX_TLS leaves them out, or UCX is not in use)";
}

Activity& activity() noexcept {
  static constinit Activity state;
  return state;
}

}  // namespace weft::ucx
