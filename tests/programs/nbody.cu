// SPDX-License-Identifier: Apache-2.0
// All-pairs gravity with tiles of bodies in shared memory, several steps.
#include "tests/programs/program.h"

using namespace program;  // NOLINT

constexpr int kBodies = 512, kThreads = 128, kSteps = 3;
constexpr float kSoftening = 0.01f, kStep = 0.01f;

__global__ void Move(const float4* in, float4* out, float4* velocities) {
  COUNT_LAUNCH();
  __shared__ float4 tile[kThreads];
  const int i = blockIdx.x * kThreads + threadIdx.x;
  const float4 own = in[i];
  float ax = 0, ay = 0, az = 0;
  for (int t = 0; t < kBodies; t += kThreads) {
    tile[threadIdx.x] = in[t + threadIdx.x];
    __syncthreads();
    for (int j = 0; j < kThreads; ++j) {
      const float dx = tile[j].x - own.x, dy = tile[j].y - own.y, dz = tile[j].z - own.z;
      const float inverse = rsqrtf(dx * dx + dy * dy + dz * dz + kSoftening);
      const float pull = tile[j].w * inverse * inverse * inverse;
      ax += dx * pull;
      ay += dy * pull;
      az += dz * pull;
    }
    __syncthreads();
  }
  float4 v = velocities[i];
  v.x += ax * kStep;
  v.y += ay * kStep;
  v.z += az * kStep;
  velocities[i] = v;
  out[i] = make_float4(own.x + v.x * kStep, own.y + v.y * kStep, own.z + v.z * kStep, own.w);
}

void MoveOnHost(std::vector<float>* bodies, std::vector<float>* velocities) {
  const std::vector<float> in = *bodies;
  for (int i = 0; i < kBodies; ++i) {
    double a[3] = {};
    for (int j = 0; j < kBodies; ++j) {
      double d[3], square = kSoftening;
      for (int k = 0; k < 3; ++k) {
        d[k] = double(in[4 * j + k]) - in[4 * i + k];
        square += d[k] * d[k];
      }
      for (int k = 0; k < 3; ++k) a[k] += d[k] * in[4 * j + 3] / (square * std::sqrt(square));
    }
    for (int k = 0; k < 3; ++k) {
      (*velocities)[4 * i + k] += float(a[k] * kStep);
      (*bodies)[4 * i + k] += (*velocities)[4 * i + k] * kStep;
    }
  }
}

int main() {
  Random random(10);
  std::vector<float> bodies = random.Floats(4 * kBodies), velocities(4 * kBodies);
  Buffer<float> a(bodies), b(4 * kBodies), v(velocities);
  float4 *from = reinterpret_cast<float4*>(a.get()), *to = reinterpret_cast<float4*>(b.get());
  for (int s = 0; s < kSteps; ++s) {
    Move<<<kBodies / kThreads, kThreads>>>(from, to, reinterpret_cast<float4*>(v.get()));
    std::swap(from, to);
    MoveOnHost(&bodies, &velocities);
  }
  const auto result = b.Download();
  ExpectNear(result, bodies, 1e-4);
  ExpectNear(v.Download(), velocities, 1e-3);
  return Finish(result, kSteps);
}
