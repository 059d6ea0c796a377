// weft-layout: shows the layout that a datatype compiles to.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <cstdio>
#include <fstream>
#include <string>

#include "config.h"
#include "datatype/cost.hpp"
#include "datatype/spec.hpp"
#include "hca/status.hpp"
#include "tools/layout_picture.hpp"

namespace {

using namespace weft;

struct Options {
  std::string type;
  std::uint64_t count = 1;
  std::string svg;
  std::size_t columns = 64;
  std::size_t rows = 16;
  bool picture = true;
};

/// "8192 bytes", "1 byte".
std::string bytes(std::uint64_t n) {
  return fmt::format("{} byte{}", n, n == 1 ? "" : "s");
}

void print(const datatype::Type& type, const datatype::Spec& spec, const Options& options) {
  const hca::LayoutPtr layout = type.layout(options.count);
  const datatype::Cost cost = datatype::cost_of(*layout);
  fmt::print("datatype     {}\n", to_string(spec));
  if (options.count != 1) fmt::print("count        {}\n", options.count);
  fmt::print("             size {}, lb {}, extent {}, true lb {}, true extent {}\n", type.size(),
             type.lb(), type.extent(), type.true_lb(), type.true_extent());
  fmt::print("layout       {}\n", layout->describe());
  fmt::print("kind         {}\n", hca::to_string(layout->kind()));
  fmt::print("packed       {} in {} block{}", bytes(cost.bytes), cost.blocks,
             cost.blocks == 1 ? "" : "s");
  if (cost.blocks > 1) fmt::print(", {:.1f} bytes each on average", cost.mean_block());
  fmt::print("\n");
  const double span = static_cast<double>(layout->upper()) - static_cast<double>(layout->lower());
  if (cost.bytes != 0) {
    fmt::print("memory       from {} to {}, {:.3g} % of it used\n", layout->lower(),
               layout->upper(), 100.0 * static_cast<double>(cost.bytes) / span);
  }
  fmt::print("description  {}\n", bytes(cost.footprint));
  for (const char* profile : {"default", "connectx"}) {
    const std::string why = datatype::exceeds(cost, *datatype::limits_of_profile(profile));
    fmt::print("{:<13}{}\n", profile, why.empty() ? "offloaded" : "not offloaded: " + why);
  }
  if (options.picture && cost.bytes != 0) {
    const tools::PictureSize size{options.columns, options.rows};
    const tools::Grid grid = tools::grid_of(*layout, size);
    fmt::print("\nrows of {}, a character for {}: # all, + some, . none of it in the layout\n{}",
               bytes(grid.row_bytes), bytes(grid.cell_bytes), tools::ascii_picture(*layout, size));
  }
  if (!options.svg.empty()) {
    std::ofstream file(options.svg);
    file << tools::svg_picture(*layout, to_string(spec), {options.columns, options.rows});
    file.close();
    if (!file) throw std::runtime_error("cannot write " + options.svg);
  }
}

constexpr const char* language = R"(Datatypes are written as MPI's constructors without MPI_Type_:
  double, int, byte, ...
  contiguous(count, type)
  vector(count, blocklength, stride, type)         stride in extents
  hvector(count, blocklength, stride, type)        stride in bytes
  indexed([blocklengths], [displacements], type)   hindexed: displacements in bytes
  indexed_block(blocklength, [displacements], type)  hindexed_block likewise
  struct([blocklengths], [displacements], [types])
  subarray([sizes], [subsizes], [starts], C|F, type)
  darray(rank, [sizes], [none|block|cyclic], [argument|default], [processes], C|F, type)
  resized(type, lb, extent)   dup(type)
Numbers may end in K, M or G (powers of 1024).)";

}  // namespace

int main(int argc, char** argv) {
  Options options;
  CLI::App app{"Shows the layout that an MPI datatype compiles to.", "weft-layout"};
  app.footer(language);
  app.set_version_flag("--version", std::string("weft-layout ") + PACKAGE_VERSION);
  app.add_option("type", options.type, "The datatype, for instance 'vector(1024,1,1026,double)'")
      ->required();
  app.add_option("-c,--count", options.count, "So many elements of it, as in MPI_Send")
      ->capture_default_str();
  app.add_option("--svg", options.svg, "Write a picture to this file");
  app.add_option("--columns", options.columns, "Width of the picture in characters")
      ->check(CLI::Range(1, 1000))
      ->capture_default_str();
  app.add_option("--rows", options.rows, "Rows of the picture")
      ->check(CLI::Range(1, 10000))
      ->capture_default_str();
  app.add_flag("!--no-picture", options.picture, "Only the text");
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& e) {
    return app.exit(e) == 0 ? 0 : 2;
  }
  try {
    const datatype::Spec spec = datatype::parse(options.type);
    print(build(spec), spec, options);
  } catch (const datatype::SyntaxError& e) {
    fmt::print(stderr, "weft-layout: {}\n  {}\n  {:>{}}\n", e.what(), options.type, "^",
               e.position() + 1);
    return 2;
  } catch (const hca::Error& e) {
    fmt::print(stderr, "weft-layout: {}\n", e.what());
    return 2;
  } catch (const std::exception& e) {
    fmt::print(stderr, "weft-layout: {}\n", e.what());
    return 1;
  }
  return 0;
}
