// SPDX-License-Identifier: Apache-2.0
// A library as profilers are: the driver loads it in cuInit (CUDA_INJECTION64_PATH, documented with
// CUPTI) and calls its entry, which uses the driver at once and from a thread of its own.
#include <cuda.h>
#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>

namespace {

template <typename F>
F Find(const char* symbol) {
  return reinterpret_cast<F>(dlsym(dlopen("libcuda.so.1", RTLD_NOW), symbol));
}

pthread_t watcher;
int good = 0;  // calls of its thread that worked

void* Watch(void*) {
  CUcontext context;
  Find<decltype(&cuDevicePrimaryCtxRetain)>("cuDevicePrimaryCtxRetain")(&context, 0);
  Find<decltype(&cuCtxSetCurrent)>("cuCtxSetCurrent")(context);
  for (int i = 0; i < 100; ++i) {
    size_t free = 0, total = 0;
    CUdeviceptr address = 0;
    good += Find<decltype(&cuMemGetInfo)>("cuMemGetInfo_v2")(&free, &total) == CUDA_SUCCESS;
    good += Find<decltype(&cuMemAlloc)>("cuMemAlloc_v2")(&address, 3u << 20) == CUDA_SUCCESS;
    good += Find<decltype(&cuMemFree)>("cuMemFree_v2")(address) == CUDA_SUCCESS;
  }
  return nullptr;
}

__attribute__((destructor)) void AtEnd() {
  if (watcher == 0) return;
  pthread_join(watcher, nullptr);
  printf("its thread: %d calls worked\n", good);
}

}  // namespace

extern "C" __attribute__((visibility("default"))) int InitializeInjection() {
  int version = 0;
  const auto ask = Find<decltype(&cuGetProcAddress)>("cuGetProcAddress_v2");
  void* launch = nullptr;
  CUdriverProcAddressQueryResult status;
  const bool found = ask("cuLaunchKernel", &launch, 13000, 0, &status) == CUDA_SUCCESS;
  Find<decltype(&cuDriverGetVersion)>("cuDriverGetVersion")(&version);
  printf("injected: driver %d, launches %s\n", version, found && launch ? "found" : "not found");
  pthread_create(&watcher, nullptr, Watch, nullptr);
  return 1;
}
