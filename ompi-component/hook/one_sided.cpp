#include "ompi-component/hook/one_sided.hpp"

#include <algorithm>
#include <array>
#include <atomic>
#include <cstring>
#include <map>
#include <mutex>
#include <vector>

#include "ompi-component/hook/log.hpp"
#include "ompi-component/hook/osc_ucx_abi.hpp"
#include "ompi-component/hook/ucp_library.hpp"

namespace weft::ompi {

namespace {

using osc_ucx::LockWords;
using osc_ucx::Module;
using osc_ucx::RemoteMemory;

/// UCX's calls.
struct Ucp {
  decltype(&ucp_mem_map) mem_map;
  decltype(&ucp_mem_query) mem_query;
  decltype(&ucp_mem_unmap) mem_unmap;
  decltype(&ucp_rkey_pack) rkey_pack;
  decltype(&ucp_rkey_buffer_release) rkey_buffer_release;
  decltype(&ucp_ep_rkey_unpack) rkey_unpack;
  decltype(&ucp_rkey_destroy) rkey_destroy;
};

/// What becomes of a window of osc/ucx.
struct SharedLocks {
  ucp_mem_h memory = nullptr;  ///< of this process's LockWords
  LockWords* words = nullptr;
  std::vector<RemoteMemory> ours;  ///< everybody's, by rank
  RemoteMemory* stock = nullptr;
  ompi_osc_base_module_t functions{};  ///< osc/ucx's own
};

/// What the processes tell each other.
struct Offer {
  static constexpr std::size_t most_bytes = 1000;
  std::uint64_t addr;
  std::uint64_t rkey_bytes;  ///< 0: this process has none
  std::array<char, most_bytes> rkey;
};

Ucp ucp;
osc_ucx::Component* component = nullptr;
ompi_osc_base_component_select_fn_t stock_select = nullptr;
std::mutex windows_mutex;
std::map<Module*, SharedLocks> windows;

Module* module_of(ompi_win_t* win) noexcept {
  return reinterpret_cast<Module*>(win->w_osc_module);
}

SharedLocks& locks_of(Module* module) {
  const std::scoped_lock guard(windows_mutex);
  return windows.at(module);
}

bool allocate(SharedLocks& locks) noexcept {
  ucp_mem_map_params_t params{};
  params.field_mask = UCP_MEM_MAP_PARAM_FIELD_LENGTH | UCP_MEM_MAP_PARAM_FIELD_ADDRESS |
                      UCP_MEM_MAP_PARAM_FIELD_FLAGS;
  params.length = sizeof(LockWords);
  params.flags = UCP_MEM_MAP_ALLOCATE;
  if (ucp.mem_map(component->context, &params, &locks.memory) != UCS_OK) return false;
  ucp_mem_attr_t attributes{};
  attributes.field_mask = UCP_MEM_ATTR_FIELD_ADDRESS;
  if (ucp.mem_query(locks.memory, &attributes) != UCS_OK) return false;
  locks.words = static_cast<LockWords*>(attributes.address);
  *locks.words = {};
  return true;
}

void make_offer(SharedLocks& locks, Offer& offer) noexcept {
  offer.rkey_bytes = 0;
  if (!allocate(locks)) return;
  void* packed = nullptr;
  std::size_t bytes = 0;
  if (ucp.rkey_pack(component->context, locks.memory, &packed, &bytes) != UCS_OK) return;
  if (bytes <= Offer::most_bytes) {
    offer.addr = reinterpret_cast<std::uint64_t>(locks.words);
    std::memcpy(offer.rkey.data(), packed, bytes);
    offer.rkey_bytes = bytes;
  }
  ucp.rkey_buffer_release(packed);
}

bool accept_offers(SharedLocks& locks, ompi_communicator_t* comm,
                   const std::vector<Offer>& offers) noexcept {
  const auto refuses = [](const Offer& offer) { return offer.rkey_bytes == 0; };
  if (std::any_of(offers.begin(), offers.end(), refuses)) return false;
  for (std::size_t rank = 0; rank < offers.size(); ++rank) {
    RemoteMemory& remote = locks.ours[rank];
    const ucp_ep_h ep = osc_ucx::endpoint(comm, static_cast<int>(rank));
    if (ucp.rkey_unpack(ep, offers[rank].rkey.data(), &remote.rkey) != UCS_OK) return false;
    remote.addr = offers[rank].addr;
    remote.has_rkey = true;
  }
  return true;
}

void release(SharedLocks& locks) noexcept {
  for (const RemoteMemory& remote : locks.ours)
    if (remote.has_rkey) ucp.rkey_destroy(remote.rkey);
  if (locks.memory != nullptr) ucp.mem_unmap(component->context, locks.memory);
}

// These five look at words of the process's own state, which only osc/ucx's own array leads to.
// MPI allows no lock and no accumulate on the window by this process while one of them runs.
class StockStates {
 public:
  explicit StockStates(Module* module) : module_(module), locks_(locks_of(module)) {
    module_->states = locks_.stock;
  }
  ~StockStates() { module_->states = locks_.ours.data(); }
  StockStates(const StockStates&) = delete;
  StockStates& operator=(const StockStates&) = delete;
  [[nodiscard]] const ompi_osc_base_module_t& functions() const noexcept {
    return locks_.functions;
  }

