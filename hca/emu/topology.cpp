#include "hca/emu/topology.hpp"

#include <dlfcn.h>

#include <algorithm>

#include "hca/emu/transfer.hpp"

namespace weft::hca::emu {

namespace {

constexpr std::uint64_t pieces_in_cache = 16;

struct FreeBitmap {
  void operator()(hwloc_bitmap_t bitmap) const noexcept { hwloc_bitmap_free(bitmap); }
};
using Bitmap = std::unique_ptr<hwloc_bitmap_s, FreeBitmap>;

Bitmap make_bitmap() noexcept {
  return Bitmap(hwloc_bitmap_alloc());
}

/// Null when hwloc cannot. Nothing but L2 caches and NUMA nodes is looked for.
hwloc_topology* load(const char* synthetic, bool ask_the_cores) noexcept {
  hwloc_topology_t topology = nullptr;
  if (hwloc_topology_init(&topology) != 0) return nullptr;
  hwloc_topology_set_all_types_filter(topology, HWLOC_TYPE_FILTER_KEEP_NONE);
  hwloc_topology_set_type_filter(topology, HWLOC_OBJ_L2CACHE, HWLOC_TYPE_FILTER_KEEP_ALL);
  // A node hangs on the object of its cores: without one it would seem to be near all of them.
  hwloc_topology_set_type_filter(topology, HWLOC_OBJ_PACKAGE, HWLOC_TYPE_FILTER_KEEP_STRUCTURE);
  hwloc_topology_set_type_filter(topology, HWLOC_OBJ_GROUP, HWLOC_TYPE_FILTER_KEEP_STRUCTURE);
  if (!ask_the_cores) {
    hwloc_topology_set_components(topology, HWLOC_TOPOLOGY_COMPONENTS_FLAG_BLACKLIST, "x86");
  }
  const bool described =
      synthetic == nullptr || hwloc_topology_set_synthetic(topology, synthetic) == 0;
  if (described && hwloc_topology_load(topology) == 0) return topology;
  hwloc_topology_destroy(topology);
  return nullptr;
}

bool knows_caches(hwloc_topology* topology) noexcept {
  return topology != nullptr && hwloc_get_nbobjs_by_type(topology, HWLOC_OBJ_L2CACHE) > 0;
}

/// The one that Open MPI keeps; null when there is none, or one of another hwloc than ours.
hwloc_topology* of_open_mpi() noexcept {
  auto* const kept = static_cast<hwloc_topology_t*>(::dlsym(RTLD_DEFAULT, "opal_hwloc_topology"));
  if (kept == nullptr || *kept == nullptr) return nullptr;
  const bool ours = hwloc_topology_abi_check(*kept) == 0 && hwloc_topology_is_thissystem(*kept);
  return ours && knows_caches(*kept) ? *kept : nullptr;
}

/// What this process asks about again and again.
struct Here {
  std::uint32_t piece = most_largest_piece;
  int node = -1;

  Here() {
    const Topology topology;
    const Bitmap cores = make_bitmap();
    if (cores == nullptr || !topology.own_cores(cores.get())) return;
    piece = topology.largest_piece(cores.get());
    node = topology.node_near(cores.get());
  }
};

const Here& here() {
  static const Here found;
  return found;
}

}  // namespace

Topology::Topology() : topology_(of_open_mpi(), Destroy{true}) {
  if (topology_ != nullptr) return;
  topology_ = Handle(load(nullptr, false), Destroy{false});
  // Many virtual machines' kernels do not know the caches. Asking each core by CPUID takes the
  // calling thread there, and so several times as long.
  if (!knows_caches(topology_.get())) topology_ = Handle(load(nullptr, true), Destroy{false});
}

Topology::Topology(const char* synthetic) : topology_(load(synthetic, false), Destroy{false}) {}

std::uint32_t Topology::largest_piece(hwloc_const_cpuset_t cores) const noexcept {
  std::uint64_t smallest = 0;
  hwloc_obj* cache = nullptr;
  while (topology_ != nullptr && (cache = hwloc_get_next_obj_by_type(
                                      topology_.get(), HWLOC_OBJ_L2CACHE, cache)) != nullptr) {
    const std::uint64_t size = cache->attr->cache.size;
    if (size == 0 || !hwloc_bitmap_intersects(cache->cpuset, cores)) continue;
    smallest = smallest == 0 ? size : std::min(smallest, size);
  }
  if (smallest == 0) return most_largest_piece;
  return static_cast<std::uint32_t>(std::clamp<std::uint64_t>(
      smallest / pieces_in_cache, least_largest_piece, most_largest_piece));
}

int Topology::node_near(hwloc_const_cpuset_t cores) const noexcept {
  if (topology_ == nullptr || hwloc_get_nbobjs_by_type(topology_.get(), HWLOC_OBJ_NUMANODE) < 2) {
    return -1;
  }
  const Bitmap nodes = make_bitmap();
  if (nodes == nullptr) return -1;
  hwloc_cpuset_to_nodeset(topology_.get(), cores, nodes.get());
  return hwloc_bitmap_weight(nodes.get()) == 1 ? hwloc_bitmap_first(nodes.get()) : -1;
}

bool Topology::place(void* memory, std::size_t bytes, int node) const noexcept {
  const Bitmap nodes = make_bitmap();
  if (topology_ == nullptr || node < 0 || nodes == nullptr) return false;
  hwloc_bitmap_only(nodes.get(), static_cast<unsigned>(node));
  // Not strictly: where the node is full, memory from elsewhere is better than none.
  return hwloc_set_area_membind(topology_.get(), memory, bytes, nodes.get(), HWLOC_MEMBIND_BIND,
                                HWLOC_MEMBIND_BYNODESET) == 0;
}

bool Topology::own_cores(hwloc_cpuset_t cores) const noexcept {
  return topology_ != nullptr &&
         hwloc_get_cpubind(topology_.get(), cores, HWLOC_CPUBIND_THREAD) == 0;
}

std::uint32_t largest_piece() noexcept {
  return here().piece;
}

void place_near(void* memory, std::size_t bytes) noexcept {
  if (here().node >= 0) Topology().place(memory, bytes, here().node);
}

}  // namespace weft::hca::emu
