// SPDX-License-Identifier: Apache-2.0
// A second preload library, which looks up what comes behind itself with RTLD_NEXT, as profilers
// and allocators do. Prints
//   next  name  object:symbol
// at the end of the process for a few of the driver's functions and for some of libc and libm.
#include <dlfcn.h>
#include <stdio.h>
#include <string.h>

#include <initializer_list>

namespace {

void Print(const char* name) {
  void* function = dlsym(RTLD_NEXT, name);
  Dl_info info = {};
  const char* object = "-";
  if (function != nullptr && dladdr(function, &info) != 0) {
    const char* slash = strrchr(info.dli_fname, '/');
    object = slash != nullptr ? slash + 1 : info.dli_fname;
  }
  printf("next\t%s\t%s\n", name, object);
}

}  // namespace

// Defined here too, so that "next" must mean behind this library: a hook that answers with the
// first definition would find this one.
extern "C" __attribute__((visibility("default"))) int putchar_unlocked(int c) { return c; }

extern "C" __attribute__((visibility("default"))) void PrintNext() {
  for (const char* name :
       {"cuMemAlloc_v2", "cuLaunchKernel", "cuInit", "putchar_unlocked", "puts", "cuNoSuchThing"}) {
    Print(name);
  }
}
