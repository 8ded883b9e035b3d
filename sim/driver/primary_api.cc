// SPDX-License-Identifier: Apache-2.0
// Primary contexts: one per device, counted references, destroyed with the last or by reset.
#include "sim/driver/driver.h"

namespace atp::sim {
namespace {

void Tear(Call& call, Device& device) {
  if (!device.primary) return;
  WaitForContext(call, *device.primary);
  call.driver.DestroyContext(call.lane(), device.primary);
  device.primary = nullptr;
}

}  // namespace
}  // namespace atp::sim

ATP_API cuDevicePrimaryCtxRetain(CUcontext* out, CUdevice ordinal) {
  ATP_CALL(kNeedsInit, cost::kCall);
  if (!out) return CUDA_ERROR_INVALID_VALUE;
  Device* device = call.driver.DeviceAt(ordinal);
  if (!device) return CUDA_ERROR_INVALID_DEVICE;
  if (!device->primary) {
    call.machine().SpendCall(call.lane(), cost::kContext);
    device->primary = call.driver.NewContext(device, device->primary_flags, /*primary=*/true);
  }
  ++device->primary_references;
  *out = reinterpret_cast<CUcontext>(device->primary);
  return CUDA_SUCCESS;
}

ATP_API cuDevicePrimaryCtxRelease_v2(CUdevice ordinal) {
  ATP_CALL(kNeedsInit, cost::kCall);
  Device* device = call.driver.DeviceAt(ordinal);
  if (!device) return CUDA_ERROR_INVALID_DEVICE;
  if (device->primary_references == 0) return CUDA_ERROR_INVALID_CONTEXT;
  if (--device->primary_references == 0) Tear(call, *device);
  return CUDA_SUCCESS;
}

ATP_API cuDevicePrimaryCtxRelease(CUdevice device) { return cuDevicePrimaryCtxRelease_v2(device); }

// The context's content goes; references stay, and the next use of the primary context makes a
// fresh one.
ATP_API cuDevicePrimaryCtxReset_v2(CUdevice ordinal) {
  ATP_CALL(kNeedsInit, cost::kContext);
  Device* device = call.driver.DeviceAt(ordinal);
  if (!device) return CUDA_ERROR_INVALID_DEVICE;
  Tear(call, *device);
  device->primary_references = 0;
  device->primary_flags = 0;
  return CUDA_SUCCESS;
}

ATP_API cuDevicePrimaryCtxReset(CUdevice device) { return cuDevicePrimaryCtxReset_v2(device); }

ATP_API cuDevicePrimaryCtxSetFlags_v2(CUdevice ordinal, unsigned flags) {
  ATP_CALL(kNeedsInit, cost::kCall);
  if (flags & ~static_cast<unsigned>(CU_CTX_FLAGS_MASK)) return CUDA_ERROR_INVALID_VALUE;
  Device* device = call.driver.DeviceAt(ordinal);
  if (!device) return CUDA_ERROR_INVALID_DEVICE;
  device->primary_flags = flags;
  if (device->primary) device->primary->flags = flags;
  return CUDA_SUCCESS;
}

ATP_API cuDevicePrimaryCtxSetFlags(CUdevice device, unsigned flags) {
  return cuDevicePrimaryCtxSetFlags_v2(device, flags);
}

ATP_API cuDevicePrimaryCtxGetState(CUdevice ordinal, unsigned* flags, int* active) {
  ATP_CALL(kNeedsInit, cost::kCall);
  if (!flags || !active) return CUDA_ERROR_INVALID_VALUE;
  Device* device = call.driver.DeviceAt(ordinal);
  if (!device) return CUDA_ERROR_INVALID_DEVICE;
  *flags = device->primary_flags;
  *active = device->primary != nullptr;
  return CUDA_SUCCESS;
}
