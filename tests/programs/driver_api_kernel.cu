// SPDX-License-Identifier: Apache-2.0
// The device side of driver_api.cc: compiled to a PTX file that the program loads.
extern "C" __global__ void Axpy(float a, const float* x, float* y, int count) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < count) y[i] += a * x[i];
}
