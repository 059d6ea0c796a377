#include <fmt/format.h>

#include <string>

#include "ompi-component/hook/counters.hpp"
#include "ompi-component/ompi.hpp"

extern "C" const ompi_hook_base_component_t mca_hook_weft_component;

namespace weft::ompi {
namespace {

int read_counter(const mca_base_pvar_t* pvar, void* value, void* /*object*/) {
  const auto* counter = static_cast<const std::atomic<std::uint64_t>*>(pvar->ctx);
  *static_cast<unsigned long long*>(value) = counter->load(std::memory_order_relaxed);
  return OPAL_SUCCESS;
}

void register_counter(const std::string& name, const std::string& description,
                      const std::atomic<std::uint64_t>& counter) {
  (void)mca_base_component_pvar_register(
      &mca_hook_weft_component.hookm_version, name.c_str(), description.c_str(), OPAL_INFO_LVL_4,
      MCA_BASE_PVAR_CLASS_COUNTER, MCA_BASE_VAR_TYPE_UNSIGNED_LONG_LONG, nullptr,
      MPI_T_BIND_NO_OBJECT,
      static_cast<mca_base_pvar_flag_t>(MCA_BASE_PVAR_FLAG_READONLY |
                                        MCA_BASE_PVAR_FLAG_CONTINUOUS),
      read_counter, nullptr, nullptr, const_cast<std::atomic<std::uint64_t>*>(&counter));
}

void register_tally(const std::string& name, const std::string& what, const Tally& tally) {
  register_counter(name + "_messages", "Messages " + what, tally.message_counter());
  register_counter(name + "_bytes", "Packed bytes of messages " + what, tally.byte_counter());
}

}  // namespace

void register_pvars() {
  for (const Direction direction : {Direction::send, Direction::receive}) {
    const char* verb = direction == Direction::send ? "sent" : "received";
    for (std::size_t i = 0; i < layout_kinds; ++i) {
      const auto kind = static_cast<hca::LayoutKind>(i);
      register_tally(
          fmt::format("{}_{}", to_string(direction), hca::to_string(kind)),
          fmt::format("{} through a layout memory region of kind {}", verb, hca::to_string(kind)),
          counters.of(direction, kind));
    }
    for (std::size_t i = 0; i < fallbacks; ++i) {
      const auto reason = static_cast<Fallback>(i);
      register_tally(fmt::format("{}_fallback_{}", to_string(direction), to_string(reason)),
                     fmt::format("with a non-contiguous datatype {} on Open MPI's own path: {}",
                                 verb, explain(reason)),
                     counters.of(direction, reason));
    }
  }
}

}  // namespace weft::ompi
