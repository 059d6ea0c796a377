// Layouts of memory regions on a card: libweft-mlx5.so (hca/mlx5), loaded when a program first asks
// for one on a device that is not the emulated one.
#pragma once

#include <infiniband/verbs.h>

#include "verbs/infiniband/weft_verbs.h"

namespace weft::verbs {

/// Whether layouts can be had on this device of the machine's.
bool has_card_layouts(const ibv_context* context) noexcept;

/// A carrier as ibv_reg_mr(pd, NULL, 0, IBV_ACCESS_ZERO_BASED | access) makes one; null with errno.
ibv_mr* reg_card_carrier(ibv_pd* pd, unsigned access);
/// False for all other MRs of whatever device.
bool is_card_carrier(const ibv_mr* mr) noexcept;
int dereg_card_carrier(ibv_mr* mr);

// As the calls of weft_verbs.h, on a device that has_card_layouts().
int query_card_layout_caps(ibv_context* context, ibv_mr_layout_caps* caps);
int set_card_layout_sg(ibv_mr* mr, int flags, int num_sge, const ibv_sge* sg_list);
int set_card_layout_interleaved(ibv_mr* mr, int flags, int num_interleaved,
                                const ibv_mr_layout_interleaved* list);

}  // namespace weft::verbs
