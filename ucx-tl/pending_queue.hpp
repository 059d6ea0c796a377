// Requests that found no room, in order. Linked through the space UCT gives a transport in them.
#pragma once

#include <uct/api/uct.h>

namespace weft::ucx {

class PendingQueue {
 public:
  [[nodiscard]] bool empty() const noexcept { return first_ == nullptr; }

  void push_back(uct_pending_req_t* request) noexcept {
    next_of(request) = nullptr;
    if (first_ == nullptr) {
      first_ = request;
    } else {
      next_of(last_) = request;
    }
    last_ = request;
  }
  void push_front(uct_pending_req_t* request) noexcept {
    next_of(request) = first_;
    if (first_ == nullptr) last_ = request;
    first_ = request;
  }
  uct_pending_req_t* pop_front() noexcept {
    uct_pending_req_t* request = first_;
    first_ = next_of(request);
    return request;
  }

 private:
  static uct_pending_req_t*& next_of(uct_pending_req_t* request) noexcept {
    return *reinterpret_cast<uct_pending_req_t**>(request->priv);
  }
  static_assert(sizeof(uct_pending_req_t*) <= UCT_PENDING_REQ_PRIV_LEN);

  uct_pending_req_t* first_ = nullptr;
  uct_pending_req_t* last_ = nullptr;
};

}  // namespace weft::ucx
