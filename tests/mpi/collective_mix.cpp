// Random mixes of collectives, each compared with what the same call gives on a communicator that
// coll/weft was told to leave alone. Plain MPI: with stock Open MPI it compares a thing with
// itself.
//
//   collective_mix --rounds N --seed S [--churn N] [--threads]
//
// --churn N: that many communicators are made, used and freed in between. --threads: four threads,
// each with communicators of its own. Prints OK on rank 0.
#include <mpi.h>

#include <algorithm>
#include <cfloat>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <random>
#include <string>
#include <thread>
#include <vector>

namespace {

int world_rank = 0;

[[noreturn]] void wrong(const char* what, long round, const char* detail) {
  std::fprintf(stderr, "WRONG: rank %d, round %ld: %s %s\n", world_rank, round, what, detail);
  MPI_Abort(MPI_COMM_WORLD, 1);
  std::abort();
}

/// A duplicate that coll/weft stays out of.
MPI_Comm plain_twin(MPI_Comm comm) {
  MPI_Info info;
  MPI_Info_create(&info);
  MPI_Info_set(info, "ompi_comm_coll_preference", "^weft");
  MPI_Comm twin;
  MPI_Comm_dup_with_info(comm, info, &twin);
  MPI_Info_free(&info);
  return twin;
}

enum class Kind { integer, floating, complex_number, logical, byte, pair };
struct Type {
  MPI_Datatype type;
  const char* name;
  Kind kind;
};

const std::vector<Type>& types() {
#define T(type, kind) \
  { type, #type, Kind::kind }
  static const std::vector<Type> all = {T(MPI_SIGNED_CHAR, integer),
                                        T(MPI_UNSIGNED_CHAR, integer),
                                        T(MPI_SHORT, integer),
                                        T(MPI_UNSIGNED_SHORT, integer),
                                        T(MPI_INT, integer),
                                        T(MPI_UNSIGNED, integer),
                                        T(MPI_LONG, integer),
                                        T(MPI_UNSIGNED_LONG, integer),
                                        T(MPI_LONG_LONG, integer),
                                        T(MPI_UNSIGNED_LONG_LONG, integer),
                                        T(MPI_INT8_T, integer),
                                        T(MPI_INT16_T, integer),
                                        T(MPI_INT32_T, integer),
                                        T(MPI_INT64_T, integer),
                                        T(MPI_UINT8_T, integer),
                                        T(MPI_UINT16_T, integer),
                                        T(MPI_UINT32_T, integer),
                                        T(MPI_UINT64_T, integer),
                                        T(MPI_AINT, integer),
                                        T(MPI_OFFSET, integer),
                                        T(MPI_COUNT, integer),
                                        T(MPI_FLOAT, floating),
                                        T(MPI_DOUBLE, floating),
                                        T(MPI_LONG_DOUBLE, floating),
                                        T(MPI_C_FLOAT_COMPLEX, complex_number),
                                        T(MPI_C_DOUBLE_COMPLEX, complex_number),
                                        T(MPI_C_LONG_DOUBLE_COMPLEX, complex_number),
                                        T(MPI_C_BOOL, logical),
                                        T(MPI_BYTE, byte),
                                        T(MPI_2INT, pair),
                                        T(MPI_FLOAT_INT, pair),
                                        T(MPI_DOUBLE_INT, pair),
                                        T(MPI_LONG_INT, pair),
                                        T(MPI_SHORT_INT, pair),
                                        T(MPI_LONG_DOUBLE_INT, pair)};
#undef T
  return all;
}

/// Operations that the standard allows on a kind of type.
std::vector<MPI_Op> operations(Kind kind) {
  switch (kind) {
    case Kind::integer:
      return {MPI_SUM, MPI_PROD, MPI_MAX,  MPI_MIN, MPI_LAND,
              MPI_LOR, MPI_LXOR, MPI_BAND, MPI_BOR, MPI_BXOR};
    case Kind::floating:
      return {MPI_SUM, MPI_PROD, MPI_MAX, MPI_MIN};
    case Kind::complex_number:
      return {MPI_SUM, MPI_PROD};
    case Kind::logical:
      return {MPI_LAND, MPI_LOR, MPI_LXOR};
    case Kind::byte:
      return {MPI_BAND, MPI_BOR, MPI_BXOR};
    case Kind::pair:
      return {MPI_MAXLOC, MPI_MINLOC};
  }
  return {};
}

// 2 x 2 matrices of 32-bit unsigned numbers: their product is associative and not commutative.
void multiply(void* in, void* inout, int* count, MPI_Datatype*) {
  auto* a = static_cast<unsigned(*)[4]>(in);
  auto* b = static_cast<unsigned(*)[4]>(inout);
  for (int i = 0; i < *count; ++i) {
    const unsigned r[4] = {
        a[i][0] * b[i][0] + a[i][1] * b[i][2], a[i][0] * b[i][1] + a[i][1] * b[i][3],
        a[i][2] * b[i][0] + a[i][3] * b[i][2], a[i][2] * b[i][1] + a[i][3] * b[i][3]};
    std::memcpy(b[i], r, sizeof r);
  }
}

class Mix {
 public:
  Mix(MPI_Comm comm, unsigned long seed) : shared_(seed), own_(seed) {
    MPI_Comm_dup(comm, &comm_);
    twin_ = plain_twin(comm);
    MPI_Comm_rank(comm, &rank_);
    MPI_Comm_size(comm, &size_);
    own_.seed(seed * 31 + static_cast<unsigned long>(rank_));
    MPI_Op_create(multiply, 0, &product_);
    MPI_Type_contiguous(4, MPI_UNSIGNED, &matrix_);
    MPI_Type_commit(&matrix_);
  }
  ~Mix() {
    MPI_Type_free(&matrix_);
    MPI_Op_free(&product_);
    MPI_Comm_free(&twin_);
    MPI_Comm_free(&comm_);
  }
  Mix(const Mix&) = delete;
  Mix& operator=(const Mix&) = delete;

  void run(long rounds) {
    for (round_ = 0; round_ < rounds; ++round_) {
      switch (pick(8)) {
        case 0:
          barrier();
          break;
        case 1:
          bcast();
          break;
        case 2:
        case 3:
          reduce(true);
          break;
        case 4:
          reduce(false);
          break;
        case 5:
          allgather();
          break;
        case 6:
          user_operation();
          break;
        default:
          fractions();
      }
    }
  }
  /// Duplicates that are used once and freed, some of them late.
  void churn(long number) {
    std::vector<MPI_Comm> kept;
    for (long i = 0; i < number; ++i) {
      MPI_Comm dup;
      MPI_Comm_dup(comm_, &dup);
      int mine = rank_ + static_cast<int>(i);
      int sum = 0;
      MPI_Allreduce(&mine, &sum, 1, MPI_INT, MPI_SUM, dup);
      if (sum != size_ * (size_ - 1) / 2 + size_ * static_cast<int>(i))
        wrong("MPI_Allreduce", i, "on a duplicate");
      if (i % 7 == 3) {
        kept.push_back(dup);
      } else {
        MPI_Comm_free(&dup);
      }
      if (kept.size() == 12) {
        for (MPI_Comm& old : kept) MPI_Comm_free(&old);
        kept.clear();
      }
    }
    for (MPI_Comm& old : kept) MPI_Comm_free(&old);
  }

 private:
  /// The same on all ranks.
  int pick(int below) { return static_cast<int>(shared_() % static_cast<unsigned long>(below)); }
  int some_count() {
    static const int limits[] = {2, 8, 60, 300, 3000};
    return pick(limits[pick(5)]);
  }
  using Bytes = std::vector<unsigned char>;

  /// Small whole numbers, so that sums and products are exact in any order.
  void fill(Bytes& data, const Type& type, int count, MPI_Op op = MPI_OP_NULL) {
    MPI_Aint lower;
    MPI_Aint extent;
    MPI_Type_get_extent(type.type, &lower, &extent);
    data.assign(static_cast<std::size_t>(extent) * static_cast<std::size_t>(count), 0);
    const auto value = [&] { return static_cast<int>(own_() % 3); };
    // The sign of a zero depends on the order in which complex numbers are multiplied.
    const auto imaginary = [&] { return op == MPI_PROD ? 0 : value(); };
    for (int i = 0; i < count; ++i) {
      unsigned char* at = data.data() + extent * i;
      const auto put = [&](auto number, int index = 0) {
        std::memcpy(at + static_cast<std::size_t>(index) * sizeof number, &number, sizeof number);
      };
      const MPI_Datatype t = type.type;
      if (t == MPI_FLOAT || t == MPI_FLOAT_INT) {
        put(static_cast<float>(value()));
      } else if (t == MPI_DOUBLE || t == MPI_DOUBLE_INT) {
        put(static_cast<double>(value()));
      } else if (t == MPI_LONG_DOUBLE || t == MPI_LONG_DOUBLE_INT) {
        put(static_cast<long double>(value()));
      } else if (t == MPI_C_FLOAT_COMPLEX) {
        put(static_cast<float>(value()));
        put(static_cast<float>(imaginary()), 1);
      } else if (t == MPI_C_DOUBLE_COMPLEX) {
        put(static_cast<double>(value()));
        put(static_cast<double>(imaginary()), 1);
      } else if (t == MPI_C_LONG_DOUBLE_COMPLEX) {
        put(static_cast<long double>(value()));
        put(static_cast<long double>(imaginary()), 1);
      } else if (t == MPI_C_BOOL) {
        put(value() != 0);
      } else if (t == MPI_LONG_INT) {
        put(static_cast<long>(value()));
      } else if (t == MPI_SHORT_INT) {
        put(static_cast<short>(value()));
      } else if (type.kind == Kind::pair) {
        put(value());
      } else if (op == MPI_SUM || op == MPI_PROD) {
        // Nothing may overflow: Open MPI's sums of narrow types saturate in parts.
        at[0] = static_cast<unsigned char>(own_() & 1);
      } else {
        for (MPI_Aint b = 0; b < extent; ++b) at[b] = static_cast<unsigned char>(own_());
        continue;
      }
      // The index of a pair is the rank: what a search for the maximum compares.
      if (type.kind == Kind::pair) {
        const int offset = t == MPI_2INT || t == MPI_FLOAT_INT || t == MPI_SHORT_INT ? 4
                           : t == MPI_LONG_DOUBLE_INT                                ? 16
                                                                                     : 8;
        std::memcpy(at + offset, &rank_, sizeof rank_);
      }
    }
  }

  /// The bytes that belong to the elements, without the gaps between and within them.
  static Bytes packed(const Bytes& data, MPI_Datatype type, int count) {
    int bytes = 0;
    if (count == 0) return {};
    MPI_Pack_size(count, type, MPI_COMM_SELF, &bytes);
    Bytes out(static_cast<std::size_t>(bytes));
    int position = 0;
    MPI_Pack(data.data(), count, type, out.data(), bytes, &position, MPI_COMM_SELF);
    out.resize(static_cast<std::size_t>(position));
    // Of the 16 bytes of an x87 number, the last 6 are nobody's.
    const bool long_double =
        type == MPI_LONG_DOUBLE || type == MPI_C_LONG_DOUBLE_COMPLEX || type == MPI_LONG_DOUBLE_INT;
    const std::size_t step = type == MPI_LONG_DOUBLE_INT ? 20 : 16;
    if (long_double && LDBL_MANT_DIG == 64) {
      for (std::size_t at = 0; at + 16 <= out.size(); at += step)
        std::fill_n(out.begin() + static_cast<long>(at) + 10, 6, 0);
    }
    return out;
  }

  void barrier() {
    const int kind = pick(4);
    if (kind == 0) {
      MPI_Barrier(comm_);
      return;
    }
    std::vector<MPI_Request> requests(static_cast<std::size_t>(kind));
    for (MPI_Request& request : requests) MPI_Ibarrier(comm_, &request);
    if (kind == 2) MPI_Barrier(comm_);
    MPI_Waitall(kind, requests.data(), MPI_STATUSES_IGNORE);
  }

  void bcast() {
    const int count = some_count();
    const int root = pick(size_);
    const Type& type = types()[static_cast<std::size_t>(pick(static_cast<int>(types().size())))];
    Bytes data;
    fill(data, type, count);
    // Scattered on some ranks, dense on others, of one signature.
    MPI_Aint lower;
    MPI_Aint extent;
    MPI_Type_get_extent(type.type, &lower, &extent);
    const bool scattered = pick(2) == 1 && (own_() & 1) == 1 && count > 0;
    MPI_Datatype vector = type.type;
    Bytes spread;
    if (scattered) {
      MPI_Type_vector(count, 1, 2, type.type, &vector);
      MPI_Type_commit(&vector);
      spread.assign(data.size() * 2, 0xee);
      for (int i = 0; i < count; ++i)
        std::memcpy(spread.data() + 2 * extent * i, data.data() + extent * i,
                    static_cast<std::size_t>(extent));
    }
    Bytes expected = data;
    MPI_Bcast(expected.data(), count, type.type, root, twin_);
    if (scattered) {
      MPI_Bcast(spread.data(), 1, vector, root, comm_);
      for (int i = 0; i < count; ++i) {
        std::memcpy(data.data() + extent * i, spread.data() + 2 * extent * i,
                    static_cast<std::size_t>(extent));
        const unsigned char* gap = spread.data() + 2 * extent * i + extent;
        if (std::any_of(gap, gap + extent, [](unsigned char b) { return b != 0xee; }))
          wrong("MPI_Bcast", round_, "wrote into a gap");
      }
      MPI_Type_free(&vector);
    } else {
      MPI_Bcast(data.data(), count, type.type, root, comm_);
    }
    if (packed(data, type.type, count) != packed(expected, type.type, count))
      wrong("MPI_Bcast", round_, type.name);
  }

  void reduce(bool all) {
    const int count = some_count();
    const int root = pick(size_);
    const Type& type = types()[static_cast<std::size_t>(pick(static_cast<int>(types().size())))];
    const auto ops = operations(type.kind);
    const MPI_Op op = ops[static_cast<std::size_t>(pick(static_cast<int>(ops.size())))];
    const bool in_place = pick(2) == 1;
    Bytes data;
    fill(data, type, count, op);
    Bytes expected(data.size(), 0);
    Bytes got = in_place ? data : expected;
    if (all) {
      MPI_Allreduce(data.data(), expected.data(), count, type.type, op, twin_);
      MPI_Allreduce(in_place ? MPI_IN_PLACE : data.data(), got.data(), count, type.type, op, comm_);
    } else {
      MPI_Reduce(data.data(), expected.data(), count, type.type, op, root, twin_);
      const bool at_root = rank_ == root;
      const void* in = in_place && at_root ? MPI_IN_PLACE : data.data();
      MPI_Reduce(in, got.data(), count, type.type, op, root, comm_);
      if (!at_root) return;
    }
    if (packed(got, type.type, count) != packed(expected, type.type, count))
      wrong(all ? "MPI_Allreduce" : "MPI_Reduce", round_, type.name);
  }

  void allgather() {
    const int count = std::min(some_count(), 600);
    const Type& type = types()[static_cast<std::size_t>(pick(static_cast<int>(types().size())))];
    const bool in_place = pick(2) == 1;
    Bytes data;
    fill(data, type, count);
    Bytes expected(data.size() * static_cast<std::size_t>(size_), 0);
    Bytes got = expected;
    MPI_Allgather(data.data(), count, type.type, expected.data(), count, type.type, twin_);
    if (in_place) {
      std::copy(data.begin(), data.end(),
                got.begin() + static_cast<long>(data.size()) * static_cast<long>(rank_));
      MPI_Allgather(MPI_IN_PLACE, 0, MPI_DATATYPE_NULL, got.data(), count, type.type, comm_);
    } else {
      MPI_Allgather(data.data(), count, type.type, got.data(), count, type.type, comm_);
    }
    if (packed(got, type.type, count * size_) != packed(expected, type.type, count * size_))
      wrong("MPI_Allgather", round_, type.name);
  }

  void user_operation() {
    const int count = 1 + pick(5);
    std::vector<unsigned> data(static_cast<std::size_t>(count) * 4);
    for (unsigned& number : data) number = static_cast<unsigned>(own_());
    std::vector<unsigned> expected(data.size());
    std::vector<unsigned> got(data.size());
    MPI_Allreduce(data.data(), expected.data(), count, matrix_, product_, twin_);
    MPI_Allreduce(data.data(), got.data(), count, matrix_, product_, comm_);
    if (got != expected) wrong("MPI_Allreduce", round_, "with a non-commutative operation");
  }

  /// Sums that depend on the order: the same bits on all ranks, and near the other module's.
  void fractions() {
    const int count = 1 + pick(40);
    std::vector<double> data(static_cast<std::size_t>(count));
    for (double& number : data) number = static_cast<double>(own_()) / 1e6 - 9e12;
    std::vector<double> got(data.size());
    std::vector<double> expected(data.size());
    MPI_Allreduce(data.data(), got.data(), count, MPI_DOUBLE, MPI_SUM, comm_);
    MPI_Allreduce(data.data(), expected.data(), count, MPI_DOUBLE, MPI_SUM, twin_);
    std::vector<double> all(data.size() * static_cast<std::size_t>(size_));
    MPI_Allgather(got.data(), count, MPI_DOUBLE, all.data(), count, MPI_DOUBLE, twin_);
    for (int r = 0; r < size_; ++r) {
      if (std::memcmp(all.data() + static_cast<long>(r) * count, got.data(),
                      got.size() * sizeof(double)) != 0)
        wrong("MPI_Allreduce", round_, "differs between ranks");
    }
    for (std::size_t i = 0; i < got.size(); ++i) {
      const double gap = got[i] - expected[i];
      if (gap > 100 || gap < -100) wrong("MPI_Allreduce", round_, "of fractions");
    }
  }

  std::mt19937_64 shared_;
  std::mt19937_64 own_;
  MPI_Comm comm_{};
  MPI_Comm twin_{};
  MPI_Op product_{};
  MPI_Datatype matrix_{};
  int rank_ = 0;
  int size_ = 0;
  long round_ = 0;
};

}  // namespace

int main(int argc, char** argv) {
  long rounds = 1000;
  long churn = 0;
  unsigned long seed = 1;
  bool threads = false;
  for (int i = 1; i < argc; ++i) {
    const std::string word = argv[i];
    if (word == "--threads") {
      threads = true;
    } else if (i + 1 < argc && word == "--rounds") {
      rounds = std::atol(argv[++i]);
    } else if (i + 1 < argc && word == "--seed") {
      seed = std::strtoul(argv[++i], nullptr, 10);
    } else if (i + 1 < argc && word == "--churn") {
      churn = std::atol(argv[++i]);
    } else {
      std::fprintf(stderr, "usage: collective_mix --rounds N --seed S [--churn N] [--threads]\n");
      return 2;
    }
  }
  int provided = 0;
  MPI_Init_thread(&argc, &argv, threads ? MPI_THREAD_MULTIPLE : MPI_THREAD_SINGLE, &provided);
  MPI_Comm_rank(MPI_COMM_WORLD, &world_rank);
  if (threads && provided < MPI_THREAD_MULTIPLE) {
    if (world_rank == 0) std::puts("SKIP: this MPI has no MPI_THREAD_MULTIPLE");
    MPI_Finalize();
    return 0;
  }
  if (threads) {
    constexpr unsigned number = 4;
    std::vector<MPI_Comm> comms(number);
    for (MPI_Comm& comm : comms) MPI_Comm_dup(MPI_COMM_WORLD, &comm);
    std::vector<std::thread> all;
    for (unsigned t = 0; t < number; ++t) {
      all.emplace_back([&, t] { Mix(comms[t], seed + t).run(rounds); });
    }
    for (std::thread& thread : all) thread.join();
    for (MPI_Comm& comm : comms) MPI_Comm_free(&comm);
  } else {
    // A part of the ranks, in another order, and all of them.
    int size = 0;
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    MPI_Comm half;
    MPI_Comm_split(MPI_COMM_WORLD, world_rank % 2, size - world_rank, &half);
    Mix(MPI_COMM_WORLD, seed).run(rounds);
    Mix(half, seed + 1).run(rounds / 10);
    if (churn > 0) Mix(MPI_COMM_WORLD, seed + 2).churn(churn);
    MPI_Comm_free(&half);
  }
  MPI_Barrier(MPI_COMM_WORLD);
  if (world_rank == 0) std::puts("OK");
  MPI_Finalize();
  return 0;
}
