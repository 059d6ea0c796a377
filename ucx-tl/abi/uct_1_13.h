// The part of UCT's binary interface, version 1.13, that transports need and that libucx-dev's
// headers leave out. Written down from the layout that UCX 1.13.1 compiles to (statistics off, as
// Debian builds it); the assertions at the end hold it to that. One such file per UCX version.
//
// Tags that UCX's public headers declare without defining them (uct_component, uct_md, ...) must
// have those very names; everything else lives in weft::ucx::abi.
#pragma once

#ifndef __cplusplus
#error "uct_1_13.h is for C++"
#endif

#include <ucs/config/parser.h>
#include <ucs/config/types.h>
#include <ucs/datastruct/callbackq.h>
#include <ucs/datastruct/list.h>
#include <ucs/memory/memory_type.h>
#include <ucs/type/class.h>
#include <ucs/type/status.h>
#include <uct/api/uct.h>

#include <cstddef>
#include <cstdint>

namespace weft::ucx::abi {

inline constexpr unsigned uct_major = 1;
inline constexpr unsigned uct_minor = 13;

// --- what UCX keeps in its uninstalled "v2" header ---------------------------------------------

/// Operations whose cost uct_iface_estimate_perf can be asked for.
enum class EpOperation : int {
  am_short,
  am_bcopy,
  am_zcopy,
  put_short,
  put_bcopy,
  put_zcopy,
  get_short,
  get_bcopy,
  get_zcopy,
  tag_short,
  tag_bcopy,
  tag_zcopy,
  tag_rndv_zcopy,
  atomic_post,
  atomic_fetch,
};

/// Bits of PerfAttr::field_mask; the first five are questions, the others answers.
enum PerfField : std::uint64_t {
  perf_operation = 1u << 0,
  perf_local_memory_type = 1u << 1,
  perf_remote_memory_type = 1u << 2,
  perf_local_sys_device = 1u << 3,
  perf_remote_sys_device = 1u << 4,
  perf_send_pre_overhead = 1u << 5,
  perf_send_post_overhead = 1u << 6,
  perf_recv_overhead = 1u << 7,
  perf_bandwidth = 1u << 8,
  perf_latency = 1u << 9,
  perf_max_inflight_eps = 1u << 10,
};

struct PerfAttr {
  std::uint64_t field_mask;
  EpOperation operation;
  ucs_memory_type_t local_memory_type;
  ucs_memory_type_t remote_memory_type;
  ucs_sys_device_t local_sys_device;
  ucs_sys_device_t remote_sys_device;
  double send_pre_overhead;   // seconds
  double send_post_overhead;  // seconds
  double recv_overhead;       // seconds
  uct_ppn_bandwidth_t bandwidth;
  ucs_linear_func_t latency;
  std::size_t max_inflight_eps;
};

struct MemDeregParams {
  enum Field : std::uint64_t { has_memh = 1, has_flags = 2, has_completion = 4 };
  enum Flag : unsigned { invalidate = 1 };
  std::uint64_t field_mask;
  unsigned flags;
  uct_mem_h memh;
  uct_completion_t* comp;
};

struct MkeyPackParams {
  std::uint64_t field_mask;
  unsigned flags;
};

}  // namespace weft::ucx::abi

// --- memory domains ----------------------------------------------------------------------------

/// What every memory domain starts with.
struct uct_md {
  uct_md_ops_t* ops;
  uct_component* component;
};

