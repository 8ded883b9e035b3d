// SPDX-License-Identifier: Apache-2.0
// A library that allocates memory and exports it, as communication libraries do. Built under
// several names, some of which are known ones; with EXPORTER_RUNTIME it asks the CUDA runtime for
// memory.
#include <cuda.h>

#ifdef EXPORTER_RUNTIME
#include <cuda_runtime_api.h>

namespace {
CUresult Allocate(CUdeviceptr* address, size_t bytes) {
  return static_cast<CUresult>(cudaMalloc(reinterpret_cast<void**>(address), bytes));
}
}  // namespace
#else
#define Allocate cuMemAlloc
#endif

extern "C" CUresult AllocateAndExport(CUdeviceptr* address, CUresult* export_result) {
  CUipcMemHandle handle;
  const CUresult result = Allocate(address, size_t{4} << 20);
  *export_result = cuIpcGetMemHandle(&handle, *address);
  return result;
}
