// Tells the core that this is a loop that waits.
#pragma once

namespace weft::hca::emu {

inline void pause() noexcept {
#if defined(__x86_64__) || defined(__i386__)
  __builtin_ia32_pause();
#elif defined(__aarch64__)
  asm volatile("yield");
#endif
}

}  // namespace weft::hca::emu
