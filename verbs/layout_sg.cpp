// Layouts that are a list of pieces.
#include <algorithm>
#include <cerrno>

#include "verbs/layout.hpp"
#include "verbs/limits.hpp"
#include "verbs/log.hpp"
#include "verbs/memory_region.hpp"

namespace weft::verbs {

namespace {

class SgDescription final : public LayoutDescription {
 public:
  SgDescription(bool raw, std::vector<ibv_sge> entries)
      : LayoutDescription(raw), entries_(std::move(entries)) {}

  [[nodiscard]] hca::LayoutPtr compile(Resolver& resolver) const override {
    std::vector<hca::Placed> parts;
    std::vector<hca::Block> blocks;  // of memory, since the last part that is a layout's
    const auto end_blocks = [&] {
      if (blocks.empty()) return;
      parts.push_back({0, hca::Layout::sg_list(blocks)});
      blocks.clear();
    };
    for (const ibv_sge& entry : entries_) {
      Resolver::Place place = resolver.place(entry, entry.length);
      if (place.layout) {
        end_blocks();
        parts.push_back(
            {0, hca::Layout::slice(std::move(place.layout),
                                   static_cast<std::uint64_t>(place.offset), entry.length)});
      } else {
        blocks.push_back({place.offset, entry.length});
      }
    }
    end_blocks();
    return hca::Layout::sequence(parts);
  }

  [[nodiscard]] bool fits_in_place_of(const LayoutDescription& other) const override {
    const auto* list = dynamic_cast<const SgDescription*>(&other);
    return list != nullptr && list->entries_.size() == entries_.size();
  }
  [[nodiscard]] bool is_inline() const override {
    return entries_.size() <= limits().layouts.max_inline_num_sg;
  }
  void populate(bool writable) const override {
    for (const ibv_sge& entry : entries_) {
      auto* const addr = reinterpret_cast<void*>(entry.addr);
      check_range(addr, entry.length, 0);
      verbs::populate(addr, entry.length, writable);
    }
  }

 private:
  std::vector<ibv_sge> entries_;
};

}  // namespace

int set_layout_sg(ibv_mr* mr, int flags, int num_sge, const ibv_sge* sg_list) {
  return layout_code(guarded("ibv_mr_set_layout_sg", [&] {
    check_carrier(mr, flags);
    const ibv_mr_layout_caps& caps = limits().layouts;
    if ((caps.cap_flags & IBV_MR_SET_LAYOUT_SG) == 0) {
      refuse(EOPNOTSUPP, "no IBV_MR_SET_LAYOUT_SG");
    }
    if (num_sge < 1 || sg_list == nullptr) {
      refuse(EINVAL, "num_sge " + std::to_string(num_sge) + ", or no list");
    }
    check_limit(EOPNOTSUPP, "num_sge", num_sge, caps.max_num_sg);
    std::vector<ibv_sge> entries(sg_list, sg_list + num_sge);
    if (std::any_of(entries.begin(), entries.end(),
                    [](const ibv_sge& entry) { return entry.length == 0; })) {
      refuse(EINVAL, "an entry of no bytes");
    }
    set_layout(MemoryRegion::of(mr), flags,
               std::make_shared<SgDescription>((flags & IBV_MR_SET_LAYOUT_REGISTER_BUFFERS) != 0,
                                               std::move(entries)));
  }));
}

}  // namespace weft::verbs