 private:
  Module* module_;
  SharedLocks& locks_;
};

int post(ompi_group_t* group, int assertion, ompi_win_t* win) {
  const StockStates states(module_of(win));
  return states.functions().osc_post(group, assertion, win);
}

int start(ompi_group_t* group, int assertion, ompi_win_t* win) {
  const StockStates states(module_of(win));
  return states.functions().osc_start(group, assertion, win);
}

int complete(ompi_win_t* win) {
  const StockStates states(module_of(win));
  return states.functions().osc_complete(win);
}

int wait(ompi_win_t* win) {
  const StockStates states(module_of(win));
  return states.functions().osc_wait(win);
}

int test(ompi_win_t* win, int* flag) {
  const StockStates states(module_of(win));
  return states.functions().osc_test(win, flag);
}

int free_window(ompi_win_t* win) {
  Module* module = module_of(win);
  SharedLocks locks;
  {
    const std::scoped_lock guard(windows_mutex);
    locks = std::move(windows.extract(module).mapped());
  }
  // As osc/ucx does with its own word: nobody may hold it any more.
  while (std::atomic_ref(locks.words->lock).load(std::memory_order_acquire) != 0) opal_progress();
  module->states = locks.stock;
  module->super = locks.functions;
  // Ends with a barrier after each process has flushed what it posted.
  const int status = locks.functions.osc_free(win);
  release(locks);
  return status;
}

void install(Module* module, SharedLocks locks) {
  locks.stock = module->states;
  locks.functions = module->super;
  {
    const std::scoped_lock guard(windows_mutex);
    SharedLocks& kept = windows[module] = std::move(locks);
    module->states = kept.ours.data();
  }
  module->super.osc_post = post;
  module->super.osc_start = start;
  module->super.osc_complete = complete;
  module->super.osc_wait = wait;
  module->super.osc_test = test;
  module->super.osc_free = free_window;
}

/// Collective. Where one process cannot, none does.
int share_locks(Module* module) {
  ompi_communicator_t* comm = module->comm;
  const auto ranks = static_cast<std::size_t>(ompi_comm_size(comm));
  SharedLocks locks;
  locks.ours.resize(ranks);
  std::vector<Offer> offers(ranks);
  Offer offer{};
  make_offer(locks, offer);
  int status =
      comm->c_coll->coll_allgather(&offer, sizeof offer, MPI_BYTE, offers.data(), sizeof offer,
                                   MPI_BYTE, comm, comm->c_coll->coll_allgather_module);
  int agreed = status == OMPI_SUCCESS && accept_offers(locks, comm, offers) ? 1 : 0;
  if (status == OMPI_SUCCESS)
    status = comm->c_coll->coll_allreduce(MPI_IN_PLACE, &agreed, 1, MPI_INT, MPI_MIN, comm,
                                          comm->c_coll->coll_allreduce_module);
  if (status == OMPI_SUCCESS && agreed == 1) {
    install(module, std::move(locks));
  } else {
    release(locks);
    tell(1, "a window's locks stay in its processes' private memory");
  }
  return status;
}

int select(ompi_win_t* win, void** base, std::size_t size, int disp_unit, ompi_communicator_t* comm,
           opal_info_t* info, int flavor, int* model) {
  const int status = stock_select(win, base, size, disp_unit, comm, info, flavor, model);
  // A dynamic window's memory is found through its owner's state.
  if (status != OMPI_SUCCESS ||
      (flavor != MPI_WIN_FLAVOR_ALLOCATE && flavor != MPI_WIN_FLAVOR_CREATE)) {
    return status;
  }
  return share_locks(module_of(win));
}

bool look_up_ucp() noexcept {
  void* library = loaded_ucp();
  return library != nullptr && look_up(library, "ucp_mem_map", ucp.mem_map) &&
         look_up(library, "ucp_mem_query", ucp.mem_query) &&
         look_up(library, "ucp_mem_unmap", ucp.mem_unmap) &&
         look_up(library, "ucp_rkey_pack", ucp.rkey_pack) &&
         look_up(library, "ucp_rkey_buffer_release", ucp.rkey_buffer_release) &&
         look_up(library, "ucp_ep_rkey_unpack", ucp.rkey_unpack) &&
         look_up(library, "ucp_rkey_destroy", ucp.rkey_destroy);
}

}  // namespace

void share_window_locks() {
  mca_base_component_list_item_t* item = nullptr;
  OPAL_LIST_FOREACH(item, &ompi_osc_base_framework.framework_components,
                    mca_base_component_list_item_t) {
    if (std::strcmp(item->cli_component->mca_component_name, "ucx") != 0) continue;
    if (!look_up_ucp()) return;
    component = reinterpret_cast<osc_ucx::Component*>(
        const_cast<mca_base_component_t*>(item->cli_component));
    stock_select = component->super.osc_select;
    component->super.osc_select = select;
  }
}

void restore_window_locks() {
  if (component != nullptr && component->super.osc_select == select)
    component->super.osc_select = stock_select;
}

}  // namespace weft::ompi
