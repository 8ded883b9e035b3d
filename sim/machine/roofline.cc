// SPDX-License-Identifier: Apache-2.0
#include "sim/machine/roofline.h"

#include <algorithm>
#include <cmath>
#include <unordered_map>

#include "sim/machine/unified/page_mask.h"

namespace atp::sim {
namespace {

struct MemoryWork {
  double bytes = 0;
  double pages = 0;  // visits to pages: each opens a row
};

// What crosses device memory, at most: each touched page once for reading and once for writing. A
// working set that fits the cache is loaded once; a larger one once for each wave that touches it.
MemoryWork DeviceMemoryWork(const ExecResult& result, uint64_t l2_bytes) {
  struct Slot {
    PageMask read, written;
  };
  std::unordered_map<uint64_t, Slot> slots;
  Slot* slot = nullptr;
  uint64_t last = UINT64_MAX;
  uint64_t every_time = 0;
  for (const WaveTouches& wave : result.waves) {
    for (const PageTouch& touch : wave.pages) {
      if (touch.page / PageMask::kPages != last) {
        last = touch.page / PageMask::kPages;
        slot = &slots[last];
      }
      int page = static_cast<int>(touch.page % PageMask::kPages);
      bool reads = (touch.flags & PageTouch::kRead) != 0,
           writes = (touch.flags & PageTouch::kWrite) != 0;
      if (reads) slot->read.Set(page);
      if (writes) slot->written.Set(page);
      every_time += static_cast<uint64_t>(reads) + static_cast<uint64_t>(writes);
    }
  }
  uint64_t distinct = 0, moved = 0;
  for (const auto& [number, pages] : slots) {
    distinct += static_cast<uint64_t>((pages.read | pages.written).Count());
    moved += static_cast<uint64_t>(pages.read.Count() + pages.written.Count());
  }
  bool fits = (distinct << kPageBits) <= l2_bytes;
  uint64_t pages = fits ? moved : every_time;
  uint64_t bytes = pages << kPageBits;
  uint64_t requested = result.sector_bytes == 0 ? bytes : result.sector_bytes;
  return {static_cast<double>(std::min(bytes, requested)), static_cast<double>(pages)};
}

uint64_t Volume(const uint32_t size[3]) { return uint64_t{size[0]} * size[1] * size[2]; }

}  // namespace

Time RooflineTime(const Costs& costs, const DeviceShape& shape, const LaunchConfig& config,
                  const ExecResult& result) {
  double blocks = static_cast<double>(Volume(config.grid));
  double warps = std::ceil(static_cast<double>(Volume(config.block)) / 32);
  double held = config.blocks_per_wave != 0 ? config.blocks_per_wave
                                            : static_cast<double>(shape.multiprocessors);
  double resident_warps = std::min(blocks, held) * warps;
  // A small grid leaves multiprocessors empty, and few warps cannot hide latency on those that
  // work.
  double busy = std::min(blocks, static_cast<double>(shape.multiprocessors));
  double wanted = static_cast<double>(costs.warps_to_saturate);
  double issue_share = busy * std::min(1.0, resident_warps / busy / 4);  // 4 schedulers each
  double memory_share =
      std::min(1.0, resident_warps / (shape.multiprocessors * std::max(wanted, 1.0)));
  double issue =
      issue_share * costs.issue_per_clock * costs.issue_efficiency * shape.clock_khz * 1e3;
  double l2 = memory_share * static_cast<double>(costs.l2);
  double dram = memory_share * static_cast<double>(costs.dram) * costs.dram_efficiency;
  MemoryWork work = DeviceMemoryWork(result, shape.l2_bytes);
  double rows = work.pages * static_cast<double>(costs.row_open) * 1e-12 / memory_share;
  double seconds =
      std::max({static_cast<double>(result.warp_instructions) / issue,
                static_cast<double>(result.sector_bytes) / l2, work.bytes / dram + rows});
  return costs.kernel_launch +
         static_cast<Time>(std::llround(seconds * static_cast<double>(kSecond)));
}

}  // namespace atp::sim
