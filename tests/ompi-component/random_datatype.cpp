#include "tests/ompi-component/random_datatype.hpp"

#include <algorithm>
#include <array>
#include <functional>
#include <numeric>

namespace weft::test {
namespace {

// Deeper and wider than this a type says nothing new, but takes memory and time.
constexpr MPI_Count largest_extent = 1 << 20;
constexpr MPI_Count largest_size = 1 << 18;

MPI_Datatype random_predefined(Random& random, std::string& text) {
  static const std::array<std::pair<MPI_Datatype, const char*>, 12> types{{
      {MPI_CHAR, "char"},
      {MPI_SHORT, "short"},
      {MPI_INT, "int"},
      {MPI_FLOAT, "float"},
      {MPI_DOUBLE, "double"},
      {MPI_LONG_DOUBLE, "long_double"},
      {MPI_C_DOUBLE_COMPLEX, "double_complex"},
      {MPI_BYTE, "byte"},
      {MPI_SHORT_INT, "short_int"},
      {MPI_DOUBLE_INT, "double_int"},
      {MPI_LONG_DOUBLE_INT, "long_double_int"},
      {MPI_2INT, "2int"},
  }};
  const auto& [type, name] = types[random.in(0, types.size() - 1)];
  text = name;
  return type;
}

bool is_predefined(MPI_Datatype type) {
  int integers = 0, addresses = 0, types = 0, combiner = 0;
  MPI_Type_get_envelope(type, &integers, &addresses, &types, &combiner);
  return combiner == MPI_COMBINER_NAMED;
}

MPI_Aint extent_of(MPI_Datatype type) {
  MPI_Aint lower = 0, extent = 0;
  MPI_Type_get_extent(type, &lower, &extent);
  return extent;
}

// Open MPI refuses a type without bytes here, and divides by the extent.
bool suits_darray(MPI_Datatype type) {
  int size = 0;
  MPI_Type_size(type, &size);
  return size > 0 && extent_of(type) > 0;
}

bool is_modest(MPI_Datatype type) {
  MPI_Count size = 0, lower = 0, extent = 0, true_lower = 0, true_extent = 0;
  MPI_Type_size_x(type, &size);
  MPI_Type_get_extent_x(type, &lower, &extent);
  MPI_Type_get_true_extent_x(type, &true_lower, &true_extent);
  return size <= largest_size && std::abs(extent) <= largest_extent &&
         std::abs(lower) <= largest_extent && std::abs(true_lower) <= largest_extent &&
         true_extent <= largest_extent;
}

template <typename T>
std::vector<T> random_numbers(Random& random, int count, int low, int high) {
  std::vector<T> numbers(count);
  std::generate(numbers.begin(), numbers.end(),
                [&] { return static_cast<T>(random.in(low, high)); });
  return numbers;
}

template <typename T>
std::string list(const std::vector<T>& numbers) {
  std::string text = "{";
  for (const T& number : numbers) text += std::to_string(number) + ",";
  if (!numbers.empty()) text.pop_back();
  return text + "}";
}

std::string call(const char* name, std::initializer_list<std::string> arguments) {
  std::string text = name;
  text += "(";
  for (const std::string& argument : arguments) text += argument + ", ";
  text.replace(text.size() - 2, 2, ")");
  return text;
}

using std::to_string;

struct Made {
  MPI_Datatype type;
  std::string text;
};

Made vector_of(Random& random, const Datatype& old) {
  const int count = random.in(0, 7), block = random.in(0, 4), stride = random.in(-6, 9);
  Made made{};
  MPI_Type_vector(count, block, stride, old.get(), &made.type);
  made.text = call("vector", {to_string(count), to_string(block), to_string(stride), old.text()});
  return made;
}

Made hvector_of(Random& random, const Datatype& old) {
  const int count = random.in(0, 7), block = random.in(0, 4);
  const MPI_Aint stride = random.in(-200, 300);
  Made made{};
  MPI_Type_create_hvector(count, block, stride, old.get(), &made.type);
  made.text = call("hvector", {to_string(count), to_string(block), to_string(stride), old.text()});
  return made;
}

Made contiguous_of(Random& random, const Datatype& old) {
  const int count = random.in(0, 6);
  Made made{};
  MPI_Type_contiguous(count, old.get(), &made.type);
  made.text = call("contiguous", {to_string(count), old.text()});
  return made;
}

Made indexed_of(Random& random, const Datatype& old) {
  const int count = random.in(0, 8);
  const auto blocks = random_numbers<int>(random, count, 0, 4);
  Made made{};
  if (random.chance(0.5)) {
    const auto offsets = random_numbers<int>(random, count, -12, 30);
    MPI_Type_indexed(count, blocks.data(), offsets.data(), old.get(), &made.type);
    made.text = call("indexed", {list(blocks), list(offsets), old.text()});
  } else {
    const auto offsets = random_numbers<MPI_Aint>(random, count, -100, 600);
    MPI_Type_create_hindexed(count, blocks.data(), offsets.data(), old.get(), &made.type);
    made.text = call("hindexed", {list(blocks), list(offsets), old.text()});
  }
  return made;
}

Made indexed_block_of(Random& random, const Datatype& old) {
  const int count = random.in(0, 8), block = random.in(0, 3);
  Made made{};
  if (random.chance(0.5)) {
    const auto offsets = random_numbers<int>(random, count, -12, 30);
    MPI_Type_create_indexed_block(count, block, offsets.data(), old.get(), &made.type);
    made.text = call("indexed_block", {to_string(block), list(offsets), old.text()});
  } else {
    const auto offsets = random_numbers<MPI_Aint>(random, count, -100, 600);
    MPI_Type_create_hindexed_block(count, block, offsets.data(), old.get(), &made.type);
    made.text = call("hindexed_block", {to_string(block), list(offsets), old.text()});
  }
  return made;
}

Made resized_of(Random& random, const Datatype& old) {
  const MPI_Aint lower = random.in(-64, 64), extent = random.in(-100, 200);
  Made made{};
  MPI_Type_create_resized(old.get(), lower, extent, &made.type);
  made.text = call("resized", {to_string(lower), to_string(extent), old.text()});
  return made;
}

Made dup_of(Random& /*random*/, const Datatype& old) {
  Made made{};
  MPI_Type_dup(old.get(), &made.type);
  made.text = call("dup", {old.text()});
  return made;
}

Made subarray_of(Random& random, const Datatype& old) {
  const int dimensions = random.in(1, 4);
  const auto sizes = random_numbers<int>(random, dimensions, 1, 6);
  std::vector<int> parts, starts;
  for (const int size : sizes) {
    parts.push_back(random.in(1, size));
    starts.push_back(random.in(0, size - parts.back()));
  }
  const int order = random.chance(0.5) ? MPI_ORDER_C : MPI_ORDER_FORTRAN;
  Made made{};
  MPI_Type_create_subarray(dimensions, sizes.data(), parts.data(), starts.data(), order, old.get(),
                           &made.type);
  made.text = call("subarray", {list(sizes), list(parts), list(starts),
                                order == MPI_ORDER_C ? "C" : "Fortran", old.text()});
  return made;
}

Made darray_of(Random& random, const Datatype& old) {
  const int dimensions = random.in(1, 3);
  std::vector<int> sizes, distributions, arguments, processes;
  int job = 1;
  for (int d = 0; d < dimensions; ++d) {
    sizes.push_back(random.in(1, 9));
    processes.push_back(random.in(1, 3));
    arguments.push_back(MPI_DISTRIBUTE_DFLT_DARG);
    distributions.push_back(random.chance(0.5) ? MPI_DISTRIBUTE_CYCLIC : MPI_DISTRIBUTE_BLOCK);
    if (distributions.back() == MPI_DISTRIBUTE_CYCLIC && random.chance(0.5))
      arguments.back() = random.in(1, 3);
    if (random.chance(0.2)) {
      distributions.back() = MPI_DISTRIBUTE_NONE;
      processes.back() = 1;
      arguments.back() = MPI_DISTRIBUTE_DFLT_DARG;
    }
    job *= processes.back();
  }
  const int rank = random.in(0, job - 1);
  const int order = random.chance(0.5) ? MPI_ORDER_C : MPI_ORDER_FORTRAN;
  Made made{};
  MPI_Type_create_darray(job, rank, dimensions, sizes.data(), distributions.data(),
                         arguments.data(), processes.data(), order, old.get(), &made.type);
  made.text = call("darray", {to_string(rank), list(sizes), list(distributions), list(arguments),
                              list(processes), order == MPI_ORDER_C ? "C" : "Fortran", old.text()});
  return made;
}

Made struct_of(Random& random, const Datatype& old, int depth,
               const std::function<Datatype(int)>& another) {
  const int count = random.in(0, 5);
  const auto blocks = random_numbers<int>(random, count, 0, 3);
  const auto offsets = random_numbers<MPI_Aint>(random, count, -300, 900);
  std::vector<Datatype> members;
  std::vector<MPI_Datatype> types;
  std::string texts;
  for (int i = 0; i < count; ++i) {
    if (random.chance(0.5)) {
      types.push_back(old.get());
      texts += " " + old.text();
    } else {
      members.push_back(another(depth));
      types.push_back(members.back().get());
      texts += " " + members.back().text();
    }
  }
  Made made{};
  MPI_Type_create_struct(count, blocks.data(), offsets.data(), types.data(), &made.type);
  made.text = call("struct", {list(blocks), list(offsets), "{" + texts + "}"});
  return made;
}

Made constructor(Random& random, const Datatype& old, int depth) {
  switch (random.in(0, 9)) {
    case 0:
      return vector_of(random, old);
    case 1:
      return hvector_of(random, old);
    case 2:
      return contiguous_of(random, old);
    case 3:
      return indexed_of(random, old);
    case 4:
      return indexed_block_of(random, old);
    case 5:
      return resized_of(random, old);
    case 6:
      return dup_of(random, old);
    case 7:
      return subarray_of(random, old);
    case 8:
      return suits_darray(old.get()) ? darray_of(random, old) : vector_of(random, old);
    default:
      return struct_of(random, old, depth,
                       [&random](int deeper) { return random_datatype(random, deeper); });
  }
}

}  // namespace

Datatype::~Datatype() {
  if (type_ != MPI_DATATYPE_NULL && !is_predefined(type_)) MPI_Type_free(&type_);
}

Datatype random_datatype(Random& random, int depth) {
  Datatype type;
  type.type_ = random_predefined(random, type.text_);
  const int constructors = static_cast<int>(random.in(0, depth));
  for (int i = 0; i < constructors; ++i) {
    Made made = constructor(random, type, depth - 1 - i);
    Datatype wrapped(made.type);
    if (!is_modest(made.type)) continue;
    wrapped.text_ = std::move(made.text);
    type = std::move(wrapped);
  }
  if (!is_predefined(type.type_)) MPI_Type_commit(&type.type_);
  return type;
}

}  // namespace weft::test
