// SPDX-License-Identifier: Apache-2.0
// A second preload library, which looks up what comes behind itself with RTLD_NEXT, as profilers
// and allocators do. Prints
//   next  name  object:symbol
// for all of the driver's functions and for some of libc and libm. Its dlsym is the default version
// or, with PROBE_OLD_DLSYM, the one that libraries built on older systems import.
#include <dlfcn.h>
#include <stdio.h>
#include <string.h>

#ifdef PROBE_OLD_DLSYM
__asm__(".symver dlsym, dlsym@GLIBC_2.2.5");
#endif

namespace {

const char* const kNames[] = {
#define EXPORT(symbol) #symbol,
#define ROW(name, version, flags, symbol)
#include TABLE_FILE
#undef EXPORT
#undef ROW
    "putchar_unlocked",
    "puts",
    "cuNoSuchThing",
};

void Print(const char* name) {
  void* function = dlsym(RTLD_NEXT, name);
  Dl_info info = {};
  const char* object = "-";
  const char* symbol = "-";
  if (function != nullptr && dladdr(function, &info) != 0) {
    const char* slash = strrchr(info.dli_fname, '/');
    object = slash != nullptr ? slash + 1 : info.dli_fname;
    if (strncmp(name, "cu", 2) == 0 && info.dli_sname != nullptr) symbol = info.dli_sname;
  }
  printf("next\t%s\t%s:%s\n", name, object, symbol);
}

}  // namespace

// Defined here too, so that "next" must mean behind this library: a hook that answers with the
// first definition would find this one.
extern "C" __attribute__((visibility("default"))) int putchar_unlocked(int c) { return c; }

extern "C" __attribute__((visibility("default"))) void PrintNext() {
  for (const char* name : kNames) Print(name);
}
