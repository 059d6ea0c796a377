// Interface of weft: one context of the emulated HCA, progressed by one worker.
#pragma once

#include <memory>
#include <vector>

#include "hca/emu/context.hpp"
#include "hca/emu/turns.hpp"
#include "ucx-tl/abi/uct_1_13.h"
#include "ucx-tl/wire_operation.hpp"

namespace weft::ucx::wire {

struct Ep;

struct IfaceConfig {
  uct_iface_config super;
  double bandwidth;
  double latency;
  double overhead;
};

/// What went by zero copy, told at UCX_LOG_LEVEL=info when the interface closes.
struct Traffic {
  std::uint64_t calls = 0;
  std::uint64_t bytes = 0;
  void count(std::uint64_t length) noexcept {
    ++calls;
    bytes += length;
  }
};

struct Iface : abi::BaseIface {
  std::unique_ptr<hca::emu::Context> context;
  hca::emu::Turns turns;
  OperationPool operations;
  std::vector<Ep*> eps;      ///< all of them, for flush, fence and failures
  std::vector<Ep*> waiting;  ///< those with pending requests, each once
  std::vector<Ep*> failed;   ///< those whose failure UCX has not been told yet
  std::vector<Ep*> zombies;  ///< destroyed, but operations still point to them
  Traffic gets;
  Traffic puts;
  double bandwidth = 0;
  double latency = 0;
  double overhead = 0;
};

inline Iface* iface_of(uct_iface_h iface) {
  return static_cast<Iface*>(reinterpret_cast<abi::BaseIface*>(iface));
}

// weft_iface.cpp
extern abi::Transport transport;

// weft_iface_query.cpp
ucs_status_t iface_query(uct_iface_h iface, uct_iface_attr_t* attr);

}  // namespace weft::ucx::wire
