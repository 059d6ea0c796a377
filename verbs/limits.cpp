#include "verbs/limits.hpp"

#include <array>
#include <charconv>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <string_view>

namespace weft::verbs {

namespace {

struct Profile {
  const char* name;
  Limits limits;
};

ibv_mr_layout_caps all_layouts() {
  ibv_mr_layout_caps caps{};
  caps.cap_flags = 2 * IBV_MR_SET_LAYOUT_INTERNAL_REGISTRATION - 1;
  caps.max_num_sg = 1 << 18;
  caps.max_inline_num_sg = 64;
  caps.max_num_interleaved = 1 << 12;
  caps.max_inline_num_interleaved = 32;
  caps.max_mr_stride_dimension = 16;
  caps.max_mr_nesting_level = 8;
  caps.max_datum_length = UINT32_MAX;
  caps.max_offset_stride = INT64_MAX;
  return caps;
}

Limits everything() {
  Limits limits;
  limits.layouts = all_layouts();
  return limits;
}

/// What rdma-core's mlx5dv_wr_mr_list() and _interleaved() can express: lists of 16-bit length, one
/// repeat count for all entries, block and distance in 16 bits, no overlap. The nesting is of our
/// choosing: the library states none.
Limits connectx() {
  Limits limits;
  limits.max_sge = 30;
  limits.max_srq_sge = 31;
  limits.max_srq_wr = 32767;
  limits.max_cqe = (1 << 22) - 1;
  limits.max_reads = 16;
  limits.atomics_with_cpu = false;
  limits.layouts.cap_flags = IBV_MR_SET_LAYOUT_SG | IBV_MR_SET_LAYOUT_INTERLEAVED;
  limits.layouts.max_num_sg = 65535;
  limits.layouts.max_inline_num_sg = 4;
  limits.layouts.max_num_interleaved = 65534;
  limits.layouts.max_inline_num_interleaved = 3;
  limits.layouts.max_mr_stride_dimension = 1;
  limits.layouts.max_mr_nesting_level = 4;
  limits.layouts.max_datum_length = 65535;
  limits.layouts.max_offset_stride = 65535;
  limits.overlapping_strides = false;
  return limits;
}

struct Bit {
  std::string_view name;
  std::uint64_t bit;
};
constexpr std::array<Bit, 6> bits{
    {{"sg", IBV_MR_SET_LAYOUT_SG},
     {"interleaved", IBV_MR_SET_LAYOUT_INTERLEAVED},
     {"interleaved_repeat", IBV_MR_SET_LAYOUT_INTERLEAVED_REPEAT},
     {"interleaved_nonuniform_repeat", IBV_MR_SET_LAYOUT_INTERLEAVED_NONUNIFORM_REPEAT},
     {"interleaved_nonuniform_datum_total", IBV_MR_SET_LAYOUT_INTERLEAVED_NONUNIFORM_DATUM_TOTAL},
     {"internal_registration", IBV_MR_SET_LAYOUT_INTERNAL_REGISTRATION}}};

struct Number {
  std::string_view name;
  std::uint32_t ibv_mr_layout_caps::*value;
};
constexpr std::array<Number, 6> numbers{
    {{"max_num_sg", &ibv_mr_layout_caps::max_num_sg},
     {"max_inline_num_sg", &ibv_mr_layout_caps::max_inline_num_sg},
     {"max_num_interleaved", &ibv_mr_layout_caps::max_num_interleaved},
     {"max_inline_num_interleaved", &ibv_mr_layout_caps::max_inline_num_interleaved},
     {"max_mr_stride_dimension", &ibv_mr_layout_caps::max_mr_stride_dimension},
     {"max_mr_nesting_level", &ibv_mr_layout_caps::max_mr_nesting_level}}};

/// One item after a profile's name; false when it is none.
bool change(ibv_mr_layout_caps& caps, std::string_view item) {
  if (item.starts_with('-')) {
    for (const Bit& bit : bits) {
      if (item.substr(1) != bit.name) continue;
      caps.cap_flags &= ~bit.bit;
      return true;
    }
    return false;
  }
  for (const Number& number : numbers) {
    if (!item.starts_with(number.name)) continue;
    const std::string_view rest = item.substr(number.name.size());
    if (!rest.starts_with('=')) continue;
    std::uint32_t value = 0;
    const char* const end = rest.data() + rest.size();
    const auto [stop, error] = std::from_chars(rest.data() + 1, end, value);
    if (error != std::errc{} || stop != end) return false;
    caps.*number.value = value;
    return true;
  }
  return false;
}

Profile profile_of(const char* setting) {
  std::string_view rest = setting != nullptr ? setting : "";
  const auto next = [&rest] {
    const std::string_view item = rest.substr(0, rest.find(','));
    rest.remove_prefix(std::min(rest.size(), item.size() + 1));
    return item;
  };
  const std::string_view name = next();
  Profile profile{"default", everything()};
  if (name == "connectx") {
    profile = {"connectx", connectx()};
  } else if (!name.empty() && name != "default") {
    std::fprintf(stderr,
                 "weft: WEFT_HCA_PROFILE=%s is no profile (default, connectx): default is used\n",
                 setting);
  }
  while (!rest.empty()) {
    const std::string_view item = next();
    if (change(profile.limits.layouts, item)) continue;
    std::fprintf(stderr, "weft: WEFT_HCA_PROFILE=%s: \"%s\" is nothing that can be changed\n",
                 setting, std::string(item).c_str());
  }
  return profile;
}

Profile& profile() {
  static Profile profile = profile_of(std::getenv("WEFT_HCA_PROFILE"));
  return profile;
}

}  // namespace

const Limits& limits() {
  return profile().limits;
}

const char* profile_name() {
  return profile().name;
}

void choose_profile(const char* setting) {
  profile() = profile_of(setting);
}

}  // namespace weft::verbs
