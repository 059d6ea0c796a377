// How a process waits for its peers where there are more processes than cores, so that whom it
// waits for may have no core at the moment.
//
// Giving the core away costs some 10 us until the next process runs. Two that exchange messages do
// well when both have a core at the same time: then they need no scheduler until their time slice
// ends. So a process first waits a while, in which its peer may come to its turn on another core,
// and then gives its core away; and where its peer waits for the same core, one of the two moves to
// another. Where many have to run before anybody can go on, or most of them compute, such waits are
// in vain, and it leaves waiting to its caller.
#pragma once

#include <cstdint>

#include "hca/emu/clock.hpp"
#include "hca/emu/pause.hpp"

namespace weft::hca::emu {

class Context;

class Turns {
 public:
  /// Nanoseconds that a wait may take. A reply takes some, and several others may have to give up
  /// before the peer's turn comes.
  static constexpr std::uint64_t patience = 50'000;
  /// A wait in vain costs as much as this many that saved a change of processes each. Partners that
  /// have a core each wait in vain once in hundreds of times; those whose neighbours all have to
  /// run before the next step, in one of two.
  static constexpr unsigned price = 8;
  static constexpr unsigned most_worth = 128;
  /// Nanoseconds. Whether waiting has become worth it only shows when both partners wait: all
  /// processes of the node try it at the same time, for some time slices.
  static constexpr std::uint64_t trial_every = 256'000'000;
  static constexpr std::uint64_t trial = 16'000'000;

  /// Waits until `look()`, which handles what has come and returns how much it was, finds
  /// something; or, in vain, gives the core away and looks once more. Returns what it found. Where
  /// waiting has not been worth it, it returns 0 soon. Called by the thread that calls the
  /// context's progress(), after a look in vain.
  template <class Look>
  unsigned wait(Context& context, Look look) {
    if (const unsigned events = look_often(look)) return events;
    const std::uint64_t began = now_ns();
    if (!is_worth_it(began)) {
      wait_nowhere(context);
      return 0;
    }
    if (!peer_shares_core(context, began)) {
      do {
        if (const unsigned events = look_often(look)) {
          worth_ = worth_ < most_worth ? worth_ + 1 : most_worth;
          return events;
        }
      } while (now_ns() - began < patience);
      worth_ = worth_ > price ? worth_ - price : 0;
    }
    yield();
    return look();
  }

  /// Whether it waits at `time`, in nanoseconds of the node's clock (now_ns()).
  [[nodiscard]] bool is_worth_it(std::uint64_t time) const noexcept {
    return worth_ > 0 || time % trial_every < trial;
  }

 private:
  static constexpr int looks_per_time = 8;

  template <class Look>
  static unsigned look_often(Look look) {
    for (int i = 0; i < looks_per_time; ++i) {
      pause();
      if (const unsigned events = look()) return events;
    }
    return 0;
  }
  static void yield() noexcept;
  static void wait_nowhere(Context& context) noexcept;
  /// Whether the peer waits for the core that this process has; it may move away for it.
  bool peer_shares_core(Context& context, std::uint64_t time) noexcept;

  unsigned worth_ = most_worth;
  std::uint32_t partner_ = 0;       ///< pid of the peer that was waited for last
  unsigned waits_for_partner_ = 0;  ///< one after the other
  std::uint64_t next_move_ = 0;
  std::uint64_t move_gap_ = 1'000'000;
};

/// Moves the calling thread off `core` to another one of those it may run on, which stay the same.
/// False when there is no other, or the kernel does not allow it.
bool move_off(unsigned core) noexcept;

}  // namespace weft::hca::emu
