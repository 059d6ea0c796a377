// Layouts of memory regions: what they are made of, and how a region gets one.
//
// A layout is kept twice: as described, by keys, and compiled to an hca::Layout over addresses. It
// is compiled when it is set, and again when a region that it is made of gets another layout; what
// does not compile any more covers nothing, so that its use ends in a protection error. All of it
// is guarded by the lock of the context's domain, under which the keys are used.
#pragma once

#include <infiniband/verbs.h>

#include <cstdint>
#include <memory>
#include <vector>

#include "hca/layout.hpp"
#include "verbs/infiniband/weft_verbs.h"

namespace weft::verbs {

struct MemoryRegion;

/// Finds what the entries of a region's layout name. Under the lock; throws hca::Error.
class Resolver {
 public:
  /// With `raw` entries name addresses instead of keys.
  Resolver(const MemoryRegion& carrier, bool raw) : carrier_(carrier), raw_(raw) {}

  /// Where an entry is: at an offset of a layout's stream or, when that is null, at an address.
  struct Place {
    hca::LayoutPtr layout;
    std::int64_t offset;
  };
  /// Of `bytes` from the entry's address on. EINVAL, EACCES, ERANGE.
  Place place(const ibv_sge& entry, std::uint64_t bytes);
  /// The regions found so far, each once.
  [[nodiscard]] std::vector<MemoryRegion*> children() const;

 private:
  const MemoryRegion& carrier_;
  bool raw_;
  std::vector<MemoryRegion*> found_;
};

/// A layout as described by the program.
class LayoutDescription {
 public:
  explicit LayoutDescription(bool raw) : raw_(raw) {}
  virtual ~LayoutDescription() = default;
  LayoutDescription(const LayoutDescription&) = delete;
  LayoutDescription& operator=(const LayoutDescription&) = delete;

  /// Throws hca::Error as the resolver does, EOVERFLOW for what is larger than 63 bits.
  [[nodiscard]] virtual hca::LayoutPtr compile(Resolver& resolver) const = 0;
  /// Whether storing this takes the same room as storing `other`: then keys stay.
  [[nodiscard]] virtual bool fits_in_place_of(const LayoutDescription& other) const = 0;
  /// Whether an empty carrier has room for it.
  [[nodiscard]] virtual bool is_inline() const = 0;
  /// Brings the memory of raw entries in. Throws hca::Error EFAULT.
  virtual void populate(bool writable) const = 0;
  [[nodiscard]] bool raw() const noexcept { return raw_; }

 private:
  bool raw_;
};

using LayoutDescriptionPtr = std::shared_ptr<const LayoutDescription>;

/// The layout that a region has.
struct BoundLayout {
  LayoutDescriptionPtr description;
  std::vector<MemoryRegion*> children;
  unsigned level;  ///< 1: over plain regions
};

/// The layout that a region is to get by a work request.
struct StagedLayout {
  LayoutDescriptionPtr description;
  std::vector<MemoryRegion*> children;
  std::uint32_t key;
};

/// The ibv_mr_set_layout_err_code for an errno value of guarded(); 0 for 0.
int layout_code(int code) noexcept;

/// Refuses flags of ibv_mr_set_layout_*() that do not exist. Throws hca::Error.
void check_known(int flags);
/// Checks `flags`, and that the region can carry a layout. Throws hca::Error.
void check_carrier(const ibv_mr* mr, int flags);
/// Gives a region a layout, now or by a work request. Throws hca::Error.
void set_layout(MemoryRegion& mr, int flags, LayoutDescriptionPtr description);
/// Whether a layout of the region is in a send queue. Under the lock.
bool is_posted(const MemoryRegion& mr) noexcept;
/// What the work request for a staged layout does; false when the layout does not compile any more.
/// Under the lock.
bool bind_staged(MemoryRegion& mr, const StagedLayout& staged) noexcept;
/// What a region's layouts refer to is free again. Under the lock.
void forget_layouts(MemoryRegion& mr) noexcept;

int set_layout_sg(ibv_mr* mr, int flags, int num_sge, const ibv_sge* sg_list);
int set_layout_interleaved(ibv_mr* mr, int flags, int num_interleaved,
                           const ibv_mr_layout_interleaved* interleaved_list);
int post_mr_layout(ibv_qp* qp, ibv_mr* mr, std::uint64_t wr_id, unsigned send_flags);
int query_mr_layout_caps(ibv_context* context, ibv_mr_layout_caps* caps);

}  // namespace weft::verbs