/// Its methods. Empty entries are allowed for what its flags do not announce.
struct uct_md_ops {
  void (*close)(uct_md_h md);
  ucs_status_t (*query)(uct_md_h md, uct_md_attr_t* attr);
  ucs_status_t (*mem_alloc)(uct_md_h md, std::size_t* length, void** address,
                            ucs_memory_type_t mem_type, unsigned flags, const char* name,
                            uct_mem_h* memh);
  ucs_status_t (*mem_free)(uct_md_h md, uct_mem_h memh);
  ucs_status_t (*mem_advise)(uct_md_h md, uct_mem_h memh, void* address, std::size_t length,
                             unsigned advice);
  ucs_status_t (*mem_reg)(uct_md_h md, void* address, std::size_t length, unsigned flags,
                          uct_mem_h* memh);
  ucs_status_t (*mem_dereg)(uct_md_h md, const weft::ucx::abi::MemDeregParams* params);
  ucs_status_t (*mem_query)(uct_md_h md, const void* address, std::size_t length,
                            uct_md_mem_attr_t* attr);
  ucs_status_t (*mkey_pack)(uct_md_h md, uct_mem_h memh,
                            const weft::ucx::abi::MkeyPackParams* params, void* buffer);
  int (*is_sockaddr_accessible)(uct_md_h md, const ucs_sock_addr_t* sockaddr,
                                uct_sockaddr_accessibility_t mode);
  ucs_status_t (*detect_memory_type)(uct_md_h md, const void* address, std::size_t length,
                                     ucs_memory_type_t* mem_type);
};

/// The configuration that every memory domain's own starts with: nothing, but C allows no empty
/// struct.
struct uct_md_config {
  char unused;
};

// --- components --------------------------------------------------------------------------------

/// A component: a kind of memory domain and the transports that use it.
struct uct_component {
  char name[UCT_COMPONENT_NAME_MAX];
  ucs_status_t (*query_md_resources)(uct_component* component, uct_md_resource_desc_t** resources,
                                     unsigned* count);
  ucs_status_t (*md_open)(uct_component* component, const char* md_name,
                          const uct_md_config_t* config, uct_md_h* md);
  ucs_status_t (*cm_open)(uct_component* component, uct_worker_h worker,
                          const uct_cm_config_t* config, uct_cm_h* cm);
  ucs_status_t (*rkey_unpack)(uct_component* component, const void* buffer, uct_rkey_t* rkey,
                              void** handle);
  ucs_status_t (*rkey_ptr)(uct_component* component, uct_rkey_t rkey, void* handle,
                           std::uint64_t remote_addr, void** local_addr);
  ucs_status_t (*rkey_release)(uct_component* component, uct_rkey_t rkey, void* handle);
  ucs_config_global_list_entry_t md_config;
  ucs_config_global_list_entry_t cm_config;
  ucs_list_link_t transports;  // heads the list of abi::Transport
  ucs_list_link_t list;        // links the component into uct_components_list
  std::uint64_t flags;
  void (*md_vfs_init)(uct_md_h md);
};

/// The configuration that every interface's own starts with.
struct uct_iface_config {
  struct {
    uct_alloc_method_t* methods;
    unsigned count;
  } alloc_methods;
  int failure;  // log level of failure reports
  std::size_t max_num_eps;
};

