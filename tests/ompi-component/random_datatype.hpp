// Random committed datatypes from every constructor of MPI's.
#pragma once

#include <mpi.h>

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "tests/seed.hpp"

namespace weft::test {

/// Owns a datatype (predefined ones are left alone).
class Datatype {
 public:
  Datatype() = default;
  explicit Datatype(MPI_Datatype type) : type_(type) {}
  Datatype(Datatype&& other) noexcept
      : type_(std::exchange(other.type_, MPI_DATATYPE_NULL)), text_(std::move(other.text_)) {}
  Datatype& operator=(Datatype&& other) noexcept {
    std::swap(type_, other.type_);
    std::swap(text_, other.text_);
    return *this;
  }
  ~Datatype();

  [[nodiscard]] MPI_Datatype get() const { return type_; }
  /// How it was built.
  [[nodiscard]] const std::string& text() const { return text_; }

  friend Datatype random_datatype(Random& random, int depth);

 private:
  MPI_Datatype type_ = MPI_DATATYPE_NULL;
  std::string text_;
};

/// Of up to `depth` constructors around a predefined type. Its true extent stays below a few MiB
/// and its displacements may be negative.
Datatype random_datatype(Random& random, int depth);

}  // namespace weft::test
