// SPDX-License-Identifier: Apache-2.0
// Errors as programs meet them: refused calls that do no harm, then an illegal access that the
// context does not survive.
#include "tests/programs/program.h"

using namespace program;  // NOLINT

__global__ void Write(int* where, int what) {
  COUNT_LAUNCH();
  *where = what;
}

int main() {
  Buffer<int> good(1);
  void* pointer = nullptr;
  EXPECT(cudaMalloc(&pointer, size_t(1) << 60) == cudaErrorMemoryAllocation);
  EXPECT(cudaPeekAtLastError() == cudaErrorMemoryAllocation);
  EXPECT(cudaGetLastError() == cudaErrorMemoryAllocation);
  EXPECT(cudaGetLastError() == cudaSuccess);
  EXPECT(cudaSetDevice(1000) == cudaErrorInvalidDevice);
  EXPECT(cudaGetLastError() == cudaErrorInvalidDevice);
  Write<<<1, 4096>>>(good.get(), 1);  // too many threads
  EXPECT(cudaGetLastError() == cudaErrorInvalidConfiguration);
  Write<<<1, 1>>>(good.get(), 42);
  const auto result = good.Download();
  EXPECT(result[0] == 42);
  const int status = Finish(result, 1);

  Write<<<1, 1>>>(reinterpret_cast<int*>(16), 1);
  EXPECT(cudaDeviceSynchronize() == cudaErrorIllegalAddress);
  EXPECT(cudaMalloc(&pointer, 16) == cudaErrorIllegalAddress);  // nothing works any more
  EXPECT(cudaGetLastError() == cudaErrorIllegalAddress);
  EXPECT(cudaGetLastError() == cudaErrorIllegalAddress);
  std::fflush(stdout);
  _Exit(status);  // the buffer cannot be freed
}