namespace weft::ucx::abi {

/// A device of a transport, as listed by Transport::query_devices.
struct DeviceResource {
  char name[UCT_DEVICE_NAME_MAX];
  uct_device_type_t type;
  ucs_sys_device_t sys_device;
};

struct Transport {
  char name[UCT_TL_NAME_MAX];
  ucs_status_t (*query_devices)(uct_md_h md, DeviceResource** devices, unsigned* count);
  ucs_status_t (*iface_open)(uct_md_h md, uct_worker_h worker, const uct_iface_params_t* params,
                             const uct_iface_config_t* config, uct_iface_h* iface);
  ucs_config_global_list_entry_t config;
  ucs_list_link_t list;  // in uct_component::transports
};

// --- workers and interfaces --------------------------------------------------------------------

/// What uct_worker_h points to.
struct PrivWorker {
  uct_worker_t super;
  ucs_async_context_t* async;
  ucs_thread_mode_t thread_mode;
  ucs_list_link_t tl_data;
};

struct WorkerProgress {
  int id;
  std::uint32_t refcount;
};

struct AmEntry {
  uct_am_callback_t cb;
  void* arg;
  std::uint32_t flags;
};

/// Methods that UCX added after its interface table was frozen. All four must be there.
struct IfaceInternalOps {
  ucs_status_t (*estimate_perf)(uct_iface_h iface, PerfAttr* attr);
  void (*vfs_refresh)(uct_iface_h iface);
  ucs_status_t (*ep_query)(uct_ep_h ep, uct_ep_attr_t* attr);
  ucs_status_t (*ep_invalidate)(uct_ep_h ep, unsigned flags);
};

/// What every interface starts with. Set up by init_base_iface() only.
struct BaseIface {
  uct_iface_t super;
  IfaceInternalOps* internal_ops;
  uct_md_h md;
  PrivWorker* worker;
  AmEntry am[UCT_AM_ID_MAX];
  uct_am_tracer_t am_tracer;
  void* am_tracer_arg;
  uct_error_handler_t err_handler;
  void* err_handler_arg;
  std::uint32_t err_handler_flags;
  WorkerProgress prog;
  unsigned progress_flags;
  struct {
    unsigned num_alloc_methods;
    uct_alloc_method_t alloc_methods[UCT_ALLOC_METHOD_LAST];
    ucs_log_level_t failure_level;
    std::size_t max_num_eps;
  } config;
};

/// What every endpoint starts with.
struct BaseEp {
  uct_ep_t super;
};

extern "C" {
// Classes and constructors in UCX's object scheme: a constructor counts in `done` how far it came,
// so that ucs_class_call_cleanup_chain can undo that much.
extern ucs_class_t uct_base_iface_t_class;
ucs_status_t uct_base_iface_t_init(BaseIface* self, ucs_class_t* my_class, int* done,
                                   uct_iface_ops_t* ops, IfaceInternalOps* internal_ops,
                                   uct_md_h md, uct_worker_h worker,
                                   const uct_iface_params_t* params,
                                   const uct_iface_config_t* config);
extern ucs_class_t uct_base_ep_t_class;
ucs_status_t uct_base_ep_t_init(BaseEp* self, ucs_class_t* my_class, int* done, BaseIface* iface);

extern ucs_list_link_t uct_components_list;
extern ucs_list_link_t ucs_config_global_list;
extern ucs_config_field_t uct_md_config_table[];
extern ucs_config_field_t uct_iface_config_table[];

void uct_component_register(uct_component* component);
void uct_tl_register(uct_component* component, Transport* transport);
ucs_status_t uct_md_query_single_md_resource(uct_component* component,
                                             uct_md_resource_desc_t** resources, unsigned* count);
ucs_status_t uct_single_device_resource(uct_md_h md, const char* name, uct_device_type_t type,
                                        ucs_sys_device_t sys_device, DeviceResource** devices,
                                        unsigned* count);

void uct_base_iface_query(BaseIface* iface, uct_iface_attr_t* attr);
ucs_status_t uct_base_iface_estimate_perf(uct_iface_h iface, PerfAttr* attr);
void uct_base_iface_progress_enable(uct_iface_h iface, unsigned flags);
void uct_base_iface_progress_disable(uct_iface_h iface, unsigned flags);
ucs_status_t uct_base_iface_flush(uct_iface_h iface, unsigned flags, uct_completion_t* comp);
ucs_status_t uct_base_iface_fence(uct_iface_h iface, unsigned flags);
ucs_status_t uct_base_ep_flush(uct_ep_h ep, unsigned flags, uct_completion_t* comp);
ucs_status_t uct_base_ep_fence(uct_ep_h ep, unsigned flags);
ucs_status_t uct_iface_handle_ep_err(uct_iface_h iface, uct_ep_h ep, ucs_status_t status);
}  // extern "C"

/// Runs UCX's constructor of the base class; undoes it on failure.
inline ucs_status_t init_base_iface(BaseIface* self, uct_iface_ops_t* ops,
                                    IfaceInternalOps* internal_ops, uct_md_h md,
                                    uct_worker_h worker, const uct_iface_params_t* params,
                                    const uct_iface_config_t* config) {
  int done = 1;
  const ucs_status_t status = uct_base_iface_t_init(self, &uct_base_iface_t_class, &done, ops,
                                                    internal_ops, md, worker, params, config);
  if (status != UCS_OK) ucs_class_call_cleanup_chain(&uct_base_iface_t_class, self, done);
  return status;
}
inline void cleanup_base_iface(BaseIface* self) {
  ucs_class_call_cleanup_chain(&uct_base_iface_t_class, self, -1);
}

inline ucs_status_t init_base_ep(BaseEp* self, BaseIface* iface) {
  int done = 1;
  const ucs_status_t status = uct_base_ep_t_init(self, &uct_base_ep_t_class, &done, iface);
  if (status != UCS_OK) ucs_class_call_cleanup_chain(&uct_base_ep_t_class, self, done);
  return status;
}
inline void cleanup_base_ep(BaseEp* self) {
  ucs_class_call_cleanup_chain(&uct_base_ep_t_class, self, -1);
}

}  // namespace weft::ucx::abi

