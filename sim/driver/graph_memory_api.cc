// SPDX-License-Identifier: Apache-2.0
// Memory of allocation nodes: how much there is. It lives exactly as long as its node, so that what
// is reserved is what is used and trimming finds nothing.
#include <algorithm>

#include "sim/driver/driver.h"
#include "sim/driver/graph.h"

namespace atp::sim {
namespace {

uint64_t GraphBytes(Driver& driver, const Device& device) {
  uint64_t bytes = 0;
  for (const auto& [address, allocation] : driver.memory().all()) {
    if (allocation->of_graph && allocation->device == device.index) bytes += allocation->bytes;
  }
  return bytes;
}

}  // namespace

void NoteGraphMemory(Driver& driver, int index) {
  for (Device* device : driver.devices()) {
    if (device->index == index)
      device->most_graph_bytes = std::max(device->most_graph_bytes, GraphBytes(driver, *device));
  }
}

}  // namespace atp::sim

ATP_API cuDeviceGraphMemTrim(CUdevice ordinal) {
  ATP_CALL(kNeedsInit, cost::kCall);
  return call.driver.DeviceAt(ordinal) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_DEVICE;
}

ATP_API cuDeviceGetGraphMemAttribute(CUdevice ordinal, CUgraphMem_attribute attribute,
                                     void* value) {
  ATP_CALL(kNeedsInit, cost::kCall);
  const Device* device = call.driver.DeviceAt(ordinal);
  if (!device) return CUDA_ERROR_INVALID_DEVICE;
  if (!value) return CUDA_ERROR_INVALID_VALUE;
  switch (attribute) {
    case CU_GRAPH_MEM_ATTR_USED_MEM_CURRENT:
    case CU_GRAPH_MEM_ATTR_RESERVED_MEM_CURRENT:
      *static_cast<cuuint64_t*>(value) = GraphBytes(call.driver, *device);
      return CUDA_SUCCESS;
    case CU_GRAPH_MEM_ATTR_USED_MEM_HIGH:
    case CU_GRAPH_MEM_ATTR_RESERVED_MEM_HIGH:
      *static_cast<cuuint64_t*>(value) = device->most_graph_bytes;
      return CUDA_SUCCESS;
  }
  return CUDA_ERROR_INVALID_VALUE;
}

// The high marks can be set back, to what there is now.
ATP_API cuDeviceSetGraphMemAttribute(CUdevice ordinal, CUgraphMem_attribute attribute,
                                     void* value) {
  ATP_CALL(kNeedsInit, cost::kCall);
  Device* device = call.driver.DeviceAt(ordinal);
  if (!device) return CUDA_ERROR_INVALID_DEVICE;
  const bool is_mark = attribute == CU_GRAPH_MEM_ATTR_USED_MEM_HIGH ||
                       attribute == CU_GRAPH_MEM_ATTR_RESERVED_MEM_HIGH;
  if (!value || !is_mark || *static_cast<const cuuint64_t*>(value) != 0)
    return CUDA_ERROR_INVALID_VALUE;
  device->most_graph_bytes = GraphBytes(call.driver, *device);
  return CUDA_SUCCESS;
}
