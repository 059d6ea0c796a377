#include "ompi-component/hook/counters.hpp"

namespace weft::ompi {

Counters counters;

const char* to_string(Direction direction) noexcept {
  return direction == Direction::send ? "send" : "receive";
}

const char* to_string(Fallback reason) noexcept {
  switch (reason) {
    case Fallback::bsend:
      return "bsend";
    case Fallback::min_size:
      return "min_size";
    case Fallback::limits:
      return "limits";
    case Fallback::no_window:
      return "no_window";
    case Fallback::no_memory:
      return "no_memory";
    case Fallback::inactive:
      return "inactive";
    case Fallback::pml:
      return "pml";
  }
  return "unknown";
}

const char* explain(Fallback reason) noexcept {
  switch (reason) {
    case Fallback::bsend:
      return "buffered send";
    case Fallback::min_size:
      return "below hook_weft_min_size";
    case Fallback::limits:
      return "over a limit of the device";
    case Fallback::no_window:
      return "no window left";
    case Fallback::no_memory:
      return "no memory left";
    case Fallback::inactive:
      return "transport not active";
    case Fallback::pml:
      return "pml is not ucx";
  }
  return "unknown";
}

}  // namespace weft::ompi
