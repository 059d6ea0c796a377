#include "hca/emu/turns.hpp"

#include <sched.h>

#include <algorithm>

#include "hca/emu/context.hpp"

namespace weft::hca::emu {
namespace {

/// Who exchanges with several others cannot be on another core than all of them, and evenly loaded
/// cores are worth more then.
constexpr unsigned waits_until_move = 32;
/// Nanoseconds. The kernel may move processes back to even out its cores: in the long run this does
/// not fight it.
constexpr std::uint64_t longest_move_gap = 1'000'000'000;

}  // namespace

void Turns::yield() noexcept {
  ::sched_yield();
}

void Turns::wait_nowhere(Context& context) noexcept {
  context.wait_nowhere();
}

bool Turns::peer_shares_core(Context& context, std::uint64_t time) noexcept {
  const int core = ::sched_getcpu();
  if (core < 0) return false;
  const auto peer = context.wait_on(static_cast<std::uint32_t>(core));
  if (!peer) return false;
  waits_for_partner_ = peer->pid == partner_ ? waits_for_partner_ + 1 : 0;
  partner_ = peer->pid;
  if (peer->core != static_cast<std::uint32_t>(core)) return false;
  // One of the two has to go.
  if (context.address().pid > peer->pid) return true;
  if (waits_for_partner_ < waits_until_move || time < next_move_) return true;
  next_move_ = time + move_gap_;
  move_gap_ = std::min(move_gap_ * 2, longest_move_gap);
  return !move_off(static_cast<unsigned>(core));
}

bool move_off(unsigned core) noexcept {
  cpu_set_t allowed;
  if (::sched_getaffinity(0, sizeof allowed, &allowed) != 0) return false;
  cpu_set_t others = allowed;
  CPU_CLR(core, &others);
  if (CPU_COUNT(&others) == 0) return false;
  if (::sched_setaffinity(0, sizeof others, &others) != 0) return false;
  (void)::sched_setaffinity(0, sizeof allowed, &allowed);
  return true;
}

}  // namespace weft::hca::emu
