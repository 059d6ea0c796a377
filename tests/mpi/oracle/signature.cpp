#include "tests/mpi/oracle/signature.hpp"

#include <algorithm>
#include <array>
#include <complex>
#include <cstddef>

namespace weft::oracle {
namespace {

struct Basic {
  MPI_Datatype type;
  int size;
  const char* name;
};

// Not constexpr: in Open MPI a predefined datatype is the address of an object of the library.
const std::array basics{
    Basic{MPI_CHAR, 1, "char"},
    Basic{MPI_SIGNED_CHAR, 1, "schar"},
    Basic{MPI_UNSIGNED_CHAR, 1, "uchar"},
    Basic{MPI_BYTE, 1, "byte"},
    Basic{MPI_SHORT, sizeof(short), "short"},
    Basic{MPI_UNSIGNED_SHORT, sizeof(short), "ushort"},
    Basic{MPI_INT, sizeof(int), "int"},
    Basic{MPI_UNSIGNED, sizeof(int), "uint"},
    Basic{MPI_FLOAT, sizeof(float), "float"},
    Basic{MPI_LONG, sizeof(long), "long"},
    Basic{MPI_UNSIGNED_LONG_LONG, sizeof(long long), "ullong"},
    Basic{MPI_INT64_T, 8, "int64"},
    Basic{MPI_DOUBLE, sizeof(double), "double"},
    Basic{MPI_AINT, sizeof(MPI_Aint), "aint"},
    Basic{MPI_C_FLOAT_COMPLEX, sizeof(std::complex<float>), "cfloat"},
    Basic{MPI_C_DOUBLE_COMPLEX, sizeof(std::complex<double>), "cdouble"},
    Basic{MPI_LONG_DOUBLE, sizeof(long double), "ldouble"},
};

template <class Value>
struct Pair {
  Value value;
  int index;
};
struct KnownPair {
  MPI_Datatype first;
  MPI_Datatype type;
  int size;
  int int_at;
  const char* name;
};
const std::array pairs{
    KnownPair{MPI_SHORT, MPI_SHORT_INT, sizeof(short), offsetof(Pair<short>, index), "short_int"},
    KnownPair{MPI_INT, MPI_2INT, sizeof(int), offsetof(Pair<int>, index), "2int"},
    KnownPair{MPI_FLOAT, MPI_FLOAT_INT, sizeof(float), offsetof(Pair<float>, index), "float_int"},
    KnownPair{MPI_LONG, MPI_LONG_INT, sizeof(long), offsetof(Pair<long>, index), "long_int"},
    KnownPair{MPI_DOUBLE, MPI_DOUBLE_INT, sizeof(double), offsetof(Pair<double>, index),
              "double_int"},
    KnownPair{MPI_LONG_DOUBLE, MPI_LONG_DOUBLE_INT, sizeof(long double),
              offsetof(Pair<long double>, index), "ldouble_int"},
};

int index_of(MPI_Datatype type) {
  for (std::size_t i = 0; i < basics.size(); ++i) {
    if (basics[i].type == type) return static_cast<int>(i);
  }
  return -1;
}

const KnownPair* find_pair(const Unit& unit) {
  if (unit.size() == 1 && unit[0] == Item{index_of(MPI_INT), 2}) return &pairs[1];
  if (unit.size() != 2 || unit[0].count != 1 || unit[1] != Item{index_of(MPI_INT), 1}) {
    return nullptr;
  }
  for (const KnownPair& pair : pairs) {
    if (basics[unit[0].basic].type == pair.first) return &pair;
  }
  return nullptr;
}

}  // namespace

int basic_types() {
  return static_cast<int>(basics.size());
}

BuiltType basic_type(int index) {
  return basic(basics[index].type, basics[index].size, basics[index].name);
}

int basic_size(int index) {
  return basics[index].size;
}

std::int64_t unit_size(const Unit& unit) {
  std::int64_t size = 0;
  for (const Item& item : unit)
    size += static_cast<std::int64_t>(item.count) * basic_size(item.basic);
  return size;
}

std::int64_t Signature::size() const {
  return units * unit_size(unit);
}

bool is_pair(const Unit& unit) {
  return find_pair(unit) != nullptr;
}

BuiltType pair_type(const Unit& unit) {
  const KnownPair& known = *find_pair(unit);
  return pair(known.type, known.size, known.int_at, known.name);
}

Signature random_signature(Rng& rng, std::int64_t bytes) {
  Unit unit;
  if (rng.one_in(6)) {
    const KnownPair& known = pairs[rng.between(0, std::ssize(pairs) - 1)];
    int first = index_of(known.first);
    unit = first == index_of(MPI_INT) ? Unit{{first, 2}} : Unit{{first, 1}, {index_of(MPI_INT), 1}};
  } else {
    const int items = rng.one_in(2) ? 1 : static_cast<int>(rng.between(2, 5));
    for (int i = 0; i < items; ++i) {
      unit.push_back({static_cast<int>(rng.between(0, basic_types() - 1)),
                      rng.one_in(2) ? 1 : static_cast<int>(rng.log_scaled(32))});
    }
    // Millions of single bytes take long to check and show nothing that thousands do not.
    constexpr std::int64_t large = 256 << 10;
    if (bytes > large && unit_size(unit) < 8) unit[0].count = 16;
  }
  std::int64_t units = bytes / unit_size(unit);
  if (bytes > 0 && units == 0) units = 1;
  // Numbers with many divisors give the generator more to choose from.
  constexpr std::array factors{1, 2, 4, 6, 12, 16, 24, 30, 36, 60, 64, 120};
  std::int64_t factor = factors[rng.between(0, std::ssize(factors) - 1)];
  if (units > 2 * factor) units -= units % factor;
  return {std::move(unit), units};
}

}  // namespace weft::oracle
