// SPDX-License-Identifier: Apache-2.0
extern "C" __global__ void Bump(unsigned* values, unsigned count) {
  const unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < count) values[i] += 1;
}
