// SPDX-License-Identifier: Apache-2.0
// Loads a library that exports what it allocates, and does the same itself:
//   exports LIBRARY [TIMES]
// Plain memory can be exported; managed memory is "invalid value", as it is with NVIDIA's driver.
// TIMES: the library is asked for more and more, until it gets no more.
#include <cuda.h>
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>

#include <initializer_list>

namespace {

void Say(const char* what, CUresult result) {
  const char* name = "?";
  cuGetErrorName(result, &name);
  printf("%s: %s\n", what, name);
}

}  // namespace

int main(int argc, char** argv) {
  CUcontext context;
  if (argc < 2 || cuInit(0) != CUDA_SUCCESS ||
      cuDevicePrimaryCtxRetain(&context, 0) != CUDA_SUCCESS ||
      cuCtxSetCurrent(context) != CUDA_SUCCESS) {
    return 1;
  }
  CUdeviceptr own = 0, theirs = 0;
  CUipcMemHandle handle;
  cuMemAlloc(&own, size_t{4} << 20);
  Say("own export", cuIpcGetMemHandle(&handle, own));
  void* library = dlopen(argv[1], RTLD_NOW);
  if (library == nullptr) {
    printf("%s\n", dlerror());
    return 1;
  }
  const auto run =
      reinterpret_cast<CUresult (*)(CUdeviceptr*, CUresult*)>(dlsym(library, "AllocateAndExport"));
  CUresult exported = CUDA_SUCCESS;
  Say("their allocation", run(&theirs, &exported));
  Say("their export", exported);
  for (int i = 0; argc > 2 && i < atoi(argv[2]); ++i) {
    CUdeviceptr more = 0;
    if (const CUresult result = run(&more, &exported)) return Say("no more", result), 0;
  }
  CUdeviceptr again = 0;
  cuMemAlloc(&again, size_t{4} << 20);
  Say("own export after it", cuIpcGetMemHandle(&handle, again));
  for (CUdeviceptr address : {own, theirs, again}) Say("free", cuMemFree(address));
  return 0;
}
