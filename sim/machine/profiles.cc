// SPDX-License-Identifier: Apache-2.0
#include "sim/machine/profiles.h"

namespace atp::sim {
namespace {

constexpr uint64_t kGib = uint64_t{1} << 30, kMib = uint64_t{1} << 20;
constexpr int kKib = 1 << 10;

struct Card {
  const char* name;
  uint64_t bytes;
  int major, minor, multiprocessors;
  int clock_mhz, memory_clock_mhz, bus_bits;
  int threads, blocks;  // most per multiprocessor
  int shared_kib, shared_block_kib;
  uint64_t l2_bytes;
};

// Sources: NVIDIA's data sheets and architecture whitepapers; limits per multiprocessor from the
// compute-capability tables of the CUDA programming guide. `tiny` is nobody's card: about a
// twentieth of an A100 on an A100's link, for demonstrations on a laptop.
constexpr Card kCards[kProfiles] = {
    {"GeForce GTX 1080 (simulated)", 8 * kGib, 6, 1, 20, 1733, 5005, 256, 2048, 32, 96, 48,
     2 * kMib},
    {"Tesla V100-SXM2-16GB (simulated)", 16 * kGib, 7, 0, 80, 1530, 877, 4096, 2048, 32, 96, 96,
     6 * kMib},
    {"GeForce RTX 3090 (simulated)", 24 * kGib, 8, 6, 82, 1695, 9751, 384, 1536, 16, 100, 99,
     6 * kMib},
    {"GeForce RTX 5090 (simulated)", 32 * kGib, 12, 0, 170, 2407, 14001, 512, 1536, 24, 100, 99,
     96 * kMib},
    {"A100-PCIE-40GB (simulated)", 40 * kGib, 8, 0, 108, 1410, 1215, 5120, 2048, 32, 164, 163,
     40 * kMib},
    {"H100 80GB (simulated)", 80 * kGib, 9, 0, 132, 1980, 2619, 5120, 2048, 32, 228, 227,
     50 * kMib},
    {"H200 141GB (simulated)", 141 * kGib, 9, 0, 132, 1980, 3201, 6144, 2048, 32, 228, 227,
     50 * kMib},
    {"Tiny (simulated)", 256 * kMib, 8, 0, 6, 1300, 1215, 256, 2048, 32, 164, 163, 4 * kMib},
};

}  // namespace

DeviceShape ProfileShape(int profile, const Costs& costs) {
  const Card& card = kCards[profile];
  DeviceShape shape;
  shape.name = card.name;
  shape.total_bytes = card.bytes - static_cast<uint64_t>(costs.reserved);
  shape.major = card.major;
  shape.minor = card.minor;
  shape.multiprocessors = card.multiprocessors;
  shape.clock_khz = card.clock_mhz * 1000;
  shape.memory_clock_khz = card.memory_clock_mhz * 1000;
  shape.memory_bus_bits = card.bus_bits;
  shape.max_threads_per_multiprocessor = card.threads;
  shape.max_blocks_per_multiprocessor = card.blocks;
  shape.shared_bytes_per_multiprocessor = card.shared_kib * kKib;
  shape.shared_bytes_per_block_optin = card.shared_block_kib * kKib;
  shape.l2_bytes = card.l2_bytes;
  return shape;
}

}  // namespace atp::sim
