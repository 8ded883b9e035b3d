// SPDX-License-Identifier: Apache-2.0
// Heat in a box: a stencil of seven points over a grid that is cut into slabs, one cudaMalloc each,
// as codes do whose grid does not fit. Each iteration goes from one copy of the grid to the other
// and back. An ordinary CUDA program on one stream. --check repeats it on the CPU and compares.
#include <cstdio>

#include "examples/support/blocks.cuh"
#include "examples/support/compare.h"
#include "examples/support/device.h"

namespace {

using namespace example;  // NOLINT

constexpr double kTolerance = 1e-4;
constexpr float kFlow = 0.125f;  // of the difference to each neighbour, in a step

struct Settings {
  long slabs = 16, planes = 8, edge = 128, iterations = 10, seed = 1;
  bool check = false;
  size_t plane() const { return size_t(edge) * edge; }
  size_t slab() const { return plane() * planes; }
};

// Outside of the box it is cold: neighbours there count as zero.
EXAMPLE_BOTH inline float NextHeat(float here, float neighbours) {
  return here + kFlow * (neighbours - 6.0f * here);
}

// `below` and `above` are the planes next to the slab, null at the ends of the grid.
__global__ void HeatStep(const float* below, const float* in, const float* above, float* out,
                         int edge, int planes) {
  const size_t plane = size_t(edge) * edge;
  const size_t i = size_t(blockIdx.x) * blockDim.x + threadIdx.x;
  if (i >= plane * planes) return;
  const int z = int(i / plane), y = int(i / edge % edge), x = int(i % edge);
  float sum = 0;
  if (x > 0) sum += in[i - 1];
  if (x + 1 < edge) sum += in[i + 1];
  if (y > 0) sum += in[i - edge];
  if (y + 1 < edge) sum += in[i + edge];
  if (z > 0) {
    sum += in[i - plane];
  } else if (below) {
    sum += below[i % plane];
  }
  if (z + 1 < planes) {
    sum += in[i + plane];
  } else if (above) {
    sum += above[i % plane];
  }
  out[i] = NextHeat(in[i], sum);
}

Settings ParseSettings(int argc, char** argv) {
  Settings s;
  Options options("heat in a box, slab by slab");
  options.Add("--slabs", &s.slabs, 1, 100000, "slabs of the grid");
  options.Add("--planes", &s.planes, 1, 100000, "planes of a slab");
  options.Add("--edge", &s.edge, 1, 32768, "edge of a plane");
  options.Add("--iterations", &s.iterations, 1, 1000000000, "pairs of steps");
  options.Add("--seed", &s.seed, 0, 2147483647, "seed of the initial heat");
  options.Add("--check", &s.check, "compare with a reference on the CPU");
  options.Parse(argc, argv);
  return s;
}

uint32_t SlabSeed(const Settings& s, long slab) {
  return uint32_t(s.seed) + uint32_t(slab + 1) * 0x9e3779b9u;
}

class Box {
 public:
  Box(const Settings& s, DeviceMemory* memory) : s_(s) {
    for (auto& grid : grids_) {
      for (long k = 0; k < s.slabs; ++k) {
        grid.push_back(memory->Allocate<float>("slab " + std::to_string(k), s.slab()));
      }
    }
    for (long k = 0; k < s.slabs; ++k) {
      Initialise<<<Blocks(s.slab(), kFlatThreads), kFlatThreads>>>(grids_[0][k], s.slab(),
                                                                   SlabSeed(s, k), 1.0f, 0);
    }
  }

  // From grid `from` to the other one.
  void Step(int from) {
    const auto& in = grids_[from];
    const auto& out = grids_[1 - from];
    for (long k = 0; k < s_.slabs; ++k) {
      const float* below = k > 0 ? in[k - 1] + (s_.planes - 1) * s_.plane() : nullptr;
      const float* above = k + 1 < s_.slabs ? in[k + 1] : nullptr;
      HeatStep<<<Blocks(s_.slab(), kFlatThreads), kFlatThreads>>>(below, in[k], above, out[k],
                                                                  int(s_.edge), int(s_.planes));
    }
    CHECK_CUDA(cudaGetLastError());
  }

  std::vector<float> Values() const {
    std::vector<float> all;
    for (const float* slab : grids_[0]) {
      const std::vector<float> part = ReadBack(slab, s_.slab());
      all.insert(all.end(), part.begin(), part.end());
    }
    return all;
  }

 private:
  const Settings s_;
  std::vector<float*> grids_[2];
};

std::vector<float> Reference(const Settings& s) {
  const long e = s.edge, depth = s.slabs * s.planes;
  std::vector<float> now, next(s.slab() * s.slabs);
  for (long k = 0; k < s.slabs; ++k) {
    for (size_t i = 0; i < s.slab(); ++i) now.push_back(Uniform(SlabSeed(s, k), uint32_t(i), 1.0f));
  }
  const auto at = [&](long x, long y, long z) {
    const bool inside = x >= 0 && x < e && y >= 0 && y < e && z >= 0 && z < depth;
    return inside ? now[(z * e + y) * e + x] : 0.0f;
  };
  for (long step = 0; step < 2 * s.iterations; ++step) {
    for (long z = 0; z < depth; ++z) {
      for (long y = 0; y < e; ++y) {
        for (long x = 0; x < e; ++x) {
          const float sum = at(x - 1, y, z) + at(x + 1, y, z) + at(x, y - 1, z) + at(x, y + 1, z) +
                            at(x, y, z - 1) + at(x, y, z + 1);
          next[(z * e + y) * e + x] = NextHeat(at(x, y, z), sum);
        }
      }
    }
    std::swap(now, next);
  }
  return now;
}

bool Run(const Settings& s) {
  DeviceMemory memory;
  Box box(s, &memory);
  std::printf("footprint %zu bytes in %zu tensors\n", memory.bytes(), memory.count());
  Stopwatch watch;
  for (long i = 1; i <= s.iterations; ++i) {
    watch.Start();
    box.Step(0);
    box.Step(1);
    std::printf("iter %ld  ms %.4f\n", i, watch.Stop());
    std::fflush(stdout);
  }
  const std::vector<float> values = box.Values();
  PrintChecksum(Checksum(kChecksumStart, values.data(), values.size()));
  WorstError worst(kTolerance);
  if (s.check) worst.Note("", RelativeError(values, Reference(s)));
  memory.FreeAll();
  return !s.check || worst.Report();
}

}  // namespace

int main(int argc, char** argv) {
  return Run(ParseSettings(argc, argv)) ? 0 : example::kExitWrongResult;
}
