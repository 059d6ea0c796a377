// Pictures of a layout: the memory it touches as rows of cells, for a terminal or as SVG.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "hca/layout.hpp"

namespace weft::tools {

struct PictureSize {
  std::size_t columns = 64;
  std::size_t rows = 16;
};

/// How memory is cut into rows and cells. A row is as long as the layout's innermost stride where
/// it has one, so that a column looks like a column.
struct Grid {
  std::int64_t start = 0;  ///< offset of the first byte
  std::uint64_t row_bytes = 1;
  std::uint64_t cell_bytes = 1;
  std::uint64_t rows = 0;  ///< shown
  std::uint64_t rows_in_all = 0;
};

Grid grid_of(const hca::Layout& layout, const PictureSize& size);

/// The blocks in the order of the stream, at most `most` of them.
std::vector<hca::Block> first_blocks(const hca::Layout& layout, std::size_t most);

/// '#' for cells all of whose bytes belong to the layout, '+' for some, '.' for none.
std::string ascii_picture(const hca::Layout& layout, const PictureSize& size = {});

/// A complete SVG document; blocks are coloured from first (blue) to last (red) of the stream.
std::string svg_picture(const hca::Layout& layout, const std::string& title,
                        const PictureSize& size = {});

}  // namespace weft::tools