// --- the layout, held to ------------------------------------------------------------------------

static_assert(sizeof(uct_md) == 16 && sizeof(uct_md_ops) == 88);
static_assert(sizeof(uct_component) == 208);
static_assert(offsetof(uct_component, query_md_resources) == 16);
static_assert(offsetof(uct_component, md_config) == 64);
static_assert(offsetof(uct_component, transports) == 160);
static_assert(offsetof(uct_component, list) == 176);
static_assert(offsetof(uct_component, md_vfs_init) == 200);
static_assert(sizeof(uct_iface_config) == 32);
static_assert(offsetof(uct_iface_config, failure) == 16);
static_assert(offsetof(uct_iface_config, max_num_eps) == 24);
static_assert(sizeof(uct_iface_ops_t) == 400 && sizeof(uct_iface_t) == 400);

namespace weft::ucx::abi {
static_assert(sizeof(PerfAttr) == 88 && offsetof(PerfAttr, send_pre_overhead) == 24);
static_assert(offsetof(PerfAttr, bandwidth) == 48 && offsetof(PerfAttr, max_inflight_eps) == 80);
static_assert(sizeof(MemDeregParams) == 32 && offsetof(MemDeregParams, comp) == 24);
static_assert(sizeof(MkeyPackParams) == 16);
static_assert(sizeof(DeviceResource) == 40 && offsetof(DeviceResource, sys_device) == 36);
static_assert(sizeof(Transport) == 96 && offsetof(Transport, query_devices) == 16);
static_assert(offsetof(Transport, config) == 32 && offsetof(Transport, list) == 80);
static_assert(sizeof(PrivWorker) == 296 && offsetof(PrivWorker, async) == 264);
static_assert(sizeof(WorkerProgress) == 8 && sizeof(AmEntry) == 24);
static_assert(sizeof(IfaceInternalOps) == 32);
static_assert(sizeof(BaseIface) == 1280 && offsetof(BaseIface, internal_ops) == 400);
static_assert(offsetof(BaseIface, worker) == 416 && offsetof(BaseIface, am) == 424);
static_assert(offsetof(BaseIface, err_handler) == 1208 && offsetof(BaseIface, prog) == 1228);
static_assert(offsetof(BaseIface, progress_flags) == 1236);
static_assert(offsetof(BaseIface, config.failure_level) == 1264);
static_assert(offsetof(BaseIface, config.max_num_eps) == 1272);
static_assert(sizeof(BaseEp) == 8);

/// The loaded libuct states the size of some of these objects: false when they are not ours.
inline bool matches_loaded_library() noexcept {
  return uct_base_iface_t_class.size == sizeof(BaseIface) &&
         uct_base_ep_t_class.size == sizeof(BaseEp);
}
}  // namespace weft::ucx::abi
