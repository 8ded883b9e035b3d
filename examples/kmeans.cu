// SPDX-License-Identifier: Apache-2.0
// Lloyd's k-means over points in chunks, one cudaMalloc each. Every iteration reads all points and
// writes none of them. Sums have a fixed order, so results are the same to the bit in every run. An
// ordinary CUDA program on one stream. --check repeats it on the CPU and compares.
#include <cstdio>

#include "examples/support/blocks.cuh"
#include "examples/support/compare.h"
#include "examples/support/device.h"

namespace {

using namespace example;  // NOLINT

constexpr double kTolerance = 1e-4;
constexpr float kSpread = 0.25f;  // of points around their true centre

struct Settings {
  long chunks = 16, points = 16384, dimensions = 32, clusters = 16, iterations = 10, seed = 1;
  bool check = false;
};

// Points scatter around true centres; the first guess of cluster k is a point of centre k.
EXAMPLE_BOTH inline float Coordinate(uint32_t seed, uint32_t point, uint32_t d, uint32_t clusters,
                                     uint32_t dimensions) {
  const uint32_t centre = point % clusters;
  return Uniform(seed, centre * dimensions + d, 1.0f) +
         Uniform(seed ^ 0x5bd1e995u, point * dimensions + d, kSpread);
}

__global__ void MakePoints(float* points, size_t first, size_t count, uint32_t seed, int clusters,
                           int dimensions) {
  const size_t i = size_t(blockIdx.x) * blockDim.x + threadIdx.x;
  if (i >= count * dimensions) return;
  points[i] = Coordinate(seed, uint32_t(first + i / dimensions), uint32_t(i % dimensions),
                         uint32_t(clusters), uint32_t(dimensions));
}

// One thread a point.
__global__ void Assign(const float* points, const float* centres, int* labels, int count,
                       int clusters, int dimensions) {
  const int p = blockIdx.x * blockDim.x + threadIdx.x;
  if (p >= count) return;
  const float* point = points + size_t(p) * dimensions;
  float best = INFINITY;
  int label = 0;
  for (int k = 0; k < clusters; ++k) {
    float distance = 0;
    for (int d = 0; d < dimensions; ++d) {
      const float apart = point[d] - centres[k * dimensions + d];
      distance += apart * apart;
    }
    if (distance < best) {
      best = distance;
      label = k;
    }
  }
  labels[p] = label;
}

// One block a cluster, one thread a coordinate: adds the points of the cluster in their order.
__global__ void AddUp(const float* points, const int* labels, float* sums, int* sizes, int count,
                      int dimensions) {
  const int k = blockIdx.x, d = threadIdx.x;
  float sum = sums[k * dimensions + d];
  int size = 0;
  for (int p = 0; p < count; ++p) {
    if (labels[p] != k) continue;
    sum += points[size_t(p) * dimensions + d];
    ++size;
  }
  sums[k * dimensions + d] = sum;
  if (d == 0) sizes[k] += size;
}

// An empty cluster keeps its centre.
__global__ void MoveCentres(float* centres, const float* sums, const int* sizes, int dimensions) {
  const int k = blockIdx.x, d = threadIdx.x;
  if (sizes[k] > 0) centres[k * dimensions + d] = sums[k * dimensions + d] / float(sizes[k]);
}

Settings ParseSettings(int argc, char** argv) {
  Settings s;
  Options options("k-means over points that come in chunks");
  options.Add("--chunks", &s.chunks, 1, 100000, "chunks of points");
  options.Add("--points", &s.points, 1, 1L << 30, "points of a chunk");
  options.Add("--dimensions", &s.dimensions, 1, 1024, "coordinates of a point");
  options.Add("--clusters", &s.clusters, 1, 65535, "clusters");
  options.Add("--iterations", &s.iterations, 1, 1000000000, "iterations");
  options.Add("--seed", &s.seed, 0, 2147483647, "seed of the points");
  options.Add("--check", &s.check, "compare with a reference on the CPU");
  options.Parse(argc, argv);
  if (s.chunks * s.points < s.clusters) Options::Refuse("fewer points than clusters");
  return s;
}

std::vector<float> FirstGuess(const Settings& s) {
  std::vector<float> centres(s.clusters * s.dimensions);
  for (size_t i = 0; i < centres.size(); ++i) {
    centres[i] =
        Coordinate(uint32_t(s.seed), uint32_t(i / s.dimensions), uint32_t(i % s.dimensions),
                   uint32_t(s.clusters), uint32_t(s.dimensions));
  }
  return centres;
}

std::vector<float> Reference(const Settings& s) {
  const size_t count = s.chunks * s.points, dims = s.dimensions;
  std::vector<float> points(count * dims), centres = FirstGuess(s);
  for (size_t i = 0; i < points.size(); ++i) {
    points[i] = Coordinate(uint32_t(s.seed), uint32_t(i / dims), uint32_t(i % dims),
                           uint32_t(s.clusters), uint32_t(dims));
  }
  for (long iteration = 0; iteration < s.iterations; ++iteration) {
    std::vector<float> sums(centres.size());
    std::vector<int> sizes(s.clusters);
    for (size_t p = 0; p < count; ++p) {
      float best = INFINITY;
      size_t label = 0;
      for (size_t k = 0; k < sizes.size(); ++k) {
        float distance = 0;
        for (size_t d = 0; d < dims; ++d) {
          const float apart = points[p * dims + d] - centres[k * dims + d];
          distance += apart * apart;
        }
        if (distance >= best) continue;
        best = distance;
        label = k;
      }
      ++sizes[label];
      for (size_t d = 0; d < dims; ++d) sums[label * dims + d] += points[p * dims + d];
    }
    for (size_t i = 0; i < centres.size(); ++i) {
      if (sizes[i / dims] > 0) centres[i] = sums[i] / float(sizes[i / dims]);
    }
  }
  return centres;
}

bool Run(const Settings& s) {
  const int points = int(s.points), dims = int(s.dimensions), clusters = int(s.clusters);
  const size_t values = size_t(s.points) * dims, centre_bytes = size_t(clusters) * dims * 4;
  DeviceMemory memory;
  std::vector<float*> chunks;
  std::vector<int*> labels;
  for (long c = 0; c < s.chunks; ++c) {
    chunks.push_back(memory.Allocate<float>("points " + std::to_string(c), values));
    labels.push_back(memory.Allocate<int>("labels " + std::to_string(c), s.points));
  }
  float* centres = memory.Allocate<float>("centres", size_t(clusters) * dims);
  float* sums = memory.Allocate<float>("sums", size_t(clusters) * dims);
  int* sizes = memory.Allocate<int>("sizes", clusters);
  std::printf("footprint %zu bytes in %zu tensors\n", memory.bytes(), memory.count());
  for (long c = 0; c < s.chunks; ++c) {
    MakePoints<<<Blocks(values, kFlatThreads), kFlatThreads>>>(
        chunks[c], size_t(c) * s.points, s.points, uint32_t(s.seed), clusters, dims);
  }
  CHECK_CUDA(cudaMemcpy(centres, FirstGuess(s).data(), centre_bytes, cudaMemcpyHostToDevice));

  Stopwatch watch;
  for (long i = 1; i <= s.iterations; ++i) {
    watch.Start();
    CHECK_CUDA(cudaMemsetAsync(sums, 0, centre_bytes));
    CHECK_CUDA(cudaMemsetAsync(sizes, 0, clusters * sizeof(int)));
    for (long c = 0; c < s.chunks; ++c) {
      Assign<<<Blocks(points, kFlatThreads), kFlatThreads>>>(chunks[c], centres, labels[c], points,
                                                             clusters, dims);
      AddUp<<<clusters, dims>>>(chunks[c], labels[c], sums, sizes, points, dims);
    }
    MoveCentres<<<clusters, dims>>>(centres, sums, sizes, dims);
    CHECK_CUDA(cudaGetLastError());
    std::printf("iter %ld  ms %.4f\n", i, watch.Stop());
    std::fflush(stdout);
  }
  const std::vector<float> result = ReadBack(centres, size_t(clusters) * dims);
  uint64_t sum = Checksum(kChecksumStart, result.data(), result.size());
  for (const int* chunk : labels) {
    const std::vector<int> host = ReadBack(chunk, s.points);
    sum = Checksum(sum, host.data(), host.size());
  }
  PrintChecksum(sum);
  WorstError worst(kTolerance);
  if (s.check) worst.Note("", RelativeError(result, Reference(s)));
  memory.FreeAll();
  return !s.check || worst.Report();
}

}  // namespace

int main(int argc, char** argv) {
  return Run(ParseSettings(argc, argv)) ? 0 : example::kExitWrongResult;
}
