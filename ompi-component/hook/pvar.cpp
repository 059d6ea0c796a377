#include <fmt/format.h>

#include <string>

#include "ompi-component/hook/counters.hpp"
#include "ompi-component/mca_variables.hpp"

extern "C" const ompi_hook_base_component_t mca_hook_weft_component;

namespace weft::ompi {
namespace {

void register_counter(const std::string& name, const std::string& description,
                      const std::atomic<std::uint64_t>& counter) {
  ompi::register_counter(mca_hook_weft_component.hookm_version, name, description, counter);
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
