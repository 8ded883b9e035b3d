// SPDX-License-Identifier: Apache-2.0
// Another vendor's preload library, of the common kind: it has a dlsym of its own, which finds
// glibc's by version and gives out its hook of one function of the driver by name. The hook calls
// what the next dlsym finds on the driver.
#include <dlfcn.h>
#include <string.h>

#define HOOK_EXPORT extern "C" __attribute__((visibility("default")))

using Dlsym = void* (*)(void*, const char*);
using DeviceGet = int (*)(int*, int);

static Dlsym NextDlsym() {
  static const Dlsym next = reinterpret_cast<Dlsym>(dlvsym(RTLD_NEXT, "dlsym", "GLIBC_2.2.5"));
  return next;
}

HOOK_EXPORT int cuDeviceGet(int* device, int ordinal) {
  static const DeviceGet next =
      reinterpret_cast<DeviceGet>(NextDlsym()(dlopen("libcuda.so.1", RTLD_NOW), "cuDeviceGet"));
  return next(device, ordinal);
}

HOOK_EXPORT void* dlsym(void* handle, const char* name) {
  if (strcmp(name, "cuDeviceGet") == 0 && handle != RTLD_NEXT) {
    return reinterpret_cast<void*>(&cuDeviceGet);
  }
  return NextDlsym()(handle, name);
}
