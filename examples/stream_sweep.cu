// SPDX-License-Identifier: Apache-2.0
// Reads weights larger than the card once per pass, as inference does: layer after layer, y = W x
// with one square matrix per cudaMalloc. Every pass starts from the same vector, so every pass must
// give the same result; it is compared with the CPU's.
#include <cmath>
#include <cstdio>

#include "examples/support/blocks.cuh"
#include "examples/support/compare.h"
#include "examples/support/device.h"

namespace {

using namespace example;  // NOLINT

constexpr double kTolerance = 1e-3;
constexpr int kThreads = 128;
constexpr uint32_t kLayerSeed = 0x9e3779b9u;

struct Settings {
  long layers = 32;
  long width = 1024;
  long passes = 3;
  long seed = 1;
};

// Uniform values of variance 1 / width keep the length of the vector about the same from layer to
// layer.
float Scale(long width) { return std::sqrt(3.0f / float(width)); }

uint32_t Seed(const Settings& s, long layer) {
  return uint32_t(s.seed) + uint32_t(layer + 1) * kLayerSeed;
}

// One block a row. The order of additions is fixed.
__global__ void __launch_bounds__(kThreads)
    Multiply(const float4* matrix, const float4* in, float* out, int width4) {
  __shared__ float scratch[kThreads];
  const float4* row = matrix + size_t(blockIdx.x) * width4;
  float sum = 0;
  for (int c = threadIdx.x; c < width4; c += kThreads) {
    const float4 w = row[c], x = in[c];
    sum += w.x * x.x + w.y * x.y + w.z * x.z + w.w * x.w;
  }
  scratch[threadIdx.x] = sum;
  __syncthreads();
  for (int step = kThreads / 2; step > 0; step /= 2) {
    if (threadIdx.x < step) scratch[threadIdx.x] += scratch[threadIdx.x + step];
    __syncthreads();
  }
  if (threadIdx.x == 0) out[blockIdx.x] = scratch[0];
}

Settings ParseSettings(int argc, char** argv) {
  Settings s;
  Options options("reads all layers of weights once per pass and checks the result");
  options.Add("--layers", &s.layers, 1, 1000000, "number of layers");
  options.Add("--width", &s.width, 4, 65536, "rows and columns of a layer, a multiple of 4");
  options.Add("--passes", &s.passes, 1, 1000000000, "passes over all layers");
  options.Add("--seed", &s.seed, 0, 2147483647, "seed of the weights");
  options.Parse(argc, argv);
  if (s.width % 4) Options::Refuse("--width " + std::to_string(s.width) + " is no multiple of 4");
  return s;
}

std::vector<float> ReferenceResult(const Settings& s) {
  const size_t n = s.width;
  std::vector<float> x(n), y(n);
  for (size_t i = 0; i < n; ++i) x[i] = Uniform(Seed(s, -1), uint32_t(i), 1.0f);
  for (long l = 0; l < s.layers; ++l) {
    for (size_t r = 0; r < n; ++r) {
      float sum = 0;
      for (size_t c = 0; c < n; ++c) {
        sum += Uniform(Seed(s, l), uint32_t(r * n + c), Scale(s.width)) * x[c];
      }
      y[r] = sum;
    }
    std::swap(x, y);
  }
  return x;
}

bool Sweep(const Settings& s) {
  const size_t n = s.width, count = n * n;
  const size_t vector_bytes = n * sizeof(float);
  DeviceMemory memory;
  std::vector<float*> layers;
  for (long l = 0; l < s.layers; ++l) {
    layers.push_back(memory.Allocate<float>("layer " + std::to_string(l), count));
  }
  float* start = memory.Allocate<float>("start", n);
  float* buffers[2] = {memory.Allocate<float>("x", n), memory.Allocate<float>("y", n)};
  std::printf("footprint %zu bytes in %zu tensors\n", memory.bytes(), memory.count());
  for (long l = 0; l < s.layers; ++l) {
    Initialise<<<Blocks(count, kFlatThreads), kFlatThreads>>>(layers[l], count, Seed(s, l),
                                                              Scale(s.width), 0);
  }
  Initialise<<<Blocks(n, kFlatThreads), kFlatThreads>>>(start, n, Seed(s, -1), 1.0f, 0);
  CHECK_CUDA(cudaGetLastError());

  Stopwatch watch;
  const std::vector<float> expected = ReferenceResult(s);
  std::vector<float> result(n);
  WorstError worst(kTolerance);
  for (long pass = 1; pass <= s.passes; ++pass) {
    watch.Start();
    const float* in = start;
    for (long l = 0; l < s.layers; ++l) {
      float* out = buffers[l % 2];
      Multiply<<<unsigned(n), kThreads>>>(reinterpret_cast<const float4*>(layers[l]),
                                          reinterpret_cast<const float4*>(in), out, int(n / 4));
      in = out;
    }
    CHECK_CUDA(cudaGetLastError());
    const float ms = watch.Stop();
    CHECK_CUDA(cudaMemcpy(result.data(), in, vector_bytes, cudaMemcpyDeviceToHost));
    const double error = RelativeError(result, expected);
    std::printf("pass %ld  error %.2e  ms %.4f\n", pass, error, ms);
    std::fflush(stdout);
    worst.Note("", error);
  }
  PrintChecksum(Checksum(kChecksumStart, result.data(), n));
  const bool right = worst.Report();
  memory.FreeAll();
  return right;
}

}  // namespace

int main(int argc, char** argv) {
  return Sweep(ParseSettings(argc, argv)) ? 0 : example::kExitWrongResult;
}
