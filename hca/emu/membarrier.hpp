// The asymmetric fence between who posts and who goes to sleep: posting is frequent and pays
// nothing, going to sleep is rare and pays for both.
#pragma once

namespace weft::hca::emu {

/// True when other processes' membarrier() orders this process's memory accesses. Registers with
/// the kernel at the first call.
bool membarrier_reaches_us() noexcept;

/// A full fence in every process that membarrier reaches. False when the kernel has none.
bool membarrier() noexcept;

}  // namespace weft::hca::emu
