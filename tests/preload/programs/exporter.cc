// SPDX-License-Identifier: Apache-2.0
// A library that allocates memory and exports it, as communication libraries do. Built under two
// names, one of which is a known one.
#include <cuda.h>

extern "C" CUresult AllocateAndExport(CUdeviceptr* address, CUresult* export_result) {
  CUipcMemHandle handle;
  const CUresult result = cuMemAlloc(address, size_t{4} << 20);
  *export_result = cuIpcGetMemHandle(&handle, *address);
  return result;
}
