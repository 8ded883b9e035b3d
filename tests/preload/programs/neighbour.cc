// SPDX-License-Identifier: Apache-2.0
// Holds plain memory of a card for a time of the card's clock, and works on it now and then:
// neighbour MIB MILLISECONDS. A program beside others on the card, that moves nothing.
#include <cuda.h>
#include <stdio.h>
#include <stdlib.h>

int main(int argc, char** argv) {
  if (argc < 3) return 2;
  const size_t bytes = strtoul(argv[1], nullptr, 10) << 20, piece = size_t{1} << 20;
  const double milliseconds = atof(argv[2]);
  CUcontext context;
  CUevent begun, now;
  CUdeviceptr memory = 0;
  if (cuInit(0) != CUDA_SUCCESS || cuDevicePrimaryCtxRetain(&context, 0) != CUDA_SUCCESS ||
      cuCtxSetCurrent(context) != CUDA_SUCCESS || cuEventCreate(&begun, 0) != CUDA_SUCCESS ||
      cuEventCreate(&now, 0) != CUDA_SUCCESS || cuMemAlloc(&memory, bytes) != CUDA_SUCCESS ||
      cuEventRecord(begun, nullptr) != CUDA_SUCCESS) {
    return 2;
  }
  printf("holds %zu MiB\n", bytes >> 20);
  fflush(stdout);
  for (float passed = 0; passed < milliseconds;) {
    for (size_t at = 0; at < bytes; at += piece) {
      if (cuMemsetD32Async(memory + at, 1, piece / 4, nullptr) != CUDA_SUCCESS) return 1;
    }
    if (cuEventRecord(now, nullptr) != CUDA_SUCCESS || cuEventSynchronize(now) != CUDA_SUCCESS ||
        cuEventElapsedTime(&passed, begun, now) != CUDA_SUCCESS) {
      return 1;
    }
  }
  return cuMemFree(memory) == CUDA_SUCCESS ? 0 : 1;
}
