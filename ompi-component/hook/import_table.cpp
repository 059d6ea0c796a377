#include "ompi-component/hook/import_table.hpp"

#include <dlfcn.h>
#include <elf.h>
#include <link.h>
#include <sys/mman.h>
#include <unistd.h>

#include <atomic>
#include <cstdint>
#include <cstring>
#include <span>

namespace weft::ompi {
namespace {

#if defined __x86_64__
constexpr ElfW(Xword) of_a_function = R_X86_64_JUMP_SLOT;
constexpr ElfW(Xword) of_an_address = R_X86_64_GLOB_DAT;
#elif defined __aarch64__
constexpr ElfW(Xword) of_a_function = R_AARCH64_JUMP_SLOT;
constexpr ElfW(Xword) of_an_address = R_AARCH64_GLOB_DAT;
#else
constexpr ElfW(Xword) of_a_function = ~ElfW(Xword){0};  // matches nothing
constexpr ElfW(Xword) of_an_address = of_a_function;
#endif

/// What the dynamic section says, as far as it is needed; the loader has made its pointers
/// absolute.
struct Dynamic {
  const ElfW(Sym) * symbols = nullptr;
  const char* names = nullptr;
  std::span<const ElfW(Rela)> functions, addresses;

  explicit Dynamic(const ElfW(Dyn) * entry) noexcept {
    const ElfW(Rela) * lists[2] = {};
    std::size_t bytes[2] = {};
    for (; entry->d_tag != DT_NULL; ++entry) {
      switch (entry->d_tag) {
        case DT_SYMTAB:
          symbols = reinterpret_cast<const ElfW(Sym)*>(entry->d_un.d_ptr);
          break;
        case DT_STRTAB:
          names = reinterpret_cast<const char*>(entry->d_un.d_ptr);
          break;
        case DT_JMPREL:
          lists[0] = reinterpret_cast<const ElfW(Rela)*>(entry->d_un.d_ptr);
          break;
        case DT_PLTRELSZ:
          bytes[0] = entry->d_un.d_val;
          break;
        case DT_RELA:
          lists[1] = reinterpret_cast<const ElfW(Rela)*>(entry->d_un.d_ptr);
          break;
        case DT_RELASZ:
          bytes[1] = entry->d_un.d_val;
          break;
        default:
          break;
      }
    }
    if (symbols == nullptr || names == nullptr) return;
    if (lists[0] != nullptr) functions = {lists[0], bytes[0] / sizeof(ElfW(Rela))};
    if (lists[1] != nullptr) addresses = {lists[1], bytes[1] / sizeof(ElfW(Rela))};
  }
};

}  // namespace

void** import_of(const void* inside, const char* name) noexcept {
  Dl_info info;
  link_map* map = nullptr;
  if (dladdr1(inside, &info, reinterpret_cast<void**>(&map), RTLD_DL_LINKMAP) == 0 ||
      map == nullptr)
    return nullptr;
  const Dynamic dynamic(map->l_ld);
  for (const auto& list : {dynamic.functions, dynamic.addresses}) {
    for (const ElfW(Rela) & relocation : list) {
      const auto type = ELF64_R_TYPE(relocation.r_info);
      if (type != of_a_function && type != of_an_address) continue;
      const ElfW(Sym)& symbol = dynamic.symbols[ELF64_R_SYM(relocation.r_info)];
      if (std::strcmp(dynamic.names + symbol.st_name, name) == 0)
        return reinterpret_cast<void**>(map->l_addr + relocation.r_offset);
    }
  }
  return nullptr;
}

bool set_import(void** import, void* function) noexcept {
  // Libraries linked with "-z now" have the table read-only; it stays as writable as most have it.
  const auto page_size = static_cast<std::uintptr_t>(sysconf(_SC_PAGESIZE));
  const std::uintptr_t page = reinterpret_cast<std::uintptr_t>(import) & ~(page_size - 1);
  if (mprotect(reinterpret_cast<void*>(page), page_size, PROT_READ | PROT_WRITE) != 0) return false;
  std::atomic_ref(*import).store(function, std::memory_order_release);
  return true;
}

}  // namespace weft::ompi
