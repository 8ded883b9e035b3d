// SPDX-License-Identifier: Apache-2.0
// What a device has to share out: multiprocessors, and how they may be split. Contexts that own a
// part of them (green contexts) are not there.
#include <algorithm>

#include "sim/driver/driver.h"

namespace atp::sim {
namespace {

// Smallest part and its steps, by compute capability: the CUDA driver API manual,
// cuDevSmResourceSplitByCount.
unsigned SmallestPart(const DeviceShape& shape) {
  return shape.major >= 9 ? 8 : shape.major == 8 ? 4 : 2;
}
unsigned PartStep(const DeviceShape& shape) { return shape.major >= 9 ? 8 : 2; }

CUdevResource Multiprocessors(const DeviceShape& shape, unsigned count) {
  CUdevResource resource{};
  resource.type = CU_DEV_RESOURCE_TYPE_SM;
  resource.sm.smCount = count;
  resource.sm.minSmPartitionSize = SmallestPart(shape);
  resource.sm.smCoscheduledAlignment = PartStep(shape);
  return resource;
}

CUresult ResourceOf(const Device& device, CUdevResourceType type, CUdevResource* resource) {
  if (!resource) return CUDA_ERROR_INVALID_VALUE;
  if (type != CU_DEV_RESOURCE_TYPE_SM) return CUDA_ERROR_INVALID_RESOURCE_TYPE;
  *resource = Multiprocessors(*device.shape, static_cast<unsigned>(device.shape->multiprocessors));
  return CUDA_SUCCESS;
}

}  // namespace
}  // namespace atp::sim

ATP_API cuDeviceGetDevResource(CUdevice ordinal, CUdevResource* resource, CUdevResourceType type) {
  ATP_CALL(kNeedsInit, cost::kCall);
  const Device* device = call.driver.DeviceAt(ordinal);
  return device ? ResourceOf(*device, type, resource) : CUDA_ERROR_INVALID_DEVICE;
}

ATP_API cuCtxGetDevResource(CUcontext handle, CUdevResource* resource, CUdevResourceType type) {
  ATP_CALL(kNeedsInit, cost::kCall);
  const Context* context = handle ? call.driver.contexts.Get(handle) : call.context;
  return context ? ResourceOf(*context->device, type, resource) : CUDA_ERROR_INVALID_CONTEXT;
}

// Without `result` it only says how many parts there would be.
ATP_API cuDevSmResourceSplitByCount(CUdevResource* result, unsigned* groups,
                                    const CUdevResource* input, CUdevResource* remaining,
                                    unsigned flags, unsigned least) {
  ATP_CALL(kNeedsInit, cost::kCall);
  if (!groups || !input || input->type != CU_DEV_RESOURCE_TYPE_SM) return CUDA_ERROR_INVALID_VALUE;
  const DeviceShape& shape = *call.driver.devices().front()->shape;
  const bool alone = (flags & CU_DEV_SM_RESOURCE_SPLIT_IGNORE_SM_COSCHEDULING) != 0;
  const unsigned step = alone ? 2 : PartStep(shape);
  const unsigned smallest = alone ? 2 : SmallestPart(shape);
  const unsigned part = std::max((least + step - 1) / step * step, smallest);
  const unsigned total = input->sm.smCount;
  if (part > total) return CUDA_ERROR_INVALID_RESOURCE_CONFIGURATION;
  const unsigned possible = total / part;
  const unsigned wanted = result ? std::min(*groups, possible) : possible;
  for (unsigned i = 0; result && i < wanted; ++i) result[i] = Multiprocessors(shape, part);
  if (result && remaining) *remaining = Multiprocessors(shape, total - wanted * part);
  *groups = wanted;
  return CUDA_SUCCESS;
}
