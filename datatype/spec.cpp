#include "datatype/spec.hpp"

#include <algorithm>
#include <array>
#include <complex>

namespace weft::datatype {

namespace {

template <typename T>
constexpr Primitive c_type(std::string_view name) {
  return {name, sizeof(T), alignof(T)};
}

constexpr std::array table{
    c_type<char>("byte"),
    c_type<char>("char"),
    c_type<signed char>("signed_char"),
    c_type<unsigned char>("unsigned_char"),
    c_type<short>("short"),
    c_type<unsigned short>("unsigned_short"),
    c_type<int>("int"),
    c_type<unsigned>("unsigned"),
    c_type<long>("long"),
    c_type<unsigned long>("unsigned_long"),
    c_type<long long>("long_long"),
    c_type<float>("float"),
    c_type<double>("double"),
    c_type<long double>("long_double"),
    c_type<wchar_t>("wchar"),
    c_type<bool>("c_bool"),
    c_type<std::int8_t>("int8_t"),
    c_type<std::int16_t>("int16_t"),
    c_type<std::int32_t>("int32_t"),
    c_type<std::int64_t>("int64_t"),
    c_type<std::uint8_t>("uint8_t"),
    c_type<std::uint16_t>("uint16_t"),
    c_type<std::uint32_t>("uint32_t"),
    c_type<std::uint64_t>("uint64_t"),
    c_type<std::complex<float>>("c_float_complex"),
    c_type<std::complex<double>>("c_double_complex"),
};

std::string text(const Spec::List& values) {
  std::string s = "[";
  for (std::size_t i = 0; i < values.size(); ++i) {
    s += (i == 0 ? "" : ", ") + std::to_string(values[i]);
  }
  return s + "]";
}

const char* text(Distribution distribution) {
  switch (distribution) {
    case Distribution::none:
      return "none";
    case Distribution::block:
      return "block";
    case Distribution::cyclic:
      break;
  }
  return "cyclic";
}

std::string darray_text(const Spec& s) {
  std::string distributions;
  std::string arguments;
  Spec::List sizes;
  Spec::List processes;
  for (const GridDimension& d : s.grid) {
    const char* comma = sizes.empty() ? "" : ", ";
    sizes.push_back(d.size);
    processes.push_back(d.processes);
    distributions += comma + std::string(text(d.distribution));
    arguments += comma + (d.argument == default_distribution_argument ? std::string("default")
                                                                      : std::to_string(d.argument));
  }
  return "darray(" + std::to_string(s.count) + ", " + text(sizes) + ", [" + distributions + "], [" +
         arguments + "], " + text(processes) + ", ";
}

}  // namespace

std::span<const Primitive> primitives() noexcept {
  return table;
}

std::string to_string(const Spec& s) {
  const auto number = [](std::int64_t value) { return std::to_string(value) + ", "; };
  const auto numbers = [](const Spec::List& values) { return text(values) + ", "; };
  const std::string order = s.order == Order::c ? "C, " : "F, ";
  const std::string of = s.types.empty() ? "" : to_string(s.types[0]) + ")";
  switch (s.kind) {
    case Spec::Kind::primitive:
      return std::string(s.primitive.name);
    case Spec::Kind::contiguous:
      return "contiguous(" + number(s.count) + of;
    case Spec::Kind::vector:
      return "vector(" + number(s.count) + number(s.blocklength) + number(s.stride) + of;
    case Spec::Kind::hvector:
      return "hvector(" + number(s.count) + number(s.blocklength) + number(s.stride) + of;
    case Spec::Kind::indexed:
      return "indexed(" + numbers(s.blocklengths) + numbers(s.displacements) + of;
    case Spec::Kind::hindexed:
      return "hindexed(" + numbers(s.blocklengths) + numbers(s.displacements) + of;
    case Spec::Kind::indexed_block:
      return "indexed_block(" + number(s.blocklength) + numbers(s.displacements) + of;
    case Spec::Kind::hindexed_block:
      return "hindexed_block(" + number(s.blocklength) + numbers(s.displacements) + of;
    case Spec::Kind::structure: {
      std::string types;
      for (const Spec& type : s.types) types += (types.empty() ? "" : ", ") + to_string(type);
      return "struct(" + numbers(s.blocklengths) + numbers(s.displacements) + "[" + types + "])";
    }
    case Spec::Kind::subarray:
      return "subarray(" + numbers(s.sizes) + numbers(s.blocklengths) + numbers(s.displacements) +
             order + of;
    case Spec::Kind::darray:
      return darray_text(s) + order + of;
    case Spec::Kind::resized:
      return "resized(" + to_string(s.types[0]) + ", " + number(s.blocklength) +
             std::to_string(s.stride) + ")";
    case Spec::Kind::dup:
      return "dup(" + of;
  }
  return {};
}

Type build(const Spec& s) {
  std::vector<Type> types;
  types.reserve(s.types.size());
  for (const Spec& type : s.types) types.push_back(build(type));
  switch (s.kind) {
    case Spec::Kind::primitive:
      return Type::primitive(s.primitive.size, s.primitive.alignment);
    case Spec::Kind::contiguous:
      return Type::contiguous(s.count, types[0]);
    case Spec::Kind::vector:
      return Type::vector(s.count, s.blocklength, s.stride, types[0]);
    case Spec::Kind::hvector:
      return Type::hvector(s.count, s.blocklength, s.stride, types[0]);
    case Spec::Kind::indexed:
      return Type::indexed(s.blocklengths, s.displacements, types[0]);
    case Spec::Kind::hindexed:
      return Type::hindexed(s.blocklengths, s.displacements, types[0]);
    case Spec::Kind::indexed_block:
      return Type::indexed_block(s.blocklength, s.displacements, types[0]);
    case Spec::Kind::hindexed_block:
      return Type::hindexed_block(s.blocklength, s.displacements, types[0]);
    case Spec::Kind::structure:
      return Type::structure(s.blocklengths, s.displacements, types);
    case Spec::Kind::subarray:
      return Type::subarray(s.sizes, s.blocklengths, s.displacements, s.order, types[0]);
    case Spec::Kind::darray:
      return Type::darray(s.count, s.grid, s.order, types[0]);
    case Spec::Kind::resized:
      return Type::resized(types[0], s.blocklength, s.stride);
    case Spec::Kind::dup:
      return types[0];
  }
  return {};
}

}  // namespace weft::datatype
