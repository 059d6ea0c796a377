#include <algorithm>
#include <cstdint>
#include <numeric>

#include "benchmarks/shape.hpp"

namespace weft::benchmarks {
namespace {

/// splitmix64: the irregular shapes are the same in every run.
class Random {
 public:
  std::size_t below(std::size_t n) {
    std::uint64_t z = (state_ += 0x9e3779b97f4a7c15ull);
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ull;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebull;
    return (z ^ (z >> 31)) % n;
  }

 private:
  std::uint64_t state_ = 20;
};

Side committed(MPI_Datatype type, int count, std::size_t memory, std::vector<Block> blocks) {
  MPI_Type_commit(&type);
  return {type, count, memory, std::move(blocks)};
}

Side contiguous(std::size_t bytes) {
  return {MPI_BYTE, static_cast<int>(bytes), bytes, {{0, bytes}}};
}

/// `n` blocks of `length` bytes, one every `stride` bytes.
Side strided(int n, int length, int stride) {
  MPI_Datatype unit = length % 8 == 0 && stride % 8 == 0 ? MPI_DOUBLE : MPI_FLOAT, type;
  const int size = unit == MPI_DOUBLE ? 8 : 4;
  MPI_Type_vector(n, length / size, stride / size, unit, &type);
  std::vector<Block> blocks;
  blocks.reserve(static_cast<std::size_t>(n));
  for (int i = 0; i < n; ++i) {
    blocks.push_back({static_cast<std::size_t>(i) * stride, static_cast<std::size_t>(length)});
  }
  return committed(type, 1, static_cast<std::size_t>(n) * stride, std::move(blocks));
}

/// Appends the blocks of a part of an array in row-major order.
void add_part(std::vector<Block>& blocks, const std::vector<int>& sizes,
              const std::vector<int>& part, const std::vector<int>& start, std::size_t element,
              std::size_t base) {
  const int n = static_cast<int>(sizes.size());
  std::vector<int> index(n, 0);
  for (;;) {
    std::size_t at = 0;
    for (int d = 0; d < n; ++d) at = at * sizes[d] + start[d] + index[d];
    blocks.push_back({base + at * element, part[n - 1] * element});
    int d = n - 2;
    while (d >= 0 && ++index[d] == part[d]) index[d--] = 0;
    if (d < 0) return;
  }
}

std::size_t product(const std::vector<int>& sizes) {
  return std::accumulate(sizes.begin(), sizes.end(), std::size_t{1}, std::multiplies<>());
}

MPI_Datatype part_type(const std::vector<int>& sizes, const std::vector<int>& part,
                       const std::vector<int>& start, MPI_Datatype element) {
  MPI_Datatype type;
  MPI_Type_create_subarray(static_cast<int>(sizes.size()), sizes.data(), part.data(), start.data(),
                           MPI_ORDER_C, element, &type);
  return type;
}

/// Two layers of a cube of 128^3 doubles next to its halo.
Side cube_face(const std::vector<int>& part) {
  const std::vector<int> sizes{128, 128, 128}, start{1, 1, 1};
  std::vector<Block> blocks;
  add_part(blocks, sizes, part, start, 8, 0);
  return committed(part_type(sizes, part, start, MPI_DOUBLE), 1, product(sizes) * 8,
                   std::move(blocks));
}

Side lattice_face() {
  const std::vector<int> sizes{16, 16, 16, 32}, part{16, 16, 1, 32}, start{0, 0, 5, 0};
  constexpr int site = 96;
  MPI_Datatype element;
  MPI_Type_contiguous(site / 8, MPI_DOUBLE, &element);
  std::vector<Block> blocks;
  add_part(blocks, sizes, part, start, site, 0);
  Side side = committed(part_type(sizes, part, start, element), 1, product(sizes) * site,
                        std::move(blocks));
  MPI_Type_free(&element);
  return side;
}

/// `n` doubles with gaps of `least` to `most` doubles between them.
Side ascending_blocks(int n, std::size_t least, std::size_t most) {
  Random random;
  constexpr int length = 8;
  std::vector<MPI_Aint> at;
  std::vector<Block> blocks;
  std::size_t next = 0;
  for (int i = 0; i < n; ++i) {
    next += 8 * (least + random.below(most - least + 1));
    at.push_back(static_cast<MPI_Aint>(next));
    blocks.push_back({next, length});
    next += length;
  }
  MPI_Datatype type;
  MPI_Type_create_hindexed_block(n, 1, at.data(), MPI_DOUBLE, &type);
  return committed(type, 1, next, std::move(blocks));
}

Side irregular_blocks() {
  Random random;
  constexpr int n = 16384;
  std::vector<MPI_Aint> at;
  std::vector<int> lengths;
  std::vector<Block> blocks;
  std::size_t next = 0;
  for (int i = 0; i < n; ++i) {
    const std::size_t doubles = 1 + random.below(6);
    next += 8 * (1 + random.below(12));
    at.push_back(static_cast<MPI_Aint>(next));
    lengths.push_back(static_cast<int>(doubles));
    blocks.push_back({next, doubles * 8});
    next += doubles * 8;
  }
  MPI_Datatype type;
  MPI_Type_create_hindexed(n, lengths.data(), at.data(), MPI_DOUBLE, &type);
  return committed(type, 1, next, std::move(blocks));
}

Side shuffled_blocks() {
  Random random;
  constexpr int n = 8192, doubles = 3, pitch = 5;
  std::vector<int> at(n);
  for (int i = 0; i < n; ++i) at[i] = i * pitch;
  for (int i = n - 1; i > 0; --i) std::swap(at[i], at[random.below(i + 1)]);
  std::vector<Block> blocks;
  blocks.reserve(at.size());
  for (int place : at) blocks.push_back({static_cast<std::size_t>(place) * 8, doubles * 8});
  MPI_Datatype type;
  MPI_Type_create_indexed_block(n, doubles, at.data(), MPI_DOUBLE, &type);
  return committed(type, 1, std::size_t{n} * pitch * 8, std::move(blocks));
}

Side array_of_structs() {
  constexpr int n = 16384, extent = 40;
  const int lengths[] = {1, 1};
  const MPI_Aint at[] = {0, 32};
  const MPI_Datatype members[] = {MPI_DOUBLE, MPI_DOUBLE};
  MPI_Datatype plain, type;
  MPI_Type_create_struct(2, lengths, at, members, &plain);
  MPI_Type_create_resized(plain, 0, extent, &type);
  MPI_Type_free(&plain);
  std::vector<Block> blocks;
  for (std::size_t i = 0; i < n; ++i) {
    for (MPI_Aint member : at) blocks.push_back({i * extent + member, 8});
  }
  return committed(type, n, std::size_t{n} * extent, std::move(blocks));
}

Side four_arrays() {
  struct Array {
    std::vector<int> sizes, part, start;
    bool doubles;
  };
  const std::vector<Array> arrays{
      {{256, 200}, {200, 40}, {20, 30}, true},
      {{40, 50, 60}, {20, 30, 25}, {10, 5, 7}, false},
      {{24, 64, 40}, {24, 1, 40}, {0, 9, 0}, true},
      {{512, 512}, {480, 16}, {16, 100}, false},
  };
  std::vector<MPI_Datatype> types;
  std::vector<MPI_Aint> at;
  std::vector<Block> blocks;
  std::size_t memory = 0;
  for (const Array& a : arrays) {
    const std::size_t element = a.doubles ? 8 : 4;
    types.push_back(part_type(a.sizes, a.part, a.start, a.doubles ? MPI_DOUBLE : MPI_FLOAT));
    at.push_back(static_cast<MPI_Aint>(memory));
    add_part(blocks, a.sizes, a.part, a.start, element, memory);
    memory += product(a.sizes) * element + 4096;
  }
  const std::vector<int> ones(arrays.size(), 1);
  MPI_Datatype type;
  MPI_Type_create_struct(static_cast<int>(arrays.size()), ones.data(), at.data(), types.data(),
                         &type);
  for (MPI_Datatype& one : types) MPI_Type_free(&one);
  return committed(type, 1, memory, std::move(blocks));
}

Side indexed_vectors() {
  Random random;
  constexpr int n = 64, rows = 32, stride = 48;
  MPI_Datatype column, type;
  MPI_Type_vector(rows, 1, stride / 8, MPI_DOUBLE, &column);
  constexpr std::size_t extent = (rows - 1) * stride + 8;
  std::vector<int> at, ones(n, 1);
  std::vector<Block> blocks;
  std::size_t next = 0;
  for (int i = 0; i < n; ++i) {
    next += random.below(4);
    at.push_back(static_cast<int>(next));
    for (std::size_t row = 0; row < rows; ++row)
      blocks.push_back({next * extent + row * stride, 8});
    ++next;
  }
  MPI_Type_indexed(n, ones.data(), at.data(), column, &type);
  MPI_Type_free(&column);
  return committed(type, 1, next * extent, std::move(blocks));
}

/// The columns of a square matrix one after the other.
Side transposed(int side) {
  MPI_Datatype column, type;
  MPI_Type_vector(side, 1, side, MPI_DOUBLE, &column);
  MPI_Type_create_resized(column, 0, 8, &type);
  MPI_Type_free(&column);
  std::vector<Block> blocks;
  for (std::size_t c = 0; c < static_cast<std::size_t>(side); ++c) {
    for (std::size_t r = 0; r < static_cast<std::size_t>(side); ++r) {
      blocks.push_back({(r * side + c) * 8, 8});
    }
  }
  return committed(type, side, std::size_t{8} * side * side, std::move(blocks));
}

std::string strided_name(int n, int length, int stride) {
  return std::to_string(n) + " x " + std::to_string(length) + " / " + std::to_string(stride);
}

void add_strided(std::vector<Shape>& shapes, int n, int length, int stride) {
  shapes.push_back({static_cast<int>(shapes.size()) + 1, strided_name(n, length, stride),
                    strided(n, length, stride), strided(n, length, stride)});
}

void add(std::vector<Shape>& shapes, const char* name, Side send, Side recv) {
  shapes.push_back({static_cast<int>(shapes.size()) + 1, name, std::move(send), std::move(recv)});
}

}  // namespace

std::size_t Shape::bytes() const {
  std::size_t sum = 0;
  for (const Block& block : send.blocks) sum += block.length;
  return sum;
}

std::vector<Shape> all_shapes() {
  std::vector<Shape> shapes;
  add_strided(shapes, 64, 8, 8208);
  add_strided(shapes, 1024, 8, 8208);
  add_strided(shapes, 8192, 8, 8208);
  add_strided(shapes, 1024, 8, 8192);
  add_strided(shapes, 131072, 8, 16);
  add_strided(shapes, 65536, 4, 12);
  add_strided(shapes, 4096, 16, 1040);
  add_strided(shapes, 4096, 64, 4160);
  add_strided(shapes, 4096, 256, 1040);
  add_strided(shapes, 4096, 1024, 2064);
  add_strided(shapes, 2048, 4096, 8208);
  add_strided(shapes, 64, 65536, 66000);
  add(shapes, "face 126 x 126 x 2", cube_face({126, 126, 2}), cube_face({126, 126, 2}));
  add(shapes, "face 126 x 2 x 126", cube_face({126, 2, 126}), cube_face({126, 2, 126}));
  add(shapes, "face 2 x 126 x 126", cube_face({2, 126, 126}), cube_face({2, 126, 126}));
  add(shapes, "4D lattice face", lattice_face(), lattice_face());
  add(shapes, "hindexed_block ascending", ascending_blocks(16384, 0, 11),
      ascending_blocks(16384, 0, 11));
  add(shapes, "hindexed 8 to 48", irregular_blocks(), irregular_blocks());
  add(shapes, "indexed_block shuffled", shuffled_blocks(), shuffled_blocks());
  add(shapes, "structs of two doubles", array_of_structs(), array_of_structs());
  add(shapes, "struct of four subarrays", four_arrays(), four_arrays());
  add(shapes, "indexed of vectors", indexed_vectors(), indexed_vectors());
  add(shapes, "8192 x 8 / 8208 to flat", strided(8192, 8, 8208), contiguous(8192 * 8));
  add(shapes, "transpose 512 x 512", contiguous(512 * 512 * 8), transposed(512));

  constexpr int first_contiguous = 101;
  int number = first_contiguous;
  constexpr std::size_t kib = 1024, mib = kib * kib;
  for (std::size_t bytes : {std::size_t{8}, std::size_t{64}, std::size_t{512}, 4 * kib, 32 * kib,
                            256 * kib, mib, 4 * mib}) {
    const std::string size = bytes >= mib   ? std::to_string(bytes / mib) + " MiB"
                             : bytes >= kib ? std::to_string(bytes / kib) + " KiB"
                                            : std::to_string(bytes) + " B";
    shapes.push_back({number++, "contiguous " + size, contiguous(bytes), contiguous(bytes)});
  }
  return shapes;
}

std::vector<Shape> scaling_shapes(Family family) {
  std::vector<Shape> shapes;
  for (int n = 16; n <= 1 << 20; n *= 4) {
    const auto side = [&] {
      return family == Family::strided ? strided(n, 8, 24) : ascending_blocks(n, 1, 3);
    };
    const std::string name = family == Family::strided
                                 ? strided_name(n, 8, 24)
                                 : "hindexed_block of " + std::to_string(n) + " x 8";
    shapes.push_back({n, name, side(), side()});
  }
  return shapes;
}

}  // namespace weft::benchmarks
