// SPDX-License-Identifier: Apache-2.0
// Asks the driver for memory on behalf of who calls: a library whose file name says what it is.
#include <cuda.h>

extern "C" __attribute__((visibility("default"))) CUresult CostAllocate(CUdeviceptr* address,
                                                                        size_t bytes) {
  const CUresult result = cuMemAlloc(address, bytes);
  if (result != CUDA_SUCCESS) *address = 0;  // so that the call is not the end of this function
  return result;
}
