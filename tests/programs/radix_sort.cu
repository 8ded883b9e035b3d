// SPDX-License-Identifier: Apache-2.0
// Radix sort of key and value, 4 bits a pass: count per block, scan on one block, stable scatter by
// ballots.
#include <algorithm>
#include <numeric>

#include "tests/programs/program.h"

using namespace program;  // NOLINT

constexpr int kBins = 16, kThreads = 32;  // a block is a warp, so ranks come from ballots

__device__ unsigned Digit(unsigned key, int shift) { return (key >> shift) & (kBins - 1); }

__global__ void Count(const unsigned* keys, unsigned* counts, int shift) {
  COUNT_LAUNCH();
  __shared__ unsigned bins[kBins];
  if (threadIdx.x < kBins) bins[threadIdx.x] = 0;
  __syncthreads();
  atomicAdd(&bins[Digit(keys[blockIdx.x * kThreads + threadIdx.x], shift)], 1u);
  __syncthreads();
  if (threadIdx.x < kBins) counts[threadIdx.x * gridDim.x + blockIdx.x] = bins[threadIdx.x];
}

// Exclusive scan by one block; each thread owns a piece.
__global__ void Scan(unsigned* counts, int total) {
  COUNT_LAUNCH();
  __shared__ unsigned sums[256];
  const int piece = (total + 255) / 256, begin = threadIdx.x * piece;
  unsigned sum = 0;
  for (int i = begin; i < min(begin + piece, total); ++i) sum += counts[i];
  sums[threadIdx.x] = sum;
  __syncthreads();
  unsigned before = 0;
  for (unsigned t = 0; t < threadIdx.x; ++t) before += sums[t];
  for (int i = begin; i < min(begin + piece, total); ++i) {
    const unsigned own = counts[i];
    counts[i] = before;
    before += own;
  }
}

__global__ void Scatter(const unsigned* keys, const unsigned* values, unsigned* out_keys,
                        unsigned* out_values, const unsigned* offsets, int shift) {
  COUNT_LAUNCH();
  const int i = blockIdx.x * kThreads + threadIdx.x;
  const unsigned digit = Digit(keys[i], shift);
  unsigned same = ~0u;
  for (int bit = 0; bit < 4; ++bit) {
    const bool set = digit >> bit & 1;
    const unsigned votes = __ballot_sync(~0u, set);
    same &= set ? votes : ~votes;
  }
  const unsigned rank = __popc(same & ((1u << threadIdx.x) - 1));
  const unsigned to = offsets[digit * gridDim.x + blockIdx.x] + rank;
  out_keys[to] = keys[i];
  out_values[to] = values[i];
}

int main() {
  const int count = 1 << 14, blocks = count / kThreads;
  Random random(7);
  std::vector<unsigned> keys(count), values(count);
  for (unsigned& k : keys) k = random.Next() & 0xffff;  // many equal keys: stability shows
  std::iota(values.begin(), values.end(), 0u);
  Buffer<unsigned> key_a(keys), key_b(count), value_a(values), value_b(count);
  Buffer<unsigned> counts(kBins * blocks);
  unsigned *k0 = key_a.get(), *k1 = key_b.get(), *v0 = value_a.get(), *v1 = value_b.get();
  for (int shift = 0; shift < 16; shift += 4) {
    Count<<<blocks, kThreads>>>(k0, counts.get(), shift);
    Scan<<<1, 256>>>(counts.get(), kBins * blocks);
    Scatter<<<blocks, kThreads>>>(k0, v0, k1, v1, counts.get(), shift);
    std::swap(k0, k1);
    std::swap(v0, v1);
  }
  std::stable_sort(values.begin(), values.end(),
                   [&](unsigned a, unsigned b) { return keys[a] < keys[b]; });
  const auto result = value_a.Download();
  ExpectEqual(result, values);
  return Finish(result, 12);
}
