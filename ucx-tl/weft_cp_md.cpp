#include <ucs/debug/log_def.h>
#include <ucs/sys/stubs.h>

#include <climits>
#include <cstring>

#include "ucx-tl/activity.hpp"
#include "ucx-tl/weft_cp.hpp"
#include "ucx-tl/window.hpp"
#include "ucx-tl/window_memory_type.hpp"

namespace weft::ucx::cp {
namespace {

ucs_status_t query(uct_md_h, uct_md_attr_t* attr) {
  std::memset(attr, 0, sizeof *attr);
  // HOST too: UCX wires its internal endpoint for a memory type only through a domain that has it.
  attr->cap.flags = UCT_MD_FLAG_REG;
  constexpr std::uint64_t window_types =
      UCS_BIT(window_memory_type) | UCS_BIT(coarse_window_memory_type);
  attr->cap.reg_mem_types = UCS_BIT(UCS_MEMORY_TYPE_HOST) | window_types;
  attr->cap.access_mem_types = window_types;
  attr->cap.detect_mem_types = UCS_BIT(window_memory_type);
  attr->cap.max_reg = ULONG_MAX;
  std::memset(&attr->local_cpus, 0xff, sizeof attr->local_cpus);
  return UCS_OK;
}

ucs_status_t mem_reg(uct_md_h, void*, std::size_t, unsigned, uct_mem_h* memh) {
  static char registered;  // nothing to keep; UCX only wants it not null
  *memh = &registered;
  return UCS_OK;
}

ucs_status_t mem_dereg(uct_md_h, const abi::MemDeregParams* params) {
  if ((params->field_mask & abi::MemDeregParams::has_flags) != 0 &&
      (params->flags & abi::MemDeregParams::invalidate) != 0) {
    return UCS_ERR_UNSUPPORTED;
  }
  return UCS_OK;
}

ucs_status_t detect_memory_type(uct_md_h, const void* address, std::size_t,
                                ucs_memory_type_t* mem_type) {
  if (!windows().contains(address)) return UCS_ERR_INVALID_ADDR;
  *mem_type = window_memory_type;
  return UCS_OK;
}

ucs_status_t mem_query(uct_md_h, const void* address, std::size_t length, uct_md_mem_attr_t* attr) {
  if (!windows().contains(address)) return UCS_ERR_INVALID_ADDR;
  const Resolved window = windows().resolve(address);
  if ((attr->field_mask & UCT_MD_MEM_ATTR_FIELD_MEM_TYPE) != 0) attr->mem_type = window_memory_type;
  if ((attr->field_mask & UCT_MD_MEM_ATTR_FIELD_SYS_DEV) != 0) {
    attr->sys_dev = UCS_SYS_DEVICE_ID_UNKNOWN;
  }
  if ((attr->field_mask & UCT_MD_MEM_ATTR_FIELD_BASE_ADDRESS) != 0) {
    attr->base_address = window ? windows().window_of(address) : const_cast<void*>(address);
  }
  if ((attr->field_mask & UCT_MD_MEM_ATTR_FIELD_ALLOC_LENGTH) != 0) {
    attr->alloc_length = window ? window.layout->size() : length;
  }
  return UCS_OK;
}

ucs_status_t open(uct_component*, const char*, const uct_md_config_t*, uct_md_h* md) {
  static uct_md_ops_t ops = [] {
    uct_md_ops_t table{};
    table.close = [](uct_md_h) {};
    table.query = query;
    table.mem_reg = mem_reg;
    table.mem_dereg = mem_dereg;
    table.mem_query = mem_query;
    table.mkey_pack = [](uct_md_h, uct_mem_h, const abi::MkeyPackParams*, void*) { return UCS_OK; };
    table.is_sockaddr_accessible = [](uct_md_h, const ucs_sock_addr_t*,
                                      uct_sockaddr_accessibility_t) { return 0; };
    table.detect_memory_type = detect_memory_type;
    return table;
  }();
  static uct_md domain{.ops = &ops, .component = &component};  // it has no state
  if (!windows().open()) {
    activity().note("no addresses left for windows (is the address space limited, ulimit -v?)");
    ucs_diag("weft_cp: no addresses left for windows");
    return UCS_ERR_NO_MEMORY;
  }
  *md = &domain;
  return UCS_OK;
}

ucs_status_t rkey_unpack(uct_component*, const void*, uct_rkey_t* rkey, void** handle) {
  *rkey = 0;
  *handle = nullptr;
  return UCS_OK;
}

}  // namespace

uct_component component = {
    .name = "weft_cp",
    .query_md_resources = abi::uct_md_query_single_md_resource,
    .md_open = open,
    .cm_open = [](uct_component*, uct_worker_h, const uct_cm_config_t*,
                  uct_cm_h*) { return UCS_ERR_UNSUPPORTED; },
    .rkey_unpack = rkey_unpack,
    .rkey_ptr = [](uct_component*, uct_rkey_t, void*, std::uint64_t,
                   void**) { return UCS_ERR_UNSUPPORTED; },
    .rkey_release = [](uct_component*, uct_rkey_t, void*) { return UCS_OK; },
    .md_config = {.name = "weft_cp memory domain",
                  .prefix = "WEFT_CP_",
                  .table = abi::uct_md_config_table,
                  .size = sizeof(uct_md_config),
                  .list = {}},
    .cm_config = {.name = nullptr, .prefix = nullptr, .table = nullptr, .size = 0, .list = {}},
    .transports = {&component.transports, &component.transports},
    .list = {},
    .flags = 0,
    .md_vfs_init = [](uct_md_h) {},
};

}  // namespace weft::ucx::cp
