// SPDX-License-Identifier: Apache-2.0
#include "shim/deepbind.h"

#include <dlfcn.h>
#include <elf.h>
#include <stdint.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "shim/call_site.h"
#include "shim/lookup.h"
#include "shim/resolve.h"
#include "shim/settings.h"

using DlopenFunction = void* (*)(const char*, int);

extern "C" {
__attribute__((visibility("hidden"))) DlopenFunction atp_real_dlopen = nullptr;
__attribute__((visibility("hidden"))) AtpDlAnswer AtpRouteDlopen(const char* path, int flags);
}

namespace atp::shim {
namespace {

struct Object {
  const ElfW(Sym) * symbols = nullptr;
  const char* strings = nullptr;
  const ElfW(Rela) * tables[2] = {};
  size_t counts[2] = {};
};

// glibc relocates these entries of the dynamic section in memory on x86-64; an object that it
// leaves alone has offsets.
const void* Pointer(const link_map& map, const ElfW(Dyn) & entry) {
  const uintptr_t value = entry.d_un.d_ptr;
  return reinterpret_cast<const void*>(value < map.l_addr ? map.l_addr + value : value);
}

Object ReadObject(const link_map& map) {
  Object object;
  for (const ElfW(Dyn)* entry = map.l_ld; entry->d_tag != DT_NULL; ++entry) {
    switch (entry->d_tag) {
      case DT_SYMTAB:
        object.symbols = static_cast<const ElfW(Sym)*>(Pointer(map, *entry));
        break;
      case DT_STRTAB:
        object.strings = static_cast<const char*>(Pointer(map, *entry));
        break;
      case DT_JMPREL:
        object.tables[0] = static_cast<const ElfW(Rela)*>(Pointer(map, *entry));
        break;
      case DT_PLTRELSZ:
        object.counts[0] = entry->d_un.d_val / sizeof(ElfW(Rela));
        break;
      case DT_RELA:
        object.tables[1] = static_cast<const ElfW(Rela)*>(Pointer(map, *entry));
        break;
      case DT_RELASZ:
        object.counts[1] = entry->d_un.d_val / sizeof(ElfW(Rela));
        break;
      default:
        break;
    }
  }
  return object;
}

void* Replacement(const char* symbol) {
  if (strcmp(symbol, "dlsym") == 0) return reinterpret_cast<void*>(&dlsym);    // ours: this library
  if (strcmp(symbol, "dlopen") == 0) return reinterpret_cast<void*>(&dlopen);  // binds to itself
  const HookRow* row = HookOfName(symbol);
  return row != nullptr ? row->hook : nullptr;
}

// Calls through stubs, calls without them, and tables of addresses in the program's data.
bool HoldsAddress(const ElfW(Rela) & relocation) {
  const uint32_t type = ELF64_R_TYPE(relocation.r_info);
  return type == R_X86_64_JUMP_SLOT || type == R_X86_64_GLOB_DAT ||
         (type == R_X86_64_64 && relocation.r_addend == 0);
}

// The slot may lie in a part that was made read-only after relocation; it is made so again.
void Write(void** slot, void* value) {
  const uintptr_t page_bytes = static_cast<uintptr_t>(sysconf(_SC_PAGESIZE));
  const uintptr_t page = reinterpret_cast<uintptr_t>(slot) & ~(page_bytes - 1);
  struct Query {
    uintptr_t slot;
    bool read_only;
  } query = {reinterpret_cast<uintptr_t>(slot), false};
  dl_iterate_phdr(
      [](dl_phdr_info* info, size_t, void* data) {
        auto* asked = static_cast<Query*>(data);
        for (int i = 0; i < info->dlpi_phnum; ++i) {
          const ElfW(Phdr)& segment = info->dlpi_phdr[i];
          const uintptr_t start = info->dlpi_addr + segment.p_vaddr;
          if (segment.p_type == PT_GNU_RELRO && asked->slot >= start &&
              asked->slot < start + segment.p_memsz) {
            asked->read_only = true;
            return 1;
          }
        }
        return 0;
      },
      &query);
  if (query.read_only &&
      mprotect(reinterpret_cast<void*>(page), page_bytes, PROT_READ | PROT_WRITE) != 0) {
    return;
  }
  __atomic_store_n(slot, value, __ATOMIC_RELEASE);
  if (query.read_only) mprotect(reinterpret_cast<void*>(page), page_bytes, PROT_READ);
}

void PatchObject(const link_map& map) {
  const Object object = ReadObject(map);
  if (object.symbols == nullptr || object.strings == nullptr) return;
  for (int table = 0; table < 2; ++table) {
    for (size_t i = 0; object.tables[table] != nullptr && i < object.counts[table]; ++i) {
      const ElfW(Rela)& relocation = object.tables[table][i];
      if (!HoldsAddress(relocation)) continue;
      const ElfW(Sym)& symbol = object.symbols[ELF64_R_SYM(relocation.r_info)];
      if (symbol.st_shndx != SHN_UNDEF) continue;  // defined here: not an import
      void* ours = Replacement(object.strings + symbol.st_name);
      if (ours != nullptr) {
        Write(reinterpret_cast<void**>(map.l_addr + relocation.r_offset), ours);
      }
    }
  }
}

link_map* LastObject() {
  // A handle of an object is its link_map in glibc; any object's list leads to the end.
  auto* map = static_cast<link_map*>(atp_real_dlopen(nullptr, RTLD_LAZY));
  while (map != nullptr && map->l_next != nullptr) map = map->l_next;
  return map;
}

}  // namespace

void PatchObjectsAfter(link_map* last) {
  for (link_map* map = last->l_next; map != nullptr; map = map->l_next) {
    // The driver's own imports are its own business.
    const char* slash = strrchr(map->l_name, '/');
    if (strncmp(slash != nullptr ? slash + 1 : map->l_name, "libcuda.so", 10) == 0) continue;
    PatchObject(*map);
  }
}

}  // namespace atp::shim

AtpDlAnswer AtpRouteDlopen(const char* path, int flags) {
  using namespace atp::shim;
  constexpr AtpDlAnswer kPass = {nullptr, 0};
  if (atp_real_dlopen == nullptr) {
    atp_real_dlopen = reinterpret_cast<DlopenFunction>(NextFunction("dlopen"));
  }
  g_dlopens.fetch_add(1, std::memory_order_release);
  if ((flags & RTLD_DEEPBIND) == 0 || path == nullptr || atp_real_dlopen == nullptr) return kPass;
  ReadSettings();
  if (Settings().policy == Policy::kOff || Settings().Disabled(kDisableDeepbind)) return kPass;
  link_map* last = LastObject();
  if (last == nullptr) return kPass;
  void* handle = atp_real_dlopen(path, flags);
  // A bare name may only be found by the caller's own search path: then the real dlopen, called by
  // the caller, finds it, unpatched.
  if (handle == nullptr) return kPass;
  PatchObjectsAfter(last);
  return {handle, 1};
}
