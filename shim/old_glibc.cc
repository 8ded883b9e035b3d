// SPDX-License-Identifier: Apache-2.0
// Lets the library load where glibc is older than the one it was built on. The unwinder that gcc 12
// links in calls _dl_find_object, which glibc has since 2.35; a symbol of the same name in this
// library satisfies it, so that the library itself does not ask glibc for one. It answers from the
// program headers of the loaded objects, as unwinders did before. Only exceptions inside the shim
// come here; there are next to none. (glibc manual, "Dynamic Linker Introspection": the structure
// and the meaning of its members.)
#include <elf.h>
#include <link.h>
#include <stdint.h>

namespace {

// struct dl_find_object of glibc 2.35, x86-64.
struct FoundObject {
  unsigned long long flags;
  void* map_start;
  void* map_end;
  link_map* map;
  void* eh_frame_header;
  unsigned long long reserved[7];
};

struct Search {
  uintptr_t address;
  FoundObject* result;
};

int Look(dl_phdr_info* object, size_t, void* data) {
  auto* search = static_cast<Search*>(data);
  uintptr_t low = UINTPTR_MAX, high = 0;
  void* header = nullptr;
  for (int i = 0; i < object->dlpi_phnum; ++i) {
    const ElfW(Phdr)& segment = object->dlpi_phdr[i];
    const uintptr_t start = object->dlpi_addr + segment.p_vaddr;
    if (segment.p_type == PT_LOAD) {
      if (start < low) low = start;
      if (start + segment.p_memsz > high) high = start + segment.p_memsz;
    } else if (segment.p_type == PT_GNU_EH_FRAME) {
      header = reinterpret_cast<void*>(start);
    }
  }
  if (search->address < low || search->address >= high || header == nullptr) return 0;
  *search->result = {
      0, reinterpret_cast<void*>(low), reinterpret_cast<void*>(high), nullptr, header, {}};
  return 1;
}

}  // namespace

// The label gives the name, because a newer <dlfcn.h> declares it with its own structure.
extern "C" __attribute__((visibility("hidden"))) int AtpFindObject(
    void* address, FoundObject* result) __asm__("_dl_find_object");

int AtpFindObject(void* address, FoundObject* result) {
  Search search{reinterpret_cast<uintptr_t>(address), result};
  return dl_iterate_phdr(Look, &search) == 1 ? 0 : -1;
}
