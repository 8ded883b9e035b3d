// SPDX-License-Identifier: Apache-2.0
#include "shim/findings.h"

#include <elf.h>
#include <link.h>
#include <string.h>

#include "shim/resolve.h"
#include "shim/unseen.h"

namespace atp::shim {

constinit Findings g_findings{};

const char* const kLookupNames[kLookups] = {"dlsym_handle",     "dlsym_default",
                                            "get_proc_address", "get_proc_address_v2",
                                            "second_driver",    "runtime_entry"};
const char* const kWhyNativeNames[kWhysNative] = {"small",  "capture",     "device",   "refused",
                                                  "pool",   "range",       "exporter", "remembered",
                                                  "turned", "switched_off"};

namespace {

struct Visit {
  void (*visit)(const char*, const char*, void*);
  void* context;
};

struct Dynamic {
  const ElfW(Sym) * symbols = nullptr;
  const char* names = nullptr;
  const uint32_t* gnu_hash = nullptr;
};

Dynamic ReadDynamic(const dl_phdr_info& info) {
  Dynamic found;
  for (int i = 0; i < info.dlpi_phnum; ++i) {
    if (info.dlpi_phdr[i].p_type != PT_DYNAMIC) continue;
    const auto* entry =
        reinterpret_cast<const ElfW(Dyn)*>(info.dlpi_addr + info.dlpi_phdr[i].p_vaddr);
    for (; entry->d_tag != DT_NULL; ++entry) {
      // The loader has made these absolute, but for the kernel's own object.
      const uintptr_t address = entry->d_un.d_ptr < info.dlpi_addr
                                    ? info.dlpi_addr + entry->d_un.d_ptr
                                    : entry->d_un.d_ptr;
      if (entry->d_tag == DT_SYMTAB) found.symbols = reinterpret_cast<const ElfW(Sym)*>(address);
      if (entry->d_tag == DT_STRTAB) found.names = reinterpret_cast<const char*>(address);
      if (entry->d_tag == DT_GNU_HASH) {
        found.gnu_hash = reinterpret_cast<const uint32_t*>(address);
      }
    }
  }
  return found;
}

int VisitObject(dl_phdr_info* info, size_t, void* data) {
  const Visit& visit = *static_cast<const Visit*>(data);
  const Dynamic dynamic = ReadDynamic(*info);
  if (dynamic.symbols == nullptr || dynamic.names == nullptr || dynamic.gnu_hash == nullptr) {
    return 0;
  }
  // In a table with a GNU hash, what is imported stands before what is exported.
  const uint32_t first_exported = dynamic.gnu_hash[1];
  for (uint32_t i = 1; i < first_exported; ++i) {
    const ElfW(Sym)& symbol = dynamic.symbols[i];
    const char* name = dynamic.names + symbol.st_name;
    if (symbol.st_shndx != SHN_UNDEF || name[0] != 'c' || name[1] != 'u') continue;
    if (HookOfName(name) != nullptr || IsUnseen(name) || IsRuntimeEntry(name))
      visit.visit(info->dlpi_name, name, visit.context);
  }
  return 0;
}

}  // namespace

bool IsRuntimeEntry(const char* name) {
  constexpr char kBeginning[] = "cudaGetDriverEntryPoint";
  return strncmp(name, kBeginning, sizeof kBeginning - 1) == 0;
}

void ForEachImport(void (*visit)(const char*, const char*, void*), void* context) {
  Visit data{visit, context};
  dl_iterate_phdr(VisitObject, &data);
}

}  // namespace atp::shim
