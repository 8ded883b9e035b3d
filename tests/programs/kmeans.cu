// SPDX-License-Identifier: Apache-2.0
// k-means on integer points, so that sums by atomics are exact whatever their order.
#include "tests/programs/program.h"

using namespace program;  // NOLINT

constexpr int kPoints = 20000, kClusters = 8, kRounds = 6;

__global__ void Assign(const int2* points, const int2* centres, int* owners,
                       unsigned long long* sums) {
  COUNT_LAUNCH();
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= kPoints) return;
  const int2 p = points[i];
  int best = 0;
  long long nearest = INT64_MAX;
  for (int c = 0; c < kClusters; ++c) {
    const long long dx = p.x - centres[c].x, dy = p.y - centres[c].y;
    if (dx * dx + dy * dy < nearest) {
      nearest = dx * dx + dy * dy;
      best = c;
    }
  }
  owners[i] = best;
  atomicAdd(&sums[3 * best], static_cast<unsigned long long>(p.x));
  atomicAdd(&sums[3 * best + 1], static_cast<unsigned long long>(p.y));
  atomicAdd(&sums[3 * best + 2], 1ull);
}

__global__ void Centre(int2* centres, unsigned long long* sums) {
  COUNT_LAUNCH();
  const int c = threadIdx.x;
  if (sums[3 * c + 2]) {
    centres[c] =
        make_int2(int(sums[3 * c] / sums[3 * c + 2]), int(sums[3 * c + 1] / sums[3 * c + 2]));
  }
  sums[3 * c] = sums[3 * c + 1] = sums[3 * c + 2] = 0;
}

void RoundOnHost(const std::vector<int>& points, std::vector<int>* centres,
                 std::vector<int>* owners) {
  unsigned long long sums[kClusters][3] = {};
  for (int i = 0; i < kPoints; ++i) {
    int best = 0;
    long long nearest = INT64_MAX;
    for (int c = 0; c < kClusters; ++c) {
      const long long dx = points[2 * i] - (*centres)[2 * c];
      const long long dy = points[2 * i + 1] - (*centres)[2 * c + 1];
      if (dx * dx + dy * dy < nearest) {
        nearest = dx * dx + dy * dy;
        best = c;
      }
    }
    (*owners)[i] = best;
    sums[best][0] += points[2 * i];
    sums[best][1] += points[2 * i + 1];
    ++sums[best][2];
  }
  for (int c = 0; c < kClusters; ++c) {
    for (int k = 0; sums[c][2] && k < 2; ++k) (*centres)[2 * c + k] = int(sums[c][k] / sums[c][2]);
  }
}

int main() {
  Random random(14);
  std::vector<int> points(2 * kPoints), centres(2 * kClusters), owners(kPoints);
  for (int& p : points) p = random.Below(100000);
  for (int& c : centres) c = random.Below(100000);
  Buffer<int> device_points(points), device_centres(centres), device_owners(kPoints);
  Buffer<unsigned long long> sums(3 * kClusters);
  CUDA_OK(cudaMemset(sums.get(), 0, sums.bytes()));
  for (int r = 0; r < kRounds; ++r) {
    Assign<<<Blocks(kPoints, 256), 256>>>(reinterpret_cast<int2*>(device_points.get()),
                                          reinterpret_cast<int2*>(device_centres.get()),
                                          device_owners.get(), sums.get());
    Centre<<<1, kClusters>>>(reinterpret_cast<int2*>(device_centres.get()), sums.get());
    RoundOnHost(points, &centres, &owners);
  }
  ExpectEqual(device_centres.Download(), centres);
  const auto result = device_owners.Download();
  ExpectEqual(result, owners);
  return Finish(result, 2 * kRounds);
}
