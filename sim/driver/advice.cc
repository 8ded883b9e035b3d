// SPDX-License-Identifier: Apache-2.0
#include "sim/driver/advice.h"

#include "sim/driver/driver.h"

namespace atp::sim {
namespace {

// Makes `at` the first address of a piece.
void Split(std::map<uint64_t, Advised>* pieces, uint64_t at) {
  auto next = pieces->upper_bound(at);
  if (next == pieces->begin()) return;
  const auto& [begin, advice] = *std::prev(next);
  if (begin != at) pieces->emplace(at, advice);
}

}  // namespace

void ChangeAdvice(Allocation* allocation, uint64_t begin, uint64_t end,
                  const std::function<void(Advised&)>& change) {
  auto& pieces = allocation->advised;
  Split(&pieces, begin);
  if (end < allocation->end()) Split(&pieces, end);
  for (auto it = pieces.lower_bound(begin); it != pieces.end() && it->first < end; ++it)
    change(it->second);
  // Join what has become equal, so that many small calls do not leave many pieces.
  for (auto it = pieces.begin(); it != pieces.end();) {
    auto next = std::next(it);
    if (next != pieces.end() && next->second == it->second) {
      pieces.erase(next);
    } else {
      it = next;
    }
  }
}

void VisitAdvice(const Allocation& allocation, uint64_t begin, uint64_t end,
                 const std::function<void(const Advised&)>& visit) {
  auto it = allocation.advised.upper_bound(begin);
  if (it != allocation.advised.begin()) --it;
  for (; it != allocation.advised.end() && it->first < end; ++it) visit(it->second);
}

bool ToMachineLocation(const Driver& driver, const CUmemLocation& location, int* where) {
  switch (location.type) {
    case CU_MEM_LOCATION_TYPE_DEVICE: {
      const Device* device = driver.DeviceAt(location.id);
      if (!device) return false;
      *where = device->index;
      return true;
    }
    case CU_MEM_LOCATION_TYPE_HOST:
    case CU_MEM_LOCATION_TYPE_HOST_NUMA_CURRENT:
      *where = kHost;
      return true;
    case CU_MEM_LOCATION_TYPE_HOST_NUMA:
      *where = kHost;
      return location.id == 0;  // one node
    default:
      return false;
  }
}

CUmemLocation FromDevice(CUdevice device) {
  if (device == CU_DEVICE_CPU) return {CU_MEM_LOCATION_TYPE_HOST, 0};
  return {CU_MEM_LOCATION_TYPE_DEVICE, device};
}

}  // namespace atp::sim
