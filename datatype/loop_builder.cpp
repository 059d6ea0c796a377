#include "datatype/loop_builder.hpp"

#include <cerrno>
#include <utility>
#include <vector>

#include "datatype/normal_form.hpp"
#include "hca/layout_detail.hpp"
#include "hca/layout_nodes.hpp"
#include "hca/status.hpp"

namespace weft::datatype {

struct LoopBuilder::State {
  /// A loop that is open, or the type itself (the first one).
  struct Level {
    std::uint64_t loops;
    std::int64_t extent;
    std::vector<Piece> pieces;
  };
  std::vector<Level> levels;
  State() { levels.push_back({1, 0, {}}); }
};

LoopBuilder::LoopBuilder() : state_(std::make_unique<State>()) {}
LoopBuilder::~LoopBuilder() = default;
LoopBuilder::LoopBuilder(LoopBuilder&&) noexcept = default;
LoopBuilder& LoopBuilder::operator=(LoopBuilder&&) noexcept = default;

void LoopBuilder::element(std::int64_t disp, std::uint64_t count, std::uint64_t block_bytes,
                          std::int64_t extent) {
  Piece p = loop(block(block_bytes, disp), count, extent);
  if (!p.empty()) state_->levels.back().pieces.push_back(std::move(p));
}

void LoopBuilder::begin_loop(std::uint64_t loops, std::int64_t extent) {
  state_->levels.push_back({loops, extent, {}});
}

void LoopBuilder::end_loop() {
  if (state_->levels.size() < 2) throw hca::Error(EINVAL, "datatype: a loop ends that never began");
  State::Level level = std::move(state_->levels.back());
  state_->levels.pop_back();
  Piece p = loop(list(std::move(level.pieces)), level.loops, level.extent);
  if (!p.empty()) state_->levels.back().pieces.push_back(std::move(p));
}

hca::LayoutPtr LoopBuilder::finish() {
  State done;
  std::swap(*state_, done);
  if (done.levels.size() != 1) throw hca::Error(EINVAL, "datatype: a loop does not end");
  return to_layout(list(std::move(done.levels[0].pieces)));
}

namespace {

/// Lists of more blocks are repeated as they are. loop() does so from its own limit on, which
/// counts what the list is described by: a repeated list may differ from the same loop made in one
/// step.
constexpr std::uint64_t long_list = 1024;

const hca::RepeatLayout* as_repeat(const hca::LayoutPtr& layout) {
  return dynamic_cast<const hca::RepeatLayout*>(layout.get());
}

/// What loop() repeats as it is: a long list, or a loop over one.
bool is_long(const hca::LayoutPtr& layout) {
  if (const auto* loops = as_repeat(layout)) return is_long(loops->child());
  return layout->kind() == hca::LayoutKind::sg_list && layout->block_count() > long_list;
}

}  // namespace

// All counts of a datatype share its description.
hca::LayoutPtr repeat(const hca::LayoutPtr& layout, std::uint64_t count, std::int64_t extent) {
  if (count == 1) return layout;
  const auto* own = as_repeat(layout);
  if (is_long(layout)) {
    const bool tiles =
        own != nullptr && static_cast<hca::detail::Wide>(own->count()) * own->stride() == extent;
    return tiles ? hca::Layout::repeat(own->child(), hca::detail::multiply(own->count(), count),
                                       own->stride())
                 : hca::Layout::repeat(layout, count, extent);
  }
  hca::LayoutPtr result = to_layout(loop(from_layout(*layout), count, extent));
  const auto* loops = as_repeat(result);
  if (loops == nullptr) return result;
  if (loops->child()->equals(*layout))
    return hca::Layout::repeat(layout, loops->count(), loops->stride());
  if (own != nullptr && loops->child()->equals(*own->child()))
    return hca::Layout::repeat(own->child(), loops->count(), loops->stride());
  return result;
}

}  // namespace weft::datatype
