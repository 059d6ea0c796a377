// An MPI datatype together with its type map and the text of its construction. Each function below
// calls one MPI constructor and, independently of it, writes down what the MPI standard says the
// type map is. Extents, which some constructors leave to the implementation (padding), are asked
// from MPI; the places of the elements never are.
#pragma once

#include <mpi.h>

#include <cstdint>
#include <span>
#include <string>
#include <utility>

#include "tests/mpi/oracle/type_map.hpp"

namespace weft::oracle {

/// Owns its MPI datatype, unless that is a predefined one.
class BuiltType {
 public:
  BuiltType() = default;
  BuiltType(MPI_Datatype type, TypeMap map, std::string text, bool predefined = false);
  BuiltType(BuiltType&& other) noexcept { swap(other); }
  BuiltType& operator=(BuiltType&& other) noexcept {
    swap(other);
    return *this;
  }
  ~BuiltType() { free(); }

  MPI_Datatype type() const { return type_; }
  const TypeMap& map() const { return map_; }
  const std::string& text() const { return text_; }
  bool predefined() const { return predefined_; }
  MPI_Aint lb() const { return lb_; }
  MPI_Aint extent() const { return extent_; }
  void commit() { MPI_Type_commit(&type_); }
  /// Frees the MPI datatype; map and text stay.
  void free();

 private:
  void swap(BuiltType& other) noexcept;

  MPI_Datatype type_ = MPI_DATATYPE_NULL;
  TypeMap map_;
  std::string text_;
  MPI_Aint lb_ = 0;
  MPI_Aint extent_ = 0;
  bool predefined_ = true;
};

/// A basic datatype of `size` bytes under its name.
BuiltType basic(MPI_Datatype type, int size, const char* name);
/// A predefined pair type: a value of `size` bytes, and an int at `int_at`.
BuiltType pair(MPI_Datatype type, int size, int int_at, const char* name);
BuiltType dup(const BuiltType& old);
BuiltType resized(const BuiltType& old, MPI_Aint lb, MPI_Aint extent);
BuiltType contiguous(int count, const BuiltType& old);
BuiltType vector(int count, int length, int stride, const BuiltType& old);
BuiltType hvector(int count, int length, MPI_Aint stride, const BuiltType& old);
BuiltType indexed(std::span<const int> lengths, std::span<const int> at, const BuiltType& old);
BuiltType hindexed(std::span<const int> lengths, std::span<const MPI_Aint> at,
                   const BuiltType& old);
BuiltType indexed_block(int length, std::span<const int> at, const BuiltType& old);
BuiltType hindexed_block(int length, std::span<const MPI_Aint> at, const BuiltType& old);
BuiltType structure(std::span<const int> lengths, std::span<const MPI_Aint> at,
                    std::span<const BuiltType* const> members);
BuiltType subarray(std::span<const int> sizes, std::span<const int> subsizes,
                   std::span<const int> starts, int order, const BuiltType& old);

/// One dimension of a distributed array.
struct Distribution {
  int global;      ///< elements of the array in this dimension
  int kind;        ///< MPI_DISTRIBUTE_BLOCK, _CYCLIC or _NONE
  int argument;    ///< block length, or MPI_DISTRIBUTE_DFLT_DARG
  int processes;   ///< processes in this dimension
  int coordinate;  ///< which of them is meant

  /// Whether this process holds element `index`.
  bool holds(int index) const;
};
BuiltType darray(std::span<const Distribution> dimensions, int order, const BuiltType& old);

}  // namespace weft::oracle
