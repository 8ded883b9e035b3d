// SPDX-License-Identifier: Apache-2.0
// Layers whose results wait for a backward pass, element by element: 12 x 2 MiB, in a loop. Every
// launch that writes one writes all of it, and could run again instead (docs/recompute.md), so
// nothing counts the launches on the device. With a second argument the host looks at some of them
// now and then, in the middle of a period.
#include "tests/programs/program.h"

using namespace program;  // NOLINT

__global__ void Forward(float* out, const float* in, float scale, int count) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < count) out[i] = scale * in[i] + 0.25f * in[i] * in[i];
}

__global__ void Backward(float* gradient, const float* from, const float* in, float scale,
                         int count) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < count) gradient[i] = from[i] * (scale + 0.5f * in[i]);
}

__global__ void Update(float* values, const float* gradient, int count) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < count) values[i] -= 0.01f * gradient[i];
}

int main(int argc, char** argv) {
  constexpr int kLayers = 12, kIterations = 24;
  const int count = Scale(argc, argv) * (1 << 19);
  const unsigned threads = 256, blocks = Blocks(count, threads);
  const float scale = 0.75f;
  Random random(1);
  const auto first = random.Floats(count, -1, 1);
  std::vector<Buffer<float>*> layers = {new Buffer<float>(first)};
  for (int l = 0; l < kLayers; ++l) layers.push_back(new Buffer<float>(count));
  const bool looks = argc > 2;
  std::vector<float> seen;
  Buffer<float> gradients[2] = {Buffer<float>(count), Buffer<float>(count)};
  for (int iteration = 0; iteration < kIterations; ++iteration) {
    for (int l = 0; l < kLayers; ++l) {
      Forward<<<blocks, threads>>>(layers[l + 1]->get(), layers[l]->get(), scale, count);
    }
    const float* from = layers[kLayers]->get();
    for (int l = kLayers - 1; l >= 0; --l) {
      float* to = gradients[l % 2].get();
      Backward<<<blocks, threads>>>(to, from, layers[l]->get(), scale, count);
      from = to;
      if (!looks || iteration < 19 || iteration % 2 == 0 || l != 29 - iteration) continue;
      for (int other = 0; other <= kLayers; other += 3) {
        float one = 0;
        CUDA_OK(cudaMemcpy(&one, layers[other]->get() + count / 3, 4, cudaMemcpyDeviceToHost));
        seen.push_back(one);
      }
    }
    Update<<<blocks, threads>>>(layers[0]->get(), from, count);
  }
  CUDA_OK(cudaDeviceSynchronize());
  CUDA_OK(cudaGetLastError());
  const std::vector<float> result = layers[0]->Download();

  // Some of them, again on the host.
  for (int i = 0; i < count; i += count / 64 + 1) {
    double value = first[i];
    for (int iteration = 0; iteration < kIterations; ++iteration) {
      double at[kLayers + 1] = {value};
      for (int l = 0; l < kLayers; ++l) at[l + 1] = scale * at[l] + 0.25 * at[l] * at[l];
      double gradient = at[kLayers];
      for (int l = kLayers - 1; l >= 0; --l) gradient *= scale + 0.5 * at[l];
      value -= 0.01 * gradient;
    }
    EXPECT(std::fabs(value - result[i]) <= 1e-4);
  }
  uint64_t sum = 0xcbf29ce484222325ull;
  const auto* bytes = reinterpret_cast<const unsigned char*>(result.data());
  for (size_t i = 0; i < result.size() * sizeof(float); ++i) {
    sum = (sum ^ bytes[i]) * 0x100000001b3ull;
  }
  for (const float one : seen) sum = (sum ^ __builtin_bit_cast(unsigned, one)) * 0x100000001b3ull;
  std::printf("checksum %016llx\nfootprint %zu\nPASS\n", static_cast<unsigned long long>(sum),
              Footprint());
  for (Buffer<float>* layer : layers) delete layer;
  return 0;
}
