#include "verbs/layout.hpp"

#include <algorithm>
#include <cerrno>
#include <mutex>
#include <optional>
#include <string>

#include "verbs/context.hpp"
#include "verbs/limits.hpp"
#include "verbs/log.hpp"
#include "verbs/memory_region.hpp"
#include "verbs/memory_window.hpp"

namespace weft::verbs {

namespace {

hca::emu::Domain& domain_of(const MemoryRegion& mr) {
  return Context::of(mr.context).core->domain();
}

std::uint32_t pd_of(const MemoryRegion& mr) {
  return ProtectionDomain::of(mr.pd).core->number();
}

/// The key after `key`: another variant of the same index.
std::uint32_t successor(std::uint32_t key) {
  const std::uint32_t variant = key & 0xff;
  return (key & ~0xffu) | (variant == 0xff ? 1 : variant + 1);
}

bool depends_on(const MemoryRegion& mr, const MemoryRegion& on) {
  return &mr == &on ||
         (mr.layout &&
          std::any_of(mr.layout->children.begin(), mr.layout->children.end(),
                      [&](const MemoryRegion* child) { return depends_on(*child, on); }));
}

/// Levels of layouts over this region, itself not counted.
unsigned height_over(const MemoryRegion& mr) {
  unsigned height = 0;
  for (const MemoryRegion* parent : mr.parents) {
    height = std::max(height, 1 + height_over(*parent));
  }
  return height;
}

unsigned level_of(const std::vector<MemoryRegion*>& children) {
  unsigned level = 0;
  for (const MemoryRegion* child : children) {
    level = std::max(level, child->layout ? child->layout->level : 0);
  }
  return level + 1;
}

/// Windows that show this region, or a layout over it: they would go on showing the old one.
int windows_over(const MemoryRegion& mr) {
  int windows = windows_on(mr);
  for (const MemoryRegion* parent : mr.parents) windows += windows_over(*parent);
  return windows;
}

struct Compiled {
  hca::LayoutPtr layout;
  std::vector<MemoryRegion*> children;
  unsigned level;
};

/// Under the lock. Throws hca::Error.
Compiled compile(const MemoryRegion& mr, const LayoutDescription& description) {
  if (const int windows = windows_over(mr)) {
    refuse(EBUSY,
           std::to_string(windows) + " windows are bound to the region or to layouts over it");
  }
  Resolver resolver(mr, description.raw());
  Compiled result{description.compile(resolver), resolver.children(), 0};
  for (const MemoryRegion* child : result.children) {
    if (depends_on(*child, mr)) refuse(EINVAL, "the layout would contain itself");
  }
  result.level = level_of(result.children);
  check_limit(EOPNOTSUPP, "nesting level", result.level + height_over(mr),
              limits().layouts.max_mr_nesting_level);
  if (mr.iova + result.layout->size() < mr.iova) {
    refuse(EOVERFLOW, std::to_string(result.layout->size()) + " bytes from address " +
                          std::to_string(mr.iova) + " on go past the end of the address space");
  }
  return result;
}

/// The region that stands for a layout; without one it covers nothing.
hca::emu::Region region_of(MemoryRegion& mr, const hca::LayoutPtr& layout) {
  hca::emu::Region region;
  region.addr = mr.iova;
  region.access = access_of(mr.access);
  region.pd = pd_of(mr);
  region.owner = &mr;
  if (!layout) return region;
  region.length = layout->size();
  if (layout->is_contiguous()) {
    region.base = reinterpret_cast<std::byte*>(layout->lower());
  } else {
    region.layout = layout;
  }
  return region;
}

void refer(const std::vector<MemoryRegion*>& children, int by) noexcept {
  for (MemoryRegion* child : children) child->users += by;
}

void unbind(MemoryRegion& mr) noexcept {
  if (!mr.layout) return;
  for (MemoryRegion* child : mr.layout->children) std::erase(child->parents, &mr);
  refer(mr.layout->children, -1);
  mr.layout.reset();
}

void unstage(MemoryRegion& mr) noexcept {
  if (!mr.staged) return;
  refer(mr.staged->children, -1);
  mr.staged.reset();
}

/// A region has got another layout: those over it are compiled again.
void update_parents(const MemoryRegion& mr) {
  for (MemoryRegion* parent : mr.parents) {
    hca::LayoutPtr layout;
    unsigned level = parent->layout->level;
    try {
      Compiled compiled = compile(*parent, *parent->layout->description);
      layout = std::move(compiled.layout);
      level = compiled.level;
    } catch (const std::exception& error) {
      // Its use is a protection error from now on.
      log_refusal("a layout over a layout MR", EACCES, error.what());
    }
    auto bound = std::make_shared<BoundLayout>(*parent->layout);
    bound->level = level;
    parent->layout = std::move(bound);
    parent->core->rebind(parent->core->lkey(), region_of(*parent, layout));
    update_parents(*parent);
  }
}

/// Under the lock; the new layout has been compiled.
void install(MemoryRegion& mr, const LayoutDescriptionPtr& description, Compiled compiled,
             std::uint32_t key) {
  auto bound = std::make_shared<BoundLayout>(
      BoundLayout{description, std::move(compiled.children), compiled.level});
  for (MemoryRegion* child : bound->children) child->parents.reserve(child->parents.size() + 1);
  unbind(mr);
  for (MemoryRegion* child : bound->children) child->parents.push_back(&mr);
  refer(bound->children, 1);
  mr.layout = std::move(bound);
  mr.core->rebind(key, region_of(mr, compiled.layout));
  update_parents(mr);
}

void show(MemoryRegion& mr, std::uint32_t key, std::uint64_t length) {
  mr.lkey = key;
  mr.rkey = key;
  mr.addr = reinterpret_cast<void*>(mr.iova);
  mr.length = length;
}

}  // namespace

Resolver::Place Resolver::place(const ibv_sge& entry, std::uint64_t bytes) {
  if (raw_) return {nullptr, static_cast<std::int64_t>(entry.addr)};
  const auto named = [&] { return "lkey " + std::to_string(entry.lkey); };
  const hca::emu::Region* region = domain_of(carrier_).find(entry.lkey);
  auto* const owner = region != nullptr ? static_cast<MemoryRegion*>(region->owner) : nullptr;
  if (owner == nullptr || region->remote_only || owner->leaving) {
    refuse(EINVAL, named() + " is not that of a region");
  }
  if (region->pd != pd_of(carrier_)) refuse(EINVAL, named() + " is of another PD");
  if (owner == &carrier_) refuse(EINVAL, named() + " is the region's own");
  const hca::Access needed = access_of(carrier_.access);
  if (!hca::allows(region->access, needed)) {
    refuse(EACCES, named() + " grants " + std::to_string(static_cast<unsigned>(region->access)) +
                       ", the layout grants " + std::to_string(static_cast<unsigned>(needed)));
  }
  const std::uint64_t offset = entry.addr - region->addr;
  if (entry.addr < region->addr || offset > region->length || bytes > region->length - offset) {
    refuse(ERANGE, std::to_string(bytes) + " bytes from " + std::to_string(entry.addr) +
                       " on, the region of " + named() + " has " + std::to_string(region->length) +
                       " from " + std::to_string(region->addr) + " on");
  }
  if (found_.empty() || found_.back() != owner) found_.push_back(owner);
  if (region->layout) return {region->layout, static_cast<std::int64_t>(offset)};
  return {nullptr,
          static_cast<std::int64_t>(reinterpret_cast<std::uintptr_t>(region->base) + offset)};
}

std::vector<MemoryRegion*> Resolver::children() const {
  std::vector<MemoryRegion*> result = found_;
  std::sort(result.begin(), result.end());
  result.erase(std::unique(result.begin(), result.end()), result.end());
  return result;
}

int layout_code(int code) noexcept {
  switch (code) {
    case 0:
      return 0;
    case ENOSPC:
      return IBV_MR_SET_LAYOUT_ERR_WOULD_INVALIDATE;
    case EOPNOTSUPP:
      return IBV_MR_SET_LAYOUT_ERR_UNSUPPORTED;
    default:
      return IBV_MR_SET_LAYOUT_ERR_INPUT;
  }
}

void check_known(int flags) {
  constexpr int known = IBV_MR_SET_LAYOUT_FLAGS_SUPPORTED;
  if ((flags & ~known) != 0) {
    refuse(EINVAL, "flags " + std::to_string(flags) + ", known are " + std::to_string(known));
  }
}

void check_carrier(const ibv_mr* mr, int flags) {
  check_known(flags);
  if (!static_cast<const MemoryRegion*>(mr)->may_carry) {
    refuse(EINVAL, "the region is one of device memory, of pages, or the null MR");
  }
  if ((flags & IBV_MR_SET_LAYOUT_REGISTER_BUFFERS) != 0 &&
      (limits().layouts.cap_flags & IBV_MR_SET_LAYOUT_INTERNAL_REGISTRATION) == 0) {
    refuse(EOPNOTSUPP, "no IBV_MR_SET_LAYOUT_INTERNAL_REGISTRATION");
  }
}

void set_layout(MemoryRegion& mr, int flags, LayoutDescriptionPtr description) {
  if (description->raw()) description->populate((mr.access & IBV_ACCESS_LOCAL_WRITE) != 0);
  const std::scoped_lock guard(lock_of(mr));
  if (is_posted(mr)) refuse(EBUSY, "a layout of the region is in a send queue");
  Compiled compiled = compile(mr, *description);
  const bool keys_stay =
      mr.layout ? description->fits_in_place_of(*mr.layout->description) : description->is_inline();
  if (!keys_stay && (flags & IBV_MR_SET_LAYOUT_AVOID_INVALIDATION) != 0) {
    refuse(ENOSPC, "the layout needs other room than the region has");
  }
  const std::uint32_t key = keys_stay ? mr.core->lkey() : successor(mr.core->lkey());
  const std::uint64_t length = compiled.layout->size();
  if ((flags & IBV_MR_SET_LAYOUT_WITH_POST_WR) != 0) {
    auto staged = std::make_shared<StagedLayout>(
        StagedLayout{std::move(description), std::move(compiled.children), key});
    refer(staged->children, 1);
    unstage(mr);
    mr.staged = std::move(staged);
  } else {
    install(mr, description, std::move(compiled), key);
    unstage(mr);
  }
  show(mr, key, length);
}

bool is_posted(const MemoryRegion& mr) noexcept {
  // Held by a work request beside the region: see layout_post.cpp.
  return mr.staged && mr.staged.use_count() > 1;
}

void forget_layouts(MemoryRegion& mr) noexcept {
  if (mr.layout) mr.core->rebind(mr.core->lkey(), region_of(mr, nullptr));
  unbind(mr);
  unstage(mr);
}

bool bind_staged(MemoryRegion& mr, const StagedLayout& staged) noexcept {
  try {
    install(mr, staged.description, compile(mr, *staged.description), staged.key);
  } catch (const hca::Error& error) {
    log_refusal("ibv_post_mr_layout", error.code(), error.what());
    return false;
  } catch (const std::exception& error) {
    log_refusal("ibv_post_mr_layout", ENOMEM, error.what());
    return false;
  }
  unstage(mr);
  return true;
}

}  // namespace weft::verbs
