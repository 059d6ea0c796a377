// What the device, its port and its tables say of themselves.
#include <endian.h>
#include <time.h>

#include <algorithm>
#include <cstring>

#include "config.h"
#include "hca/emu/queue_pair.hpp"
#include "verbs/context.hpp"
#include "verbs/log.hpp"

namespace weft::verbs {

namespace {

void fill(const Context& context, ibv_device_attr& attr) {
  const Limits& limit = limits();
  attr = {};
  std::strncpy(attr.fw_ver, PACKAGE_VERSION, sizeof attr.fw_ver - 1);
  const ibv_gid gid = gid_of(context);
  attr.node_guid = gid.global.interface_id;
  attr.sys_image_guid = gid.global.interface_id;
  attr.max_mr_size = limit.max_mr_size;
  attr.page_size_cap = ~std::uint64_t{0xfff};
  attr.max_qp = limit.max_qp;
  attr.max_qp_wr = limit.max_qp_wr;
  attr.device_cap_flags = IBV_DEVICE_CURR_QP_STATE_MOD | IBV_DEVICE_RC_RNR_NAK_GEN |
                          IBV_DEVICE_SRQ_RESIZE | IBV_DEVICE_N_NOTIFY_CQ | IBV_DEVICE_MEM_WINDOW |
                          IBV_DEVICE_MEM_WINDOW_TYPE_2B | IBV_DEVICE_MEM_MGT_EXTENSIONS |
                          IBV_DEVICE_SYS_IMAGE_GUID;
  attr.max_sge = limit.max_sge;
  attr.max_sge_rd = limit.max_sge;
  attr.max_cq = limit.max_cq;
  attr.max_cqe = limit.max_cqe;
  attr.max_mr = limit.max_mr;
  attr.max_pd = limit.max_pd;
  attr.max_qp_rd_atom = limit.max_reads;
  attr.max_res_rd_atom = limit.max_reads * limit.max_qp;
  attr.max_qp_init_rd_atom = limit.max_reads;
  attr.atomic_cap = limit.atomics_with_cpu ? IBV_ATOMIC_GLOB : IBV_ATOMIC_HCA;
  attr.max_mw = limit.max_mw;
  attr.max_ah = limit.max_ah;
  attr.max_srq = limit.max_srq;
  attr.max_srq_wr = limit.max_srq_wr;
  attr.max_srq_sge = limit.max_srq_sge;
  attr.max_pkeys = 1;
  attr.phys_port_cnt = 1;
}

}  // namespace

int query_device(ibv_context* context, ibv_device_attr* attr) {
  fill(Context::of(context), *attr);
  return 0;
}

int query_device_ex(ibv_context* context, const ibv_query_device_ex_input* input,
                    ibv_device_attr_ex* attr, std::size_t size) {
  if ((input != nullptr && input->comp_mask != 0) || size < sizeof attr->orig_attr) return EINVAL;
  ibv_device_attr_ex all{};
  fill(Context::of(context), all.orig_attr);
  all.completion_timestamp_mask = ~std::uint64_t{0};
  all.hca_core_clock = 1'000'000;  // kHz: time stamps are in nanoseconds
  all.device_cap_flags_ex = all.orig_attr.device_cap_flags;
  all.max_dm_size = Context::of(context).core->device().memory().size();
  all.phys_port_cnt_ex = 1;
  std::memcpy(attr, &all, std::min(size, sizeof all));
  return 0;
}

int query_port(ibv_context*, std::uint8_t port, ibv_port_attr* attr, std::size_t size) {
  if (port != only_port) return EINVAL;
  ibv_port_attr all{};
  all.state = IBV_PORT_ACTIVE;
  all.max_mtu = IBV_MTU_4096;
  all.active_mtu = IBV_MTU_4096;
  all.gid_tbl_len = 1;
  all.max_msg_sz = hca::emu::max_message;
  all.pkey_tbl_len = 1;
  all.lid = only_lid;
  all.sm_lid = only_lid;
  all.max_vl_num = 1;
  all.active_width = 2;   // 4x
  all.active_speed = 32;  // EDR: 100 Gb/s, the order of what the memory does
  all.phys_state = 5;     // link up
  all.link_layer = IBV_LINK_LAYER_INFINIBAND;
  std::memcpy(attr, &all, std::min(size, sizeof all));
  return 0;
}

int query_rt_values(ibv_context*, ibv_values_ex* values) {
  const std::uint32_t wanted = values->comp_mask;
  values->comp_mask = 0;
  if ((wanted & IBV_VALUES_MASK_RAW_CLOCK) != 0) {
    ::clock_gettime(CLOCK_MONOTONIC, &values->raw_clock);
    values->comp_mask |= IBV_VALUES_MASK_RAW_CLOCK;
  }
  return 0;
}

int query_gid_entry(ibv_context* context, std::uint32_t port, std::uint32_t index,
                    ibv_gid_entry* entry, std::uint32_t flags, std::size_t size) {
  if (port != only_port || flags != 0) return EINVAL;
  if (index != 0) return ENODATA;
  ibv_gid_entry all{};
  all.gid = gid_of(Context::of(context));
  all.port_num = only_port;
  all.gid_type = IBV_GID_TYPE_IB;
  std::memcpy(entry, &all, std::min(size, sizeof all));
  return 0;
}

}  // namespace weft::verbs
