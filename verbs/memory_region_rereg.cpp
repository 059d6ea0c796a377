// Re-registration: another translation, PD or access under the same handle and keys.
#include <cerrno>
#include <mutex>

#include "verbs/fork_ranges.hpp"
#include "verbs/layout.hpp"
#include "verbs/log.hpp"
#include "verbs/memory_region.hpp"
#include "verbs/memory_window.hpp"

namespace weft::verbs {

namespace {

/// What is to change, and to what.
struct Change {
  int flags;
  ibv_pd* pd;
  void* addr;
  std::size_t length;
  unsigned access;

  [[nodiscard]] bool of(int flag) const noexcept { return (flags & flag) != 0; }
};

/// Throws hca::Error for what is wrong before anything has been tried.
void check(const MemoryRegion& mr, const Change& change) {
  constexpr int known =
      IBV_REREG_MR_CHANGE_TRANSLATION | IBV_REREG_MR_CHANGE_PD | IBV_REREG_MR_CHANGE_ACCESS;
  if ((change.flags & ~known) != 0 || change.flags == 0) {
    refuse(EINVAL,
           "flags " + std::to_string(change.flags) + ", known are " + std::to_string(known));
  }
  if (change.of(IBV_REREG_MR_CHANGE_TRANSLATION) &&
      (change.length == 0 || change.addr == nullptr)) {
    refuse(EINVAL, "a changed translation needs an address and a length, given " +
                       std::to_string(change.length) + " bytes");
  }
  if (change.access != 0 && !change.of(IBV_REREG_MR_CHANGE_ACCESS)) {
    refuse(EINVAL, "access without IBV_REREG_MR_CHANGE_ACCESS");
  }
  if (change.of(IBV_REREG_MR_CHANGE_PD) &&
      (change.pd == nullptr || change.pd->context != mr.context)) {
    refuse(EINVAL, "the new PD is of another context, or none");
  }
  access_of(change.access);
  if ((change.access & ~mr.access & IBV_ACCESS_ZERO_BASED) != 0) {
    refuse(EINVAL, "the region is not zero-based, and that does not change");
  }
  if (!mr.may_carry) refuse(EINVAL, "the region is one of device memory, of pages, or the null MR");
}

/// Throws hca::Error when something refers to the region, or it has a layout. Under the lock.
void check_unused(const MemoryRegion& mr) {
  if (mr.layout || mr.staged) refuse(EINVAL, "the region has a layout");
  if (const int users = mr.users + windows_on(mr); users != 0) {
    refuse(EBUSY, std::to_string(users) + " windows or layouts refer to the region");
  }
}

/// What the device does. Throws hca::Error; the old region stays then.
void carry_out(MemoryRegion& mr, const Change& change) {
  const bool translation = change.of(IBV_REREG_MR_CHANGE_TRANSLATION);
  const unsigned zero_based = mr.access & IBV_ACCESS_ZERO_BASED;
  const unsigned access =
      (change.of(IBV_REREG_MR_CHANGE_ACCESS) ? change.access : mr.access) | zero_based;
  void* const addr = translation ? change.addr : mr.addr;
  const std::uint64_t length = translation ? change.length : mr.length;
  const std::uint64_t iova = zero_based != 0 ? 0
                             : translation   ? reinterpret_cast<std::uint64_t>(addr)
                                             : mr.iova;
  ibv_pd* const pd = change.of(IBV_REREG_MR_CHANGE_PD) ? change.pd : mr.pd;
  check_range(addr, length, iova);
  populate(addr, length, (access & IBV_ACCESS_LOCAL_WRITE) != 0);
  hca::emu::Region region{iova,
                          length,
                          static_cast<std::byte*>(addr),
                          nullptr,
                          access_of(access),
                          ProtectionDomain::of(pd).core->number()};
  region.owner = &mr;
  const std::scoped_lock guard(lock_of(mr));
  check_unused(mr);
  mr.core->rebind(mr.core->lkey(), std::move(region));
  ++ProtectionDomain::of(pd).users;
  --ProtectionDomain::of(mr.pd).users;
  mr.pd = pd;
  mr.addr = addr;
  mr.length = length;
  mr.iova = iova;
  mr.access = access;
}

}  // namespace

int rereg_mr(ibv_mr* which, int flags, ibv_pd* pd, void* addr, std::size_t length, int access) {
  constexpr const char* call = "ibv_rereg_mr";
  auto& mr = MemoryRegion::of(which);
  const Change change{flags, pd, addr, length, static_cast<unsigned>(access)};
  const bool translation = change.of(IBV_REREG_MR_CHANGE_TRANSLATION);
  const int bad_input = guarded(call, [&] {
    check(mr, change);
    const std::scoped_lock guard(lock_of(mr));
    check_unused(mr);
  });
  if (bad_input != 0) return IBV_REREG_MR_ERR_INPUT;
  const auto failed = [&](int code, int error, const char* what) {
    log_refusal(call, code, std::to_string(length) + what);
    errno = code;
    return error;
  };
  if (translation) {
    if (const int code = fork_ranges().dont_fork(addr, length)) {
      return failed(code, IBV_REREG_MR_ERR_DONT_FORK_NEW,
                    " new bytes cannot be kept from child processes");
    }
  }
  if (const int code = guarded(call, [&] { carry_out(mr, change); })) {
    if (translation && fork_ranges().do_fork(addr, length) != 0) {
      return failed(code, IBV_REREG_MR_ERR_CMD_AND_DO_FORK_NEW,
                    " new bytes remain kept from child processes");
    }
    errno = code;
    return IBV_REREG_MR_ERR_CMD;
  }
  if (!translation) return 0;
  const std::span<std::byte> old = mr.pinned;
  mr.pinned = {static_cast<std::byte*>(addr), length};
  if (const int code = fork_ranges().do_fork(old.data(), old.size())) {
    return failed(code, IBV_REREG_MR_ERR_DO_FORK_OLD,
                  " bytes are registered, the old ones remain kept from child processes");
  }
  return 0;
}

}  // namespace weft::verbs
