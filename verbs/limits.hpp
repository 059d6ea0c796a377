// What the device states as its limits, by profile.
#pragma once

#include <cstdint>

#include "verbs/infiniband/weft_verbs.h"

namespace weft::verbs {

struct Limits {
  int max_qp = 16382;
  int max_qp_wr = 32768;
  int max_sge = 64;
  std::uint32_t max_inline_data = 512;
  int max_cq = 1 << 16;
  int max_cqe = 1 << 22;
  int max_mr = 1 << 24;
  std::uint64_t max_mr_size = ~std::uint64_t{0} >> 1;
  int max_pd = 1 << 24;
  int max_mw = 1 << 24;
  int max_ah = 1 << 24;
  int max_srq = 1 << 16;
  int max_srq_wr = 32768;
  int max_srq_sge = 64;
  int max_reads = 128;
  bool atomics_with_cpu = true;  ///< IBV_ATOMIC_GLOB: they agree with the processor's own
  ibv_mr_layout_caps layouts{};
  bool overlapping_strides = true;  ///< an interleaved entry's stride may be below its block
};

/// Those of WEFT_HCA_PROFILE: `default`, or `connectx`, what a ConnectX-5 states, and after the
/// name, separated by commas, what of the layouts' capabilities is different: `-interleaved_repeat`
/// takes a bit, `max_num_sg=8` sets a limit. What it does not know is said on stderr once and left
/// out.
const Limits& limits();
/// The name of the profile in force.
const char* profile_name();
/// Takes another profile from now on; for tests, while no other thread uses the device.
void choose_profile(const char* profile);

}  // namespace weft::verbs
