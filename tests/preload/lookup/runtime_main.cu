// SPDX-License-Identifier: Apache-2.0
// NVIDIA's own runtime, which looks the driver up and then finds that it is not one it can work
// with: says what error that is.
#include <cuda_runtime.h>

#include <cstdio>

int main() {
  int count = -1;
  std::printf("error %d\n", static_cast<int>(cudaGetDeviceCount(&count)));
  return 0;
}
