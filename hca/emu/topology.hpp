// What hwloc says of the cores that this process runs on, as far as the wire wants to know it: how
// large the pieces of a transfer may be to stay in their cache, and which memory is near them.
//
// It is a library of its own, used by the transport: what is preloaded before arbitrary programs
// (verbs/) depends on libc alone.
#pragma once

#include <hwloc.h>

#include <cstddef>
#include <cstdint>
#include <memory>

namespace weft::hca::emu {

class Topology {
 public:
  /// The machine's; without caches and with one node where hwloc cannot tell. Open MPI's where it
  /// has one, for no longer than MPI is initialised: hwloc takes some 20 ms to find its plugins,
  /// and 2 ms more for each topology.
  Topology();
  /// One that hwloc makes up by its synthetic description, for tests.
  explicit Topology(const char* synthetic);

  /// A sixteenth of the smallest L2 cache of the cores, so that the pieces under way stay in it
  /// beside what the application has there; 16 to 64 KiB. 64 KiB when nothing is known of it.
  [[nodiscard]] std::uint32_t largest_piece(hwloc_const_cpuset_t cores) const noexcept;
  /// The one NUMA node near all the cores; -1 when there are several of them, or but one in all.
  [[nodiscard]] int node_near(hwloc_const_cpuset_t cores) const noexcept;
  /// Prefers the node for pages of this memory that nobody has touched yet; false where the kernel
  /// does not allow it. Whole pages.
  bool place(void* memory, std::size_t bytes, int node) const noexcept;
  /// The cores that the calling thread may run on.
  [[nodiscard]] bool own_cores(hwloc_cpuset_t cores) const noexcept;

 private:
  struct Destroy {
    bool borrowed;
    void operator()(hwloc_topology* topology) const noexcept {
      if (!borrowed) hwloc_topology_destroy(topology);
    }
  };
  using Handle = std::unique_ptr<hwloc_topology, Destroy>;
  Handle topology_;
};

/// Topology::largest_piece() of the cores that this process was on when it was first asked.
std::uint32_t largest_piece() noexcept;
/// Topology::place() on the node near those cores, where there is such a node.
void place_near(void* memory, std::size_t bytes) noexcept;

}  // namespace weft::hca::emu
