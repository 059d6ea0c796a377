#include "ucx-tl/weft_md.hpp"

#include <ucs/debug/log_def.h>

#include <climits>
#include <cstring>
#include <new>
#include <utility>

#include "hca/emu/device_file.hpp"
#include "ucx-tl/flush_tracker.hpp"
#include "ucx-tl/weft_status.hpp"
#include "ucx-tl/window.hpp"
#include "ucx-tl/window_layout.hpp"
#include "ucx-tl/window_memory_type.hpp"

namespace weft::ucx::wire {

namespace {

ucs_config_field_t config_table[] = {
    {"", "", nullptr, offsetof(MdConfig, super), UCS_CONFIG_TYPE_TABLE(abi::uct_md_config_table)},
    {"DEVICE", hca::emu::default_device, "Emulated device to open", offsetof(MdConfig, device),
     UCS_CONFIG_TYPE_STRING},
    {"REG_COST", "12us",
     "Cost of a registration that UCX counts with; it decides where rendezvous begins",
     offsetof(MdConfig, reg_cost), UCS_CONFIG_TYPE_TIME},
    {"ASYNC", "n",
     "Let the helper thread carry on operations as soon as they are posted, not only when a peer "
     "finds\n"
     "the process not attending. Worth it where cores are idle and processes compute while they "
     "wait.",
     offsetof(MdConfig, async), UCS_CONFIG_TYPE_BOOL},
    {nullptr, nullptr, nullptr, 0, {}},
};

Md* self_of(uct_md_h md) {
  return static_cast<Md*>(md);
}

ucs_status_t query(uct_md_h md, uct_md_attr_t* attr) {
  std::memset(attr, 0, sizeof *attr);
  attr->cap.flags =
      UCT_MD_FLAG_REG | UCT_MD_FLAG_ALLOC | UCT_MD_FLAG_NEED_RKEY | UCT_MD_FLAG_INVALIDATE;
  attr->cap.alloc_mem_types = UCS_BIT(UCS_MEMORY_TYPE_HOST);
  attr->cap.max_alloc = ULONG_MAX;
  // Not the coarse windows, so that UCP copies them.
  attr->cap.reg_mem_types = UCS_BIT(UCS_MEMORY_TYPE_HOST) | UCS_BIT(window_memory_type);
  // Windows are reached through weft_cp: named here as well, UCX would copy through the wire.
  attr->cap.access_mem_types = UCS_BIT(UCS_MEMORY_TYPE_HOST);
  attr->cap.max_reg = ULONG_MAX;
  attr->rkey_packed_size = sizeof(PackedKey);
  attr->reg_cost = {.c = self_of(md)->reg_cost, .m = 0};
  std::memset(&attr->local_cpus, 0xff, sizeof attr->local_cpus);
  return UCS_OK;
}

hca::emu::Region region_of(void* address, std::size_t length) {
  hca::emu::Region region;
  region.addr = reinterpret_cast<std::uint64_t>(address);
  region.length = length;
  region.base = static_cast<std::byte*>(address);
  // Whatever access was asked for: UCX's registration cache gives a key out again for other uses.
  region.access = hca::Access::all;
  if (windows().contains(address)) {
    // From its first byte on: the layout counts from there.
    region.base = static_cast<std::byte*>(windows().window_of(address));
    region.length += static_cast<std::byte*>(address) - region.base;
    region.addr = reinterpret_cast<std::uint64_t>(region.base);
    region.layout = hca::LayoutPtr(hca::LayoutPtr{}, &window_layout());  // owns nothing
  }
  return region;
}

uct_mem_h handle_of(std::uint32_t key) {
  return reinterpret_cast<uct_mem_h>(std::uintptr_t{key});
}
std::uint32_t key_of(uct_mem_h memh) {
  return static_cast<std::uint32_t>(reinterpret_cast<std::uintptr_t>(memh));
}

ucs_status_t mem_reg(uct_md_h md, void* address, std::size_t length, unsigned flags,
                     uct_mem_h* memh) {
  try {
    *memh = handle_of(self_of(md)->domain->register_region(region_of(address, length)));
    return UCS_OK;
  } catch (const hca::Error& error) {
    if ((flags & UCT_MD_MEM_FLAG_HIDE_ERRORS) == 0) {
      ucs_error("weft: cannot register %zu bytes at %p: %s", length, address, error.what());
    }
    return status_of(error);
  }
}

ucs_status_t mem_dereg(uct_md_h md, const abi::MemDeregParams* params) {
  using Params = abi::MemDeregParams;
  if ((params->field_mask & Params::has_memh) == 0) return UCS_ERR_INVALID_PARAM;
  try {
    self_of(md)->domain->deregister(key_of(params->memh));
  } catch (const hca::Error& error) {
    ucs_error("weft: cannot deregister: %s", error.what());
    return status_of(error);
  }
  // Nobody uses the key any more, which is all that invalidation asks for.
  const bool invalidate =
      (params->field_mask & Params::has_flags) != 0 && (params->flags & Params::invalidate) != 0;
  if (invalidate && (params->field_mask & Params::has_completion) != 0) {
    complete(params->comp, UCS_OK);
  }
  return UCS_OK;
}

// Memory that peers read, write and change without this process: see hca::emu::SharedRegion.
ucs_status_t mem_alloc(uct_md_h uct_md, std::size_t* length, void** address,
                       ucs_memory_type_t memory_type, unsigned flags, const char* name,
                       uct_mem_h* memh) {
  if (memory_type != UCS_MEMORY_TYPE_HOST || (flags & UCT_MD_MEM_FLAG_FIXED) != 0) {
    return UCS_ERR_UNSUPPORTED;
  }
  Md* md = self_of(uct_md);
  try {
    auto region = hca::emu::SharedRegion::create(*length);
    const std::uint32_t key =
        md->domain->register_region(region_of(region->memory(), region->length()));
    region->set_key(key);
    *address = region->memory();
    *length = region->length();
    *memh = handle_of(key);
    const std::scoped_lock guard(md->shared_mutex);
    md->shared[key] = std::move(region);
    return UCS_OK;
  } catch (const hca::Error& error) {
    if ((flags & UCT_MD_MEM_FLAG_HIDE_ERRORS) == 0) {
      ucs_error("weft: cannot allocate %zu bytes for %s: %s", *length, name, error.what());
    }
    return status_of(error);
  }
}

ucs_status_t mem_free(uct_md_h uct_md, uct_mem_h memh) {
  Md* md = self_of(uct_md);
  const std::scoped_lock guard(md->shared_mutex);
  const auto at = md->shared.find(key_of(memh));
  if (at == md->shared.end()) return UCS_ERR_INVALID_PARAM;
  // Peers first: from here on they ask by the ordinary key, and are refused.
  at->second->set_key(0);
  md->domain->deregister(key_of(memh));
  md->shared.erase(at);
  return UCS_OK;
}

ucs_status_t mkey_pack(uct_md_h uct_md, uct_mem_h memh, const abi::MkeyPackParams*, void* buffer) {
  Md* md = self_of(uct_md);
  PackedKey packed{.key = key_of(memh), .shared = 0};
  {
    const std::scoped_lock guard(md->shared_mutex);
    const auto at = md->shared.empty() ? md->shared.end() : md->shared.find(packed.key);
    if (at != md->shared.end()) packed.shared = static_cast<std::uint32_t>(at->second->fd() + 1);
  }
  std::memcpy(buffer, &packed, sizeof packed);
  return UCS_OK;
}

void close(uct_md_h md) {
  delete self_of(md);
}

ucs_status_t open(uct_component*, const char*, const uct_md_config_t* config, uct_md_h* md) {
  static uct_md_ops_t ops = [] {
    uct_md_ops_t table{};
    table.close = close;
    table.query = query;
    table.mem_alloc = mem_alloc;
    table.mem_free = mem_free;
    table.mem_reg = mem_reg;
    table.mem_dereg = mem_dereg;
    table.mkey_pack = mkey_pack;
    table.is_sockaddr_accessible = [](uct_md_h, const ucs_sock_addr_t*,
                                      uct_sockaddr_accessibility_t) { return 0; };
    table.mem_query = [](uct_md_h, const void*, std::size_t, uct_md_mem_attr_t*) {
      return UCS_ERR_UNSUPPORTED;
    };
    table.detect_memory_type = [](uct_md_h, const void*, std::size_t, ucs_memory_type_t*) {
      return UCS_ERR_UNSUPPORTED;
    };
    return table;
  }();
  const auto* settings = reinterpret_cast<const MdConfig*>(config);
  *md = new Md{{.ops = &ops, .component = &component},
               std::make_shared<hca::emu::Domain>(),
               settings->device,
               settings->reg_cost,
               settings->async != 0};
  return UCS_OK;
}

ucs_status_t rkey_unpack(uct_component*, const void* buffer, uct_rkey_t* rkey, void** handle) {
  PackedKey packed;
  std::memcpy(&packed, buffer, sizeof packed);
  *rkey = (std::uint64_t{packed.shared} << 32) | packed.key;
  *handle = nullptr;
  return UCS_OK;
}

}  // namespace

uct_component component = {
    .name = "weft",
    .query_md_resources = abi::uct_md_query_single_md_resource,
    .md_open = open,
    .cm_open = [](uct_component*, uct_worker_h, const uct_cm_config_t*,
                  uct_cm_h*) { return UCS_ERR_UNSUPPORTED; },
    .rkey_unpack = rkey_unpack,
    .rkey_ptr = [](uct_component*, uct_rkey_t, void*, std::uint64_t,
                   void**) { return UCS_ERR_UNSUPPORTED; },
    .rkey_release = [](uct_component*, uct_rkey_t, void*) { return UCS_OK; },
    .md_config = {.name = "weft memory domain",
                  .prefix = "WEFT_",
                  .table = config_table,
                  .size = sizeof(MdConfig),
                  .list = {}},
    .cm_config = {.name = "", .prefix = "", .table = nullptr, .size = 0, .list = {}},
    .transports = {&component.transports, &component.transports},
    .list = {},
    .flags = 0,
    .md_vfs_init = [](uct_md_h) {},
};

}  // namespace weft::ucx::wire
