// A shape: what one side sends and the other receives, as MPI datatypes and, for checking and for
// packing by hand, as plain blocks of bytes.
#pragma once

#include <mpi.h>

#include <cstddef>
#include <string>
#include <vector>

namespace weft::benchmarks {

struct Block {
  std::size_t offset;
  std::size_t length;
};

/// One side's memory and the arguments of its MPI call.
struct Side {
  MPI_Datatype type = MPI_DATATYPE_NULL;
  int count = 0;
  std::size_t memory = 0;     ///< bytes from the buffer's address on
  std::vector<Block> blocks;  ///< in packed order
};

struct Shape {
  int number;  ///< as in the list of shapes; contiguous ones follow from 101 on
  std::string name;
  Side send, recv;

  std::size_t bytes() const;
};

/// All shapes speed is judged on. Their types are committed; MPI must be initialised.
std::vector<Shape> all_shapes();

enum class Family { strided, indexed };

/// The same shape with 16 to 1,048,576 blocks of 8 bytes, four times as many each time: 24 bytes
/// apart, or a hindexed_block at irregular ascending offsets. Their numbers are those of the
/// blocks.
std::vector<Shape> scaling_shapes(Family family);

}  // namespace weft::benchmarks
