// SPDX-License-Identifier: Apache-2.0
// Random numbers by position: the same on host and device, in any order and with any number of
// threads.
#pragma once

#include <cstdint>

#ifdef __CUDACC__
#define EXAMPLE_BOTH __host__ __device__
#else
#define EXAMPLE_BOTH
#endif

namespace example {

// A 32-bit mix in the manner of MurmurHash3's finaliser (public domain).
EXAMPLE_BOTH inline uint32_t Mix(uint32_t x) {
  x ^= x >> 16;
  x *= 0x85ebca6bu;
  x ^= x >> 13;
  x *= 0xc2b2ae35u;
  return x ^ (x >> 16);
}

// Uniform in [-scale, scale).
EXAMPLE_BOTH inline float Uniform(uint32_t seed, uint32_t index, float scale) {
  const int32_t bits = static_cast<int32_t>(Mix(seed ^ Mix(index)));
  return static_cast<float>(bits >> 8) * (scale / 8388608.0f);
}

}  // namespace example
