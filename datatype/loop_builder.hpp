// LoopBuilder: reads a datatype given as a linear program of elements and loops.
//
// That is the form in which MPI libraries keep their own descriptions: strided runs of primitive
// blocks between begin and end of counted loops. Displacements count from the start of the
// enclosing loop's iteration. The order of the calls is the order of the packed stream.
#pragma once

#include <cstdint>
#include <memory>

#include "hca/layout.hpp"

namespace weft::datatype {

class LoopBuilder {
 public:
  LoopBuilder();
  ~LoopBuilder();
  LoopBuilder(LoopBuilder&&) noexcept;
  LoopBuilder& operator=(LoopBuilder&&) noexcept;

  /// `count` blocks of `block_bytes`, the first at `disp`, `extent` bytes from start to start.
  void element(std::int64_t disp, std::uint64_t count, std::uint64_t block_bytes,
               std::int64_t extent);

  /// Everything up to the matching end_loop() is repeated `loops` times, `extent` bytes apart.
  void begin_loop(std::uint64_t loops, std::int64_t extent);
  /// hca::Error EINVAL when no loop is open.
  void end_loop();

  /// The layout in normal form; never null (a type without bytes gives an empty layout of size 0).
  /// The builder is empty afterwards. hca::Error: EINVAL a loop is still open, EOVERFLOW offsets or
  /// sizes of more than 63 bits.
  hca::LayoutPtr finish();

 private:
  struct State;
  std::unique_ptr<State> state_;
};

/// `count` copies of a datatype with this layout, `extent` bytes apart (any sign, zero, smaller
/// than the type): what (datatype, count) of an MPI call stands for. In normal form.
hca::LayoutPtr repeat(const hca::LayoutPtr& layout, std::uint64_t count, std::int64_t extent);

}  // namespace weft::datatype
