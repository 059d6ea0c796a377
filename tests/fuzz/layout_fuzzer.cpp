// Fuzz target: descriptions of layouts with hostile numbers, by the factories of hca::Layout and in
// the little language of weft-layout. A description is refused with hca::Error, for a reason, or it
// means what a plain loop over its bytes means. Results small enough are executed, in memory of
// exactly the bytes that they touch (the sanitizer guards its ends).
#include <fuzzer/FuzzedDataProvider.h>

#include <algorithm>
#include <cerrno>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <numeric>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "datatype/normal_form.hpp"
#include "datatype/spec.hpp"
#include "datatype/type_map.hpp"
#include "hca/gather_for_peer.hpp"
#include "hca/layout.hpp"
#include "hca/scatter_from_peer.hpp"
#include "hca/status.hpp"

namespace {

using namespace weft;
using hca::Layout;
using hca::LayoutPtr;

#define REQUIRE(condition)                                                           \
  do {                                                                               \
    if (!(condition)) {                                                              \
      std::fprintf(stderr, "%s:%d: not true: %s\n", __FILE__, __LINE__, #condition); \
      std::abort();                                                                  \
    }                                                                                \
  } while (false)

using Wide = __int128;
/// Offset of each byte of the stream; wide, since some are out of range.
using Offsets = std::vector<Wide>;

constexpr std::size_t most_bytes = 1 << 14;
constexpr Wide most_memory = 1 << 20;

/// A description, and what it means unless that is too long to be written out.
struct Case {
  LayoutPtr layout;
  std::optional<Offsets> bytes;
};

/// What a factory refused. `known`: its oracle, to see that there was a reason.
struct Refused {};

class Descriptions {
 public:
  explicit Descriptions(FuzzedDataProvider& input) : input_(input) {}

  Case make(int depth) {
    switch (input_.ConsumeIntegralInRange(0, depth > 0 ? 5 : 2)) {
      case 0:
        return contiguous();
      case 1:
        return strided();
      case 2:
        return sg_list();
      case 3:
        return repeat(depth);
      case 4:
        return indexed(depth);
      default:
        return sequence(depth);
    }
  }

 private:
  std::int64_t number() {
    static constexpr std::int64_t hostile[] = {INT64_MIN,
                                               INT64_MIN + 1,
                                               INT64_MAX,
                                               INT64_MAX - 1,
                                               -1,
                                               0,
                                               1,
                                               INT32_MAX,
                                               INT32_MIN,
                                               UINT32_MAX,
                                               1ll << 32,
                                               1ll << 62,
                                               -(1ll << 62),
                                               1ll << 31,
                                               (1ll << 32) + 1,
                                               65535,
                                               65536,
                                               4096,
                                               INT64_MAX / 2,
                                               INT64_MIN / 2,
                                               3037000500,
                                               -3037000500,
                                               (1ll << 40),
                                               255};
    switch (input_.ConsumeIntegralInRange(0, 9)) {
      case 0:
        return hostile[input_.ConsumeIntegralInRange<std::size_t>(0, std::size(hostile) - 1)];
      case 1:
        return input_.ConsumeIntegral<std::int64_t>();
      case 2:
        return input_.ConsumeIntegralInRange<std::int64_t>(-5000, 5000);
      default:
        return input_.ConsumeIntegralInRange<std::int64_t>(-40, 200);
    }
  }
  std::uint64_t count() {
    const std::int64_t value = number();
    // Those below 0 stand for the largest there are.
    if (value < -40) return static_cast<std::uint64_t>(value);
    return static_cast<std::uint64_t>(value < 0 ? -value : value) %
           (input_.ConsumeBool() ? 12 : UINT64_MAX);
  }

  /// Copies of `bytes`, one for each offset that `place(i)` gives.
  template <class Place>
  static std::optional<Offsets> copies(const std::optional<Offsets>& bytes, std::uint64_t count,
                                       Place place) {
    if (!bytes) return std::nullopt;
    if (bytes->empty() || count == 0) return Offsets{};
    if (count > most_bytes / bytes->size()) return std::nullopt;
    Offsets all;
    for (std::uint64_t i = 0; i < count; ++i) {
      for (const Wide byte : *bytes) all.push_back(byte + place(i));
    }
    return all;
  }
  static std::optional<Offsets> block(Wide offset, std::uint64_t length) {
    if (length > most_bytes) return std::nullopt;
    Offsets bytes(length);
    std::iota(bytes.begin(), bytes.end(), offset);
    return bytes;
  }
  static void append(std::optional<Offsets>& all, const std::optional<Offsets>& more) {
    if (!all || !more || all->size() + more->size() > most_bytes) {
      all.reset();
    } else {
      all->insert(all->end(), more->begin(), more->end());
    }
  }

  template <class Make>
  static Case checked(std::optional<Offsets> bytes, Make make) {
    const auto fits = [](Wide byte) { return byte >= -INT64_MAX && byte < INT64_MAX; };
    const bool sound = bytes && std::all_of(bytes->begin(), bytes->end(), fits);
    try {
      LayoutPtr layout = make();
      if (bytes) {
        REQUIRE(sound);
        REQUIRE(layout->size() == bytes->size());
        if (!bytes->empty()) {
          REQUIRE(layout->lower() == *std::min_element(bytes->begin(), bytes->end()));
          REQUIRE(layout->upper() == *std::max_element(bytes->begin(), bytes->end()) + 1);
        }
      }
      return {std::move(layout), std::move(bytes)};
    } catch (const hca::Error& error) {
      REQUIRE(error.code() == EOVERFLOW);
      REQUIRE(!sound);
      throw Refused{};
    }
  }

  Case contiguous() {
    const std::uint64_t length = count();
    const std::int64_t offset = number();
    return checked(block(offset, length), [&] { return Layout::contiguous(length, offset); });
  }

  Case strided() {
    const std::uint64_t length = count();
    const std::int64_t offset = number();
    std::vector<hca::Dimension> dims(input_.ConsumeIntegralInRange<std::size_t>(0, 4));
    for (hca::Dimension& dim : dims) dim = {count(), number()};
    auto bytes = block(offset, length);
    // A count of 0 makes all of it empty, whatever is beside it.
    if (std::any_of(dims.begin(), dims.end(), [](const auto& dim) { return dim.count == 0; })) {
      bytes = Offsets{};
    }
    for (std::size_t i = dims.size(); i-- > 0;) {
      bytes = copies(bytes, dims[i].count,
                     [&](std::uint64_t n) { return static_cast<Wide>(n) * dims[i].stride; });
    }
    return checked(std::move(bytes), [&] { return Layout::strided(offset, length, dims); });
  }

  Case sg_list() {
    std::vector<hca::Block> blocks(input_.ConsumeIntegralInRange<std::size_t>(0, 150));
    std::optional<Offsets> bytes = Offsets{};
    const bool equal = input_.ConsumeBool();
    const std::uint64_t one = count();
    for (hca::Block& b : blocks) {
      b = {number(), equal ? one : count()};
      append(bytes, block(b.offset, b.length));
    }
    return checked(std::move(bytes), [&] { return Layout::sg_list(blocks); });
  }

  Case repeat(int depth) {
    const Case child = make(depth - 1);
    const std::uint64_t n = count();
    const std::int64_t stride = number();
    auto bytes =
        copies(child.bytes, n, [&](std::uint64_t i) { return static_cast<Wide>(i) * stride; });
    return checked(std::move(bytes), [&] { return Layout::repeat(child.layout, n, stride); });
  }

  Case indexed(int depth) {
    const Case child = make(depth - 1);
    std::vector<std::int64_t> offsets(input_.ConsumeIntegralInRange<std::size_t>(0, 12));
    for (std::int64_t& offset : offsets) offset = number();
    auto bytes = copies(child.bytes, offsets.size(), [&](std::uint64_t i) { return offsets[i]; });
    return checked(std::move(bytes), [&] { return Layout::indexed(child.layout, offsets); });
  }

  Case sequence(int depth) {
    std::vector<hca::Placed> parts(input_.ConsumeIntegralInRange<std::size_t>(0, 5));
    std::optional<Offsets> bytes = Offsets{};
    for (hca::Placed& part : parts) {
      const Case child = make(depth - 1);
      part = {number(), child.layout};
      append(bytes, copies(child.bytes, 1, [&](std::uint64_t) { return part.offset; }));
    }
    return checked(std::move(bytes), [&] { return Layout::sequence(parts); });
  }

  FuzzedDataProvider& input_;
};

/// What `offset` counts from when the first byte of `memory` is the one at `lower`.
std::byte* base_of(std::byte* memory, std::int64_t lower) {
  return reinterpret_cast<std::byte*>(reinterpret_cast<std::uintptr_t>(memory) -
                                      static_cast<std::uintptr_t>(lower));
}

/// Gathers and scatters a part of the stream.
void execute(const Layout& layout, const Offsets& bytes, FuzzedDataProvider& input) {
  const Wide width = static_cast<Wide>(layout.upper()) - layout.lower();
  if (bytes.empty() || width > most_memory) return;
  const auto at = [&](std::size_t i) {
    return static_cast<std::size_t>(bytes[i] - layout.lower());
  };
  const auto offset = input.ConsumeIntegralInRange<std::size_t>(0, bytes.size());
  const std::size_t length = input.ConsumeIntegralInRange<std::size_t>(0, bytes.size() - offset);

  std::vector<std::byte> memory(static_cast<std::size_t>(width));
  for (std::size_t i = 0; i < memory.size(); ++i) {
    memory[i] = static_cast<std::byte>(i ^ (i >> 8) ^ (i >> 16));
  }
  std::byte* const base = base_of(memory.data(), layout.lower());
  // Of exactly this length, so that a byte too much is noticed.
  std::vector<std::byte> stream(length);
  layout.gather(base, offset, stream);
  for (std::size_t i = 0; i < length; ++i) REQUIRE(stream[i] == memory[at(offset + i)]);
  std::fill(stream.begin(), stream.end(), std::byte{0});
  hca::gather_for_peer(layout, base, offset, stream);
  for (std::size_t i = 0; i < length; ++i) REQUIRE(stream[i] == memory[at(offset + i)]);

  std::vector<std::byte> after = memory;
  for (std::size_t i = 0; i < length; ++i) stream[i] = ~stream[i];
  layout.scatter(base_of(after.data(), layout.lower()), offset, stream);
  // Where parts overlap, all that is written to a place is the complement of what was there.
  for (std::size_t i = 0; i < length; ++i) memory[at(offset + i)] = stream[i];
  REQUIRE(after == memory);
  std::fill(after.begin(), after.end(), std::byte{0});
  std::vector<std::byte> same = after;
  layout.scatter(base_of(same.data(), layout.lower()), offset, stream);
  hca::scatter_from_peer(layout, base_of(after.data(), layout.lower()), offset, stream);
  REQUIRE(after == same);
}

void look_at(const Layout& layout) {
  REQUIRE(layout.lower() <= layout.upper());
  REQUIRE(layout.equals(layout));
  REQUIRE(!layout.describe().empty());
  REQUIRE(layout.footprint() != 0);
}

void fuzz_factories(FuzzedDataProvider& input) {
  try {
    const Case c = Descriptions(input).make(4);
    look_at(*c.layout);
    if (c.bytes) execute(*c.layout, *c.bytes, input);
    // To the normal form of datatype/ and back: the same bytes.
    const LayoutPtr again = datatype::to_layout(datatype::from_layout(*c.layout));
    REQUIRE(again->size() == c.layout->size());
    if (c.layout->size() != 0) {
      REQUIRE(again->lower() == c.layout->lower());
      REQUIRE(again->upper() == c.layout->upper());
    }
    if (c.bytes) execute(*again, *c.bytes, input);
  } catch (const Refused&) {
  } catch (const hca::Error& error) {
    // The normal form has offsets of its own, between those of a layout.
    REQUIRE(error.code() == EOVERFLOW);
  }
}

// ---- the little language -----------------------------------------------------------------------

/// About how many steps it takes to write the datatype out.
double steps(const datatype::Spec& spec) {
  double inner = spec.types.empty() ? 1 : 0;
  for (std::size_t i = 0; i < spec.types.size(); ++i) {
    const bool several = spec.kind == datatype::Spec::Kind::structure;
    const double copies = several && i < spec.blocklengths.size()
                              ? std::abs(static_cast<double>(spec.blocklengths[i]))
                              : 1;
    inner += steps(spec.types[i]) * std::max(copies, 1.0);
  }
  const auto larger = [](double have, std::int64_t value) {
    return have * std::max(std::abs(static_cast<double>(value)), 1.0);
  };
  double n = 1;
  using Kind = datatype::Spec::Kind;
  if (spec.kind != Kind::resized && spec.kind != Kind::darray) n = larger(n, spec.count);
  if (spec.kind != Kind::resized) n = larger(n, spec.blocklength);
  for (const std::int64_t size : spec.sizes) n = larger(n, size);
  for (const auto& dim : spec.grid) n = larger(n, dim.size);
  if (spec.kind == Kind::indexed || spec.kind == Kind::hindexed) {
    double sum = 0;
    for (const std::int64_t length : spec.blocklengths) sum += larger(1, length);
    n *= std::max(sum, 1.0);
  }
  n *= static_cast<double>(std::max<std::size_t>(spec.displacements.size(), 1));
  return n * inner;
}

void fuzz_language(FuzzedDataProvider& input) {
  const auto count = input.ConsumeIntegralInRange<std::uint64_t>(0, 3);
  const std::string text = input.ConsumeRandomLengthString();
  datatype::Spec spec;
  try {
    spec = datatype::parse(text);
  } catch (const datatype::SyntaxError& error) {
    REQUIRE(error.position() <= text.size());
    return;
  }
  const std::string printed = datatype::to_string(spec);
  REQUIRE(datatype::to_string(datatype::parse(printed)) == printed);
  LayoutPtr layout;
  try {
    layout = datatype::build(spec).layout(count);
  } catch (const hca::Error& error) {
    REQUIRE(error.code() == EOVERFLOW || error.code() == EINVAL);
    return;
  }
  look_at(*layout);
  if (layout->size() > most_bytes || steps(spec) > 20000) return;
  const auto map = datatype::expand(spec).repeated(static_cast<std::int64_t>(count)).bytes();
  REQUIRE(map.size() == layout->size());
  execute(*layout, Offsets(map.begin(), map.end()), input);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size == 0) return 0;
  FuzzedDataProvider input(data + 1, size - 1);
  if (data[0] == 't') {
    fuzz_language(input);
  } else {
    fuzz_factories(input);
  }
  return 0;
}
