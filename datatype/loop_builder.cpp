#include "datatype/loop_builder.hpp"

#include <cerrno>
#include <vector>

#include "datatype/normal_form.hpp"
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
  Piece p = loop(list(level.pieces), level.loops, level.extent);
  if (!p.empty()) state_->levels.back().pieces.push_back(std::move(p));
}

hca::LayoutPtr LoopBuilder::finish() {
  State done;
  std::swap(*state_, done);
  if (done.levels.size() != 1) throw hca::Error(EINVAL, "datatype: a loop does not end");
  return to_layout(list(done.levels[0].pieces));
}

hca::LayoutPtr repeat(const hca::LayoutPtr& layout, std::uint64_t count, std::int64_t extent) {
  if (count == 1) return layout;
  return to_layout(loop(from_layout(*layout), count, extent));
}

}  // namespace weft::datatype
