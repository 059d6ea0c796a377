#include "tests/mpi/oracle/built_type.hpp"

#include <algorithm>
#include <vector>

namespace weft::oracle {
namespace {

template <class Number>
std::string list(std::span<const Number> numbers) {
  constexpr std::size_t shown = 24;
  std::string text = "[";
  for (std::size_t i = 0; i < std::min(numbers.size(), shown); ++i) {
    if (i) text += ' ';
    text += std::to_string(numbers[i]);
  }
  if (numbers.size() > shown) text += " ... " + std::to_string(numbers.size()) + " in all";
  return text + "]";
}

template <class... Numbers>
std::string call(const char* name, const std::string& old, Numbers... numbers) {
  std::string text = std::string(name) + "(";
  ((text += std::to_string(numbers) + ","), ...);
  return text + old + ")";
}

/// `index` of an array's element with the last dimension fastest (C) or the first (Fortran).
std::int64_t linear(std::span<const int> index, std::span<const int> sizes, int order) {
  std::int64_t at = 0;
  const int n = static_cast<int>(sizes.size());
  for (int i = 0; i < n; ++i) {
    int d = order == MPI_ORDER_C ? i : n - 1 - i;
    at = at * sizes[d] + index[d];
  }
  return at;
}

/// Calls `visit(index)` for each index from `first` to before `last`, in storage order.
template <class Visit>
void for_each_index(std::span<const int> first, std::span<const int> last, int order, Visit visit) {
  const int n = static_cast<int>(first.size());
  for (int d = 0; d < n; ++d) {
    if (first[d] >= last[d]) return;
  }
  std::vector<int> index(first.begin(), first.end());
  for (;;) {
    visit(std::span<const int>(index));
    int k = 0;
    for (; k < n; ++k) {
      int d = order == MPI_ORDER_C ? n - 1 - k : k;
      if (++index[d] < last[d]) break;
      index[d] = first[d];
    }
    if (k == n) return;
  }
}

}  // namespace

BuiltType::BuiltType(MPI_Datatype type, TypeMap map, std::string text, bool predefined)
    : type_(type), map_(std::move(map)), text_(std::move(text)), predefined_(predefined) {
  MPI_Type_get_extent(type_, &lb_, &extent_);
}

void BuiltType::free() {
  if (!predefined_ && type_ != MPI_DATATYPE_NULL) MPI_Type_free(&type_);
  type_ = MPI_DATATYPE_NULL;
}

void BuiltType::swap(BuiltType& other) noexcept {
  std::swap(type_, other.type_);
  std::swap(map_, other.map_);
  std::swap(text_, other.text_);
  std::swap(lb_, other.lb_);
  std::swap(extent_, other.extent_);
  std::swap(predefined_, other.predefined_);
}

BuiltType basic(MPI_Datatype type, int size, const char* name) {
  TypeMap map;
  map.add(0, 1, size);
  return {type, std::move(map), name, true};
}

BuiltType pair(MPI_Datatype type, int size, int int_at, const char* name) {
  TypeMap map;
  map.add(0, 1, size);
  map.add(int_at, 1, sizeof(int));
  return {type, std::move(map), name, true};
}

BuiltType dup(const BuiltType& old) {
  MPI_Datatype type;
  MPI_Type_dup(old.type(), &type);
  return {type, old.map(), call("dup", old.text())};
}

BuiltType resized(const BuiltType& old, MPI_Aint lb, MPI_Aint extent) {
  MPI_Datatype type;
  MPI_Type_create_resized(old.type(), lb, extent, &type);
  return {type, old.map(), call("resized", old.text(), lb, extent)};
}

BuiltType contiguous(int count, const BuiltType& old) {
  MPI_Datatype type;
  MPI_Type_contiguous(count, old.type(), &type);
  TypeMap map;
  map.repeat(old.map(), 0, count, old.extent());
  return {type, std::move(map), call("contiguous", old.text(), count)};
}

BuiltType vector(int count, int length, int stride, const BuiltType& old) {
  MPI_Datatype type;
  MPI_Type_vector(count, length, stride, old.type(), &type);
  TypeMap map;
  for (int i = 0; i < count; ++i) {
    map.repeat(old.map(), i * static_cast<MPI_Aint>(stride) * old.extent(), length, old.extent());
  }
  return {type, std::move(map), call("vector", old.text(), count, length, stride)};
}

BuiltType hvector(int count, int length, MPI_Aint stride, const BuiltType& old) {
  MPI_Datatype type;
  MPI_Type_create_hvector(count, length, stride, old.type(), &type);
  TypeMap map;
  for (int i = 0; i < count; ++i) map.repeat(old.map(), i * stride, length, old.extent());
  return {type, std::move(map), call("hvector", old.text(), count, length, stride)};
}

BuiltType indexed(std::span<const int> lengths, std::span<const int> at, const BuiltType& old) {
  MPI_Datatype type;
  MPI_Type_indexed(static_cast<int>(at.size()), lengths.data(), at.data(), old.type(), &type);
  TypeMap map;
  for (std::size_t i = 0; i < at.size(); ++i) {
    map.repeat(old.map(), at[i] * old.extent(), lengths[i], old.extent());
  }
  return {type, std::move(map),
          "indexed(" + list(lengths) + "," + list(at) + "," + old.text() + ")"};
}

BuiltType hindexed(std::span<const int> lengths, std::span<const MPI_Aint> at,
                   const BuiltType& old) {
  MPI_Datatype type;
  MPI_Type_create_hindexed(static_cast<int>(at.size()), lengths.data(), at.data(), old.type(),
                           &type);
  TypeMap map;
  for (std::size_t i = 0; i < at.size(); ++i) {
    map.repeat(old.map(), at[i], lengths[i], old.extent());
  }
  return {type, std::move(map),
          "hindexed(" + list(lengths) + "," + list(at) + "," + old.text() + ")"};
}

BuiltType indexed_block(int length, std::span<const int> at, const BuiltType& old) {
  MPI_Datatype type;
  MPI_Type_create_indexed_block(static_cast<int>(at.size()), length, at.data(), old.type(), &type);
  TypeMap map;
  for (int place : at) map.repeat(old.map(), place * old.extent(), length, old.extent());
  return {type, std::move(map),
          "indexed_block(" + std::to_string(length) + "," + list(at) + "," + old.text() + ")"};
}

BuiltType hindexed_block(int length, std::span<const MPI_Aint> at, const BuiltType& old) {
  MPI_Datatype type;
  MPI_Type_create_hindexed_block(static_cast<int>(at.size()), length, at.data(), old.type(), &type);
  TypeMap map;
  for (MPI_Aint place : at) map.repeat(old.map(), place, length, old.extent());
  return {type, std::move(map),
          "hindexed_block(" + std::to_string(length) + "," + list(at) + "," + old.text() + ")"};
}

BuiltType structure(std::span<const int> lengths, std::span<const MPI_Aint> at,
                    std::span<const BuiltType* const> members) {
  std::vector<MPI_Datatype> types;
  TypeMap map;
  std::string text = "struct(" + list(lengths) + "," + list(at);
  for (std::size_t i = 0; i < at.size(); ++i) {
    const BuiltType& member = *members[i];
    types.push_back(member.type());
    map.repeat(member.map(), at[i], lengths[i], member.extent());
    text += "," + member.text();
  }
  MPI_Datatype type;
  MPI_Type_create_struct(static_cast<int>(at.size()), lengths.data(), at.data(), types.data(),
                         &type);
  return {type, std::move(map), text + ")"};
}

BuiltType subarray(std::span<const int> sizes, std::span<const int> subsizes,
                   std::span<const int> starts, int order, const BuiltType& old) {
  MPI_Datatype type;
  const int n = static_cast<int>(sizes.size());
  MPI_Type_create_subarray(n, sizes.data(), subsizes.data(), starts.data(), order, old.type(),
                           &type);
  std::vector<int> last(n);
  for (int d = 0; d < n; ++d) last[d] = starts[d] + subsizes[d];
  TypeMap map;
  for_each_index(starts, last, order, [&](std::span<const int> index) {
    map.add(old.map(), linear(index, sizes, order) * old.extent());
  });
  return {type, std::move(map),
          "subarray(" + list(sizes) + "," + list(subsizes) + "," + list(starts) +
              (order == MPI_ORDER_C ? ",C," : ",Fortran,") + old.text() + ")"};
}

bool Distribution::holds(int index) const {
  if (kind == MPI_DISTRIBUTE_NONE) return true;
  const bool cyclic = kind == MPI_DISTRIBUTE_CYCLIC;
  int block = argument;
  if (argument == MPI_DISTRIBUTE_DFLT_DARG) {
    block = cyclic ? 1 : (global + processes - 1) / processes;
  }
  int owner = index / block;
  return (cyclic ? owner % processes : owner) == coordinate;
}

BuiltType darray(std::span<const Distribution> dimensions, int order, const BuiltType& old) {
  const int n = static_cast<int>(dimensions.size());
  std::vector<int> global(n), kind(n), argument(n), processes(n), zero(n, 0);
  int size = 1, rank = 0;
  std::string text = "darray(";
  for (int d = 0; d < n; ++d) {
    const Distribution& dim = dimensions[d];
    global[d] = dim.global;
    kind[d] = dim.kind;
    argument[d] = dim.argument;
    processes[d] = dim.processes;
    size *= dim.processes;
    // Process grids are in row-major order whatever the order of the array.
    rank = rank * dim.processes + dim.coordinate;
    std::string word = dim.kind == MPI_DISTRIBUTE_BLOCK    ? "block "
                       : dim.kind == MPI_DISTRIBUTE_CYCLIC ? "cyclic "
                                                           : "none ";
    std::string length =
        dim.argument == MPI_DISTRIBUTE_DFLT_DARG ? "default" : std::to_string(dim.argument);
    text += std::to_string(dim.global) + " " + word + length + " process " +
            std::to_string(dim.coordinate) + " of " + std::to_string(dim.processes) + ",";
  }
  MPI_Datatype type;
  MPI_Type_create_darray(size, rank, n, global.data(), kind.data(), argument.data(),
                         processes.data(), order, old.type(), &type);
  TypeMap map;
  for_each_index(zero, global, order, [&](std::span<const int> index) {
    for (int d = 0; d < n; ++d) {
      if (!dimensions[d].holds(index[d])) return;
    }
    map.add(old.map(), linear(index, global, order) * old.extent());
  });
  return {type, std::move(map),
          text + (order == MPI_ORDER_C ? "C," : "Fortran,") + old.text() + ")"};
}

}  // namespace weft::oracle
