// SPDX-License-Identifier: Apache-2.0
// Breadth-first searches from random vertices of a graph whose edges come in parts, one cudaMalloc
// each. Each level visits only the parts that have vertices of the frontier: which those are
// depends on the data, so nothing here repeats. Levels do not depend on the order of visits. An
// ordinary CUDA program on one stream. --check compares every search with one on the CPU, exactly.
#include <cstdio>

#include "examples/support/blocks.cuh"
#include "examples/support/device.h"

namespace {

using namespace example;  // NOLINT

struct Settings {
  long parts = 16, vertices = 32768, degree = 16, iterations = 10, seed = 1;
  bool check = false;
  uint32_t all() const { return uint32_t(parts * vertices); }
};

// Most edges stay near: within a sixty-fourth of the graph. One in sixteen goes anywhere.
EXAMPLE_BOTH inline uint32_t Neighbour(uint32_t seed, uint32_t vertex, uint32_t edge,
                                       uint32_t degree, uint32_t all) {
  const uint32_t random = Mix(seed ^ Mix(vertex * degree + edge));
  if (random % 16 == 0) return Mix(random) % all;
  const uint32_t reach = all / 64 + 1;
  return (vertex + all - reach / 2 + Mix(random) % reach) % all;
}

__global__ void MakeEdges(uint32_t* edges, uint32_t first, uint32_t count, uint32_t seed,
                          uint32_t degree, uint32_t all) {
  const uint32_t i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= count * degree) return;
  edges[i] = Neighbour(seed, first + i / degree, i % degree, degree, all);
}

// One thread a vertex of the part. Whoever reaches a vertex first writes the same as the others.
__global__ void Expand(const uint32_t* edges, int* levels, int* active, uint32_t first,
                       uint32_t count, uint32_t degree, int level) {
  const uint32_t v = blockIdx.x * blockDim.x + threadIdx.x;
  if (v >= count || levels[first + v] != level) return;
  for (uint32_t e = 0; e < degree; ++e) {
    const uint32_t to = edges[size_t(v) * degree + e];
    if (levels[to] >= 0) continue;
    levels[to] = level + 1;
    active[to / count] = 1;
  }
}

__global__ void StartAt(int* levels, uint32_t source) { levels[source] = 0; }

Settings ParseSettings(int argc, char** argv) {
  Settings s;
  Options options("breadth-first searches in a graph that comes in parts");
  options.Add("--parts", &s.parts, 1, 1024, "parts of the graph");
  options.Add("--vertices", &s.vertices, 1, 1L << 24, "vertices of a part");
  options.Add("--degree", &s.degree, 1, 1024, "edges of a vertex");
  options.Add("--iterations", &s.iterations, 1, 1000000000, "searches");
  options.Add("--seed", &s.seed, 0, 2147483647, "seed of the graph");
  options.Add("--check", &s.check, "compare with searches on the CPU");
  options.Parse(argc, argv);
  if (s.parts * s.vertices > 1L << 30) Options::Refuse("more than 2^30 vertices");
  return s;
}

uint32_t Source(const Settings& s, long search) {
  return Mix(uint32_t(s.seed) + Mix(uint32_t(search))) % s.all();
}

std::vector<int> Reference(const Settings& s, uint32_t source) {
  std::vector<int> levels(s.all(), -1);
  std::vector<uint32_t> frontier = {source};
  levels[source] = 0;
  for (int level = 1; !frontier.empty(); ++level) {
    std::vector<uint32_t> next;
    for (uint32_t v : frontier) {
      for (uint32_t e = 0; e < uint32_t(s.degree); ++e) {
        const uint32_t to = Neighbour(uint32_t(s.seed), v, e, uint32_t(s.degree), s.all());
        if (levels[to] >= 0) continue;
        levels[to] = level;
        next.push_back(to);
      }
    }
    frontier.swap(next);
  }
  return levels;
}

class Graph {
 public:
  Graph(const Settings& s, DeviceMemory* memory) : s_(s), host_active_(s.parts) {
    const uint32_t count = uint32_t(s.vertices), degree = uint32_t(s.degree);
    for (long p = 0; p < s.parts; ++p) {
      parts_.push_back(
          memory->Allocate<uint32_t>("edges " + std::to_string(p), size_t(count) * degree));
    }
    levels_ = memory->Allocate<int>("levels", s.all());
    active_ = memory->Allocate<int>("active", s.parts);
    for (long p = 0; p < s.parts; ++p) {
      MakeEdges<<<Blocks(size_t(count) * degree, kFlatThreads), kFlatThreads>>>(
          parts_[p], uint32_t(p) * count, count, uint32_t(s.seed), degree, s.all());
    }
  }

  // Returns the depth.
  int Search(uint32_t source) {
    CHECK_CUDA(cudaMemsetAsync(levels_, 0xff, s_.all() * sizeof(int)));  // -1: not reached
    StartAt<<<1, 1>>>(levels_, source);
    std::fill(host_active_.begin(), host_active_.end(), 0);
    host_active_[source / s_.vertices] = 1;
    int level = 0;
    while (Level(level)) ++level;
    return level;
  }

  std::vector<int> Levels() const { return ReadBack(levels_, s_.all()); }

 private:
  // Whether the next level has any vertices.
  bool Level(int level) {
    const uint32_t count = uint32_t(s_.vertices);
    const size_t flag_bytes = host_active_.size() * sizeof(int);
    CHECK_CUDA(cudaMemsetAsync(active_, 0, flag_bytes));
    for (size_t p = 0; p < parts_.size(); ++p) {
      if (!host_active_[p]) continue;
      Expand<<<Blocks(count, kFlatThreads), kFlatThreads>>>(
          parts_[p], levels_, active_, uint32_t(p) * count, count, uint32_t(s_.degree), level);
    }
    CHECK_CUDA(cudaGetLastError());
    CHECK_CUDA(cudaMemcpy(host_active_.data(), active_, flag_bytes, cudaMemcpyDeviceToHost));
    for (int flag : host_active_) {
      if (flag) return true;
    }
    return false;
  }

  const Settings s_;
  std::vector<uint32_t*> parts_;
  int *levels_, *active_;
  std::vector<int> host_active_;
};

bool Run(const Settings& s) {
  DeviceMemory memory;
  Graph graph(s, &memory);
  std::printf("footprint %zu bytes in %zu tensors\n", memory.bytes(), memory.count());
  Stopwatch watch;
  uint64_t sum = kChecksumStart;
  bool right = true;
  for (long i = 1; i <= s.iterations; ++i) {
    watch.Start();
    const int depth = graph.Search(Source(s, i));
    const float ms = watch.Stop();
    const std::vector<int> levels = graph.Levels();
    sum = Checksum(sum, levels.data(), levels.size());
    std::printf("iter %ld  depth %d  ms %.4f\n", i, depth, ms);
    std::fflush(stdout);
    if (s.check) right = right && levels == Reference(s, Source(s, i));
  }
  PrintChecksum(sum);
  if (s.check) std::printf("check: levels %s\n", right ? "equal" : "DIFFER");
  memory.FreeAll();
  return right;
}

}  // namespace

int main(int argc, char** argv) {
  return Run(ParseSettings(argc, argv)) ? 0 : example::kExitWrongResult;
}
