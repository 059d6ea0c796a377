// RequestWatch: keeps a binding until the request that uses it is over.
#pragma once

#include <cstddef>
#include <memory>

#include "ompi-component/hook/binding.hpp"
#include "ompi-component/hook/counters.hpp"
#include "ompi-component/ompi.hpp"

namespace weft::ompi {

/// Made before the pml is called, so that no memory is needed once the message is under way. After
/// follow() the request owns the binding:
///
/// - A request that is complete already (pml/ucx's static one among them) is not touched.
/// - Otherwise the binding ends in the request's `req_free`, which Open MPI calls when it has found
///   the request complete. `req_complete_cb` would be earlier, but others set it after us.
/// - A request that is freed while it is active is kept aside and freed when it has completed.
class RequestWatch {
 public:
  /// `room`: what a short message was gathered into, kept as long as the binding.
  RequestWatch(Direction direction, Binding&& binding,
               std::unique_ptr<std::byte[]> room = nullptr) noexcept;
  ~RequestWatch();

  explicit operator bool() const noexcept { return record_ != nullptr; }
  [[nodiscard]] const Binding& binding() const noexcept;

  void follow(ompi_request_t* request) noexcept;
  /// A persistent request keeps its binding over all its starts.
  void follow_persistent(ompi_request_t* request) noexcept;

  struct Record;

 private:
  std::unique_ptr<Record> record_;
};

/// Stops looking after requests that were freed while active: they may not be touched once the pml
/// is closed.
void close_request_watch() noexcept;

}  // namespace weft::ompi
