// SPDX-License-Identifier: Apache-2.0
#include "shim/memory_numbers.h"

#include <algorithm>

#include "shim/host_memory.h"
#include "shim/host_promise.h"
#include "shim/placement.h"
#include "shim/settings.h"

namespace atp::shim {

uint64_t FreeOf(uint64_t total, uint64_t used) { return total > used ? total - used : 0; }

uint64_t ReportedTotal(uint64_t physical_total) {
  const Configuration& settings = Settings();
  switch (settings.report_memory) {
    case ReportMemory::kPhysical:
      return physical_total;
    case ReportMemory::kVirtual:
      return std::max(physical_total, HostShare());
    case ReportMemory::kSize:
      return settings.report_size.Of(physical_total);
  }
  return physical_total;
}

void CorrectMemoryInfo(const Device* device, size_t* free, size_t* total) {
  if (device == nullptr || free == nullptr || total == nullptr) return;
  const Usage usage = UsageOf(*device);
  const uint64_t held = usage.managed + usage.native;
  const uint64_t physical_total = *total;
  *total = ReportedTotal(physical_total);
  // What was in use before us (the context, other processes) stays in use.
  const uint64_t before_us = FreeOf(physical_total, device->free_at_start);
  const uint64_t unclaimed = FreeOf(*total, before_us + held);
  // Others may have taken memory since, and the driver knows: but only while nothing is managed,
  // because managed bytes that are on the host just now are not free for the program, and chunks
  // that the driver keeps for managed memory are.
  if (Settings().report_memory == ReportMemory::kVirtual) {
    const uint64_t most = std::max(ManagedRoom(*device), MostPromised());
    *free = std::min(unclaimed, FreeOf(most, usage.managed));
    return;
  }
  const bool ask_driver = Settings().report_memory == ReportMemory::kPhysical &&
                          !device->ever_managed.load(std::memory_order_relaxed);
  *free = ask_driver ? std::min<uint64_t>(*free, unclaimed) : unclaimed;
}

}  // namespace atp::shim
