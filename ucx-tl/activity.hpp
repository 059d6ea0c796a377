// Which of the two transports are open in this process: windows may only be handed to UCX while
// both are.
#pragma once

#include <atomic>
#include <string>

namespace weft::ucx {

struct Activity {
  std::atomic<int> copy_ifaces{0};
  std::atomic<int> wire_ifaces{0};
  /// More processes than cores: whoever waits gives its core away.
  std::atomic<bool> takes_turns{false};

  [[nodiscard]] bool both_open() const noexcept {
    return copy_ifaces.load(std::memory_order_relaxed) > 0 &&
           wire_ifaces.load(std::memory_order_relaxed) > 0;
  }
  /// Remembers why something could not be opened, for people who ask.
  void note(std::string reason) noexcept;
  /// One line; empty when both are open.
  [[nodiscard]] const char* why_not() noexcept;
};

Activity& activity() noexcept;

}  // namespace weft::ucx
