// SPDX-License-Identifier: Apache-2.0
// Takes half as much again as the device has, writes it all and reads it back. By the documented prototypes of the CUDA driver API, so that it
// compiles without a toolkit.
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>

#define BLOCKS 12
typedef unsigned long long Address;

static void *driver;
static void *Find(const char *name) {
  void *function = dlsym(driver, name);
  if (!function) {
    printf("no %s\n", name);
    exit(3);
  }
  return function;
}
static void Check(int result, const char *what) {
  if (!result) return;
  printf("%s: %s\n", what, result == 2 ? "out of memory" : "error");
  exit(result == 2 ? 2 : 1);
}

int main(void) {
  driver = dlopen("libcuda.so.1", RTLD_NOW);
  if (!driver) {
    printf("%s\n", dlerror());
    return 3;
  }
  void *context;
  size_t total;
  Address block[BLOCKS];
  Check(((int (*)(unsigned))Find("cuInit"))(0), "cuInit");
  Check(((int (*)(void **, int))Find("cuDevicePrimaryCtxRetain"))(&context, 0), "context");
  Check(((int (*)(void *))Find("cuCtxSetCurrent"))(context), "context");
  Check(((int (*)(size_t *, int))Find("cuDeviceTotalMem_v2"))(&total, 0), "size");
  const size_t bytes = total / 8 / 4096 * 4096;
  for (int i = 0; i < BLOCKS; ++i) {
    Check(((int (*)(Address *, size_t))Find("cuMemAlloc_v2"))(&block[i], bytes), "allocation");
    Check(((int (*)(Address, unsigned, size_t))Find("cuMemsetD32_v2"))(block[i], 1000 + i, bytes / 4), "set");
  }
  unsigned *host = malloc(bytes);
  for (int i = 0; i < BLOCKS; ++i) {
    Check(((int (*)(void *, Address, size_t))Find("cuMemcpyDtoH_v2"))(host, block[i], bytes), "copy");
    for (size_t k = 0; k < bytes / 4; ++k) {
      if (host[k] == 1000 + (unsigned)i) continue;
      printf("wrong value in block %d\n", i);
      return 1;
    }
    Check(((int (*)(Address))Find("cuMemFree_v2"))(block[i]), "free");
  }
  printf("right\n");
  return 0;
}
