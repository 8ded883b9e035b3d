// SPDX-License-Identifier: Apache-2.0
// A libcuda.so.1 that only answers look-ups, with the whole table of exported names and versions
// (make_table.py): the oracle of the look-up tests. It also says of which version it is, which
// newer runtimes ask first; its other functions say "not supported". With
// TABLE_NEWER it is a driver from the future: one name and one version more. With TABLE_LOG in the
// environment each look-up is appended to that file.
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define DRIVER_EXPORT extern "C" __attribute__((visibility("default")))

#define cuGetProcAddress table_cuGetProcAddress  // defined below, in earnest
#define cuGetProcAddress_v2 table_cuGetProcAddress_v2
#define cuDriverGetVersion table_cuDriverGetVersion
#define EXPORT(symbol) \
  DRIVER_EXPORT int symbol() { return 801; }
#define ROW(name, version, flags, symbol)
#include TABLE_FILE
#undef EXPORT
#undef ROW
#undef cuGetProcAddress
#undef cuGetProcAddress_v2
#undef cuDriverGetVersion

DRIVER_EXPORT int cuGetProcAddress(const char*, void**, int, uint64_t);
DRIVER_EXPORT int cuGetProcAddress_v2(const char*, void**, int, uint64_t, int*);
DRIVER_EXPORT int cuDriverGetVersion(int*);

#ifdef TABLE_NEWER
DRIVER_EXPORT int cuNewThing() { return 801; }
DRIVER_EXPORT int cuMemAlloc_v3() { return 801; }
#endif

namespace {

struct Row {
  const char* name;
  int version;
  uint64_t flags;
  void* function;
};

#define EXPORT(symbol)
#define ROW(name, version, flags, symbol) {#name, version, flags, reinterpret_cast<void*>(&symbol)},
const Row kRows[] = {
#include TABLE_FILE
#ifdef TABLE_NEWER
    {"cuNewThing", 14000, 0, reinterpret_cast<void*>(&cuNewThing)},
    {"cuMemAlloc", 14000, 0, reinterpret_cast<void*>(&cuMemAlloc_v3)},
#endif
};

enum Status { kFound, kUnknownName, kVersionTooOld };

Status Find(const char* name, int version, uint64_t flags, void** function) {
  const Row* best = nullptr;
  bool known = false;
  for (const Row& row : kRows) {
    if (strcmp(row.name, name) != 0 || (row.flags & ~flags) != 0) continue;
    known = true;
    if (row.version > version) continue;
    const bool twin = best != nullptr && row.flags > best->flags;  // the twin where one exists
    const bool newer = best != nullptr && row.flags == best->flags && row.version > best->version;
    if (best == nullptr || twin || newer) best = &row;
  }
  *function = best != nullptr ? best->function : nullptr;
  return best != nullptr ? kFound : known ? kVersionTooOld : kUnknownName;
}

void Log(const char* name, int version, uint64_t flags) {
  const char* path = getenv("TABLE_LOG");
  FILE* file = path != nullptr ? fopen(path, "ae") : nullptr;
  if (file == nullptr) return;
  fprintf(file, "%s\t%d\t%llu\n", name, version, static_cast<unsigned long long>(flags));
  fclose(file);
}

}  // namespace

int cuGetProcAddress_v2(const char* name, void** function, int version, uint64_t flags,
                        int* status) {
  Log(name, version, flags);
  const Status found = Find(name, version, flags, function);
  if (status != nullptr) *status = found;
  return found == kUnknownName ? 500 : 0;
}

int cuGetProcAddress(const char* name, void** function, int version, uint64_t flags) {
  return cuGetProcAddress_v2(name, function, version, flags, nullptr);
}

// The toolkit that the newest function came with.
int cuDriverGetVersion(int* version) {
  *version = 0;
  for (const Row& row : kRows) {
    if (row.version > *version) *version = row.version;
  }
  return 0;
}
