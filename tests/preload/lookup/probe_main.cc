// SPDX-License-Identifier: Apache-2.0
// Loads a probe as told and runs it: probe_main PROBE local|global|deepbind DRIVER
// [initialised]. Knows nothing of CUDA; "probe_linked" is the same program linked with the driver.
#include <dlfcn.h>
#include <stdio.h>
#include <string.h>

int main(int argc, char** argv) {
  if (argc != 4 && argc != 5) return 2;
  int flags = RTLD_NOW;
  if (strcmp(argv[2], "global") == 0) flags |= RTLD_GLOBAL;
  if (strcmp(argv[2], "deepbind") == 0) flags |= RTLD_DEEPBIND;
  void* probe = dlopen(argv[1], flags);
  if (probe == nullptr) {
    fprintf(stderr, "%s\n", dlerror());
    return 1;
  }
  // glibc's own dlsym by another road would not be what a program does; "Probe" is nobody's hook,
  // so any dlsym will do.
  return reinterpret_cast<int (*)(const char*, bool)>(dlsym(probe, "Probe"))(argv[3], argc == 5);
}
