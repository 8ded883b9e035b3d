// SPDX-License-Identifier: Apache-2.0
#include "shim/lookup_sites.h"

#include <atomic>
#include <cstddef>

namespace atp::shim {
namespace {

// User addresses have 47 bits; the way is above them.
constexpr unsigned kWayShift = 56;
constexpr uint64_t kAddressMask = (uint64_t{1} << kWayShift) - 1;
constexpr size_t kSites = 256, kProbes = 16;

struct Site {
  std::atomic<uint64_t> key;  // 0 = free; ways are counted from 1
  std::atomic<uint64_t> count;
};
constinit Site sites[kSites] = {};

}  // namespace

void Count(Lookup way, const void* caller) {
  Count(way);
  const uint64_t kind = static_cast<uint64_t>(way) + 1;
  const uint64_t key = reinterpret_cast<uintptr_t>(caller) | kind << kWayShift;
  const size_t start = static_cast<size_t>((key * 0x9E3779B97F4A7C15u) >> 56);
  for (size_t probe = 0; probe < kProbes; ++probe) {
    Site& site = sites[(start + probe) % kSites];
    uint64_t there = site.key.load(std::memory_order_relaxed);
    if (there == 0) site.key.compare_exchange_strong(there, key, std::memory_order_relaxed);
    if (there != 0 && there != key) continue;
    site.count.fetch_add(1, std::memory_order_relaxed);
    return;
  }
}

void ForEachLookupSite(void (*visit)(Lookup way, const void* caller, uint64_t count, void* context),
                       void* context) {
  for (const Site& site : sites) {
    const uint64_t key = site.key.load(std::memory_order_relaxed);
    if (key == 0) continue;
    visit(static_cast<Lookup>((key >> kWayShift) - 1),
          reinterpret_cast<const void*>(key & kAddressMask),
          site.count.load(std::memory_order_relaxed), context);
  }
}

}  // namespace atp::shim
