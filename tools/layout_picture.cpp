#include "tools/layout_picture.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <functional>

#include "datatype/normal_form.hpp"
#include "hca/layout_nodes.hpp"

namespace weft::tools {

using datatype::Piece;

namespace {

/// More blocks than this are not looked at: a picture cannot show them anyway.
constexpr std::size_t most_blocks = 1 << 20;

/// The smallest distance that the layout repeats itself at; 0 if it does not.
std::uint64_t innermost_stride(const Piece& p) {
  if (!p.is_loop()) {
    return p.is_list() ? innermost_stride(p.term->items.front()) : 0;
  }
  const std::uint64_t inner = innermost_stride(p.term->items.front());
  return inner != 0 ? inner : static_cast<std::uint64_t>(std::abs(p.term->stride));
}

/// Calls `take` for every block until it returns false.
bool visit_blocks(const Piece& p, std::int64_t at,
                  const std::function<bool(const hca::Block&)>& take) {
  at += p.offset;
  if (p.empty()) return true;
  if (p.is_block()) return take({at, p.length});
  if (p.is_list()) {
    return std::all_of(p.term->items.begin(), p.term->items.end(),
                       [&](const Piece& item) { return visit_blocks(item, at, take); });
  }
  for (std::uint64_t i = 0; i < p.term->count; ++i) {
    if (!visit_blocks(p.term->items.front(), at + static_cast<std::int64_t>(i) * p.term->stride,
                      take)) {
      return false;
    }
  }
  return true;
}

/// A part of a block within one row.
struct Strip {
  std::uint64_t row;
  std::uint64_t begin;  // bytes from the row's start
  std::uint64_t end;
};

/// The parts of a block in the rows that are shown.
std::vector<Strip> strips_of(const hca::Block& block, const Grid& grid) {
  std::vector<Strip> strips;
  auto at = static_cast<std::uint64_t>(block.offset - grid.start);
  std::uint64_t left = block.length;
  while (left != 0) {
    const std::uint64_t row = at / grid.row_bytes;
    if (row >= grid.rows) break;
    const std::uint64_t begin = at % grid.row_bytes;
    const std::uint64_t here = std::min(left, grid.row_bytes - begin);
    strips.push_back({row, begin, begin + here});
    at += here;
    left -= here;
  }
  return strips;
}

}  // namespace

std::vector<hca::Block> first_blocks(const hca::Layout& layout, std::size_t most) {
  std::vector<hca::Block> blocks;
  visit_blocks(datatype::from_layout(layout), 0, [&](const hca::Block& block) {
    blocks.push_back(block);
    return blocks.size() < most;
  });
  return blocks;
}

Grid grid_of(const hca::Layout& layout, const PictureSize& size) {
  Grid grid;
  if (layout.size() == 0) return grid;
  auto span =
      static_cast<std::uint64_t>(layout.upper()) - static_cast<std::uint64_t>(layout.lower());
  const std::uint64_t columns = size.columns;
  const std::uint64_t stride = innermost_stride(datatype::from_layout(layout));
  if (stride != 0 && stride < span) {
    // Rows that begin at multiples of the stride show where in its row a block is.
    grid.row_bytes = stride;
    if (stride < columns) grid.row_bytes = columns / stride * stride;
    const auto step = static_cast<std::int64_t>(grid.row_bytes);
    const std::int64_t into_row = (layout.lower() % step + step) % step;
    grid.start = layout.lower() - into_row;
    span += static_cast<std::uint64_t>(into_row);
  } else {
    // Memory just runs on from row to row.
    grid.start = layout.lower();
    grid.row_bytes = std::min(std::max(columns, (span + size.rows - 1) / size.rows), span);
  }
  grid.cell_bytes = (grid.row_bytes + columns - 1) / columns;
  grid.rows_in_all = (span + grid.row_bytes - 1) / grid.row_bytes;
  grid.rows = std::min<std::uint64_t>(grid.rows_in_all, size.rows);
  return grid;
}

std::string ascii_picture(const hca::Layout& layout, const PictureSize& size) {
  const Grid grid = grid_of(layout, size);
  const std::uint64_t cells = (grid.row_bytes + grid.cell_bytes - 1) / grid.cell_bytes;
  std::vector<std::vector<std::uint64_t>> used(grid.rows, std::vector<std::uint64_t>(cells));
  for (const hca::Block& block : first_blocks(layout, most_blocks)) {
    for (const Strip& strip : strips_of(block, grid)) {
      for (std::uint64_t cell = strip.begin / grid.cell_bytes; cell * grid.cell_bytes < strip.end;
           ++cell) {
        const std::uint64_t begin = std::max(strip.begin, cell * grid.cell_bytes);
        const std::uint64_t end = std::min(strip.end, (cell + 1) * grid.cell_bytes);
        used[strip.row][cell] += end - begin;
      }
    }
  }
  std::string text;
  for (std::uint64_t row = 0; row < grid.rows; ++row) {
    text += fmt::format("{:>14} ", grid.start + static_cast<std::int64_t>(row * grid.row_bytes));
    for (std::uint64_t cell = 0; cell < cells; ++cell) {
      const std::uint64_t width =
          std::min(grid.cell_bytes, grid.row_bytes - cell * grid.cell_bytes);
      text += used[row][cell] >= width ? '#' : used[row][cell] != 0 ? '+' : '.';
    }
    text += '\n';
  }
  if (grid.rows < grid.rows_in_all) {
    text += fmt::format("{:>14} {} more rows\n", "...", grid.rows_in_all - grid.rows);
  }
  if (layout.block_count() > most_blocks) {
    text += fmt::format("{:>14} (of the first {} blocks)\n", "", most_blocks);
  }
  return text;
}

std::string svg_picture(const hca::Layout& layout, const std::string& title,
                        const PictureSize& size) {
  constexpr double width = 960;
  constexpr double left = 110;
  constexpr double top = 40;
  constexpr double row_height = 22;
  const Grid grid = grid_of(layout, size);
  const double height = top + row_height * static_cast<double>(grid.rows) + 30;
  std::string safe_title;
  for (const char c : title) {
    if (c == '&') {
      safe_title += "&amp;";
    } else if (c == '<') {
      safe_title += "&lt;";
    } else {
      safe_title += c;
    }
  }
  std::string svg = fmt::format(
      "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{0}\" height=\"{1}\" viewBox=\"0 0 {0} "
      "{1}\" font-family=\"monospace\" font-size=\"12\">\n<title>{2}</title>\n"
      "<text x=\"8\" y=\"20\">{2}</text>\n",
      width + left + 10, height, safe_title);
  for (std::uint64_t row = 0; row < grid.rows; ++row) {
    const double y = top + row_height * static_cast<double>(row);
    svg += fmt::format(
        "<text x=\"{}\" y=\"{}\" text-anchor=\"end\">{}</text>\n<rect x=\"{}\" y=\"{}\" "
        "width=\"{}\" height=\"{}\" fill=\"#eeeeee\"/>\n",
        left - 8, y + 14, grid.start + static_cast<std::int64_t>(row * grid.row_bytes), left, y,
        width, row_height - 4);
  }
  const std::vector<hca::Block> blocks = first_blocks(layout, 20000);
  const double scale = width / static_cast<double>(grid.row_bytes);
  for (std::size_t i = 0; i < blocks.size(); ++i) {
    const double position =
        blocks.size() < 2 ? 0 : static_cast<double>(i) / static_cast<double>(blocks.size() - 1);
    for (const Strip& strip : strips_of(blocks[i], grid)) {
      svg += fmt::format(
          "<rect x=\"{:.2f}\" y=\"{}\" width=\"{:.2f}\" height=\"{}\" fill=\"hsl({:.0f},70%,50%)\">"
          "<title>block {}: {} bytes at {}</title></rect>\n",
          left + scale * static_cast<double>(strip.begin),
          top + row_height * static_cast<double>(strip.row),
          std::max(scale * static_cast<double>(strip.end - strip.begin), 0.5), row_height - 4,
          230 - 230 * position, i, blocks[i].length, blocks[i].offset);
    }
  }
  if (grid.rows < grid.rows_in_all) {
    svg += fmt::format("<text x=\"{}\" y=\"{}\">{} more rows</text>\n", left, height - 10,
                       grid.rows_in_all - grid.rows);
  }
  return svg + "</svg>\n";
}

}  // namespace weft::tools
