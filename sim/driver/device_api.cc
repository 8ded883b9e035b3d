// SPDX-License-Identifier: Apache-2.0
// Initialisation, versions, error texts and the devices' identity.
#include <cstdio>
#include <cstring>

#include "sim/driver/driver.h"
#include "sim/driver/error_names.h"
#include "sim/driver/identity.h"
#include "sim/driver/pool.h"

using atp::sim::kFirstBus;
using atp::sim::PciText;

ATP_API cuInit(unsigned flags) {
  ATP_CALL(kNeedsNothing, cost::kNone);
  if (flags) return CUDA_ERROR_INVALID_VALUE;
  return call.driver.Init();
}

ATP_API cuDriverGetVersion(int* version) {
  ATP_CALL(kNeedsNothing, cost::kNone);
  if (!version) return CUDA_ERROR_INVALID_VALUE;
  *version = call.driver.settings().driver_version;
  return CUDA_SUCCESS;
}

ATP_API cuGetErrorName(CUresult error, const char** text) {
  ATP_CALL(kNeedsNothing, cost::kNone);
  if (!text) return CUDA_ERROR_INVALID_VALUE;
  const ErrorName* known = FindErrorName(error);
  *text = known ? known->name : nullptr;
  return known ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

ATP_API cuGetErrorString(CUresult error, const char** text) {
  ATP_CALL(kNeedsNothing, cost::kNone);
  if (!text) return CUDA_ERROR_INVALID_VALUE;
  const ErrorName* known = FindErrorName(error);
  *text = known ? known->text : nullptr;
  return known ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

ATP_API cuDeviceGetCount(int* count) {
  ATP_CALL(kNeedsInit, cost::kCall);
  if (!count) return CUDA_ERROR_INVALID_VALUE;
  *count = static_cast<int>(call.driver.devices().size());
  return CUDA_SUCCESS;
}

ATP_API cuDeviceGet(CUdevice* device, int ordinal) {
  ATP_CALL(kNeedsInit, cost::kCall);
  if (!device) return CUDA_ERROR_INVALID_VALUE;
  if (!call.driver.DeviceAt(ordinal)) return CUDA_ERROR_INVALID_DEVICE;
  *device = ordinal;
  return CUDA_SUCCESS;
}

ATP_API cuDeviceGetName(char* name, int length, CUdevice ordinal) {
  ATP_CALL(kNeedsInit, cost::kCall);
  if (!name || length <= 0) return CUDA_ERROR_INVALID_VALUE;
  const Device* device = call.driver.DeviceAt(ordinal);
  if (!device) return CUDA_ERROR_INVALID_DEVICE;
  std::snprintf(name, static_cast<size_t>(length), "%s", device->shape->name.c_str());
  return CUDA_SUCCESS;
}

ATP_API cuDeviceTotalMem_v2(size_t* bytes, CUdevice ordinal) {
  ATP_CALL(kNeedsInit, cost::kCall);
  if (!bytes) return CUDA_ERROR_INVALID_VALUE;
  const Device* device = call.driver.DeviceAt(ordinal);
  if (!device) return CUDA_ERROR_INVALID_DEVICE;
  *bytes = call.machine().Info(device->index).total_bytes;
  return CUDA_SUCCESS;
}

ATP_API cuDeviceComputeCapability(int* major, int* minor, CUdevice ordinal) {
  ATP_CALL(kNeedsInit, cost::kCall);
  if (!major || !minor) return CUDA_ERROR_INVALID_VALUE;
  const Device* device = call.driver.DeviceAt(ordinal);
  if (!device) return CUDA_ERROR_INVALID_DEVICE;
  *major = device->shape->major;
  *minor = device->shape->minor;
  return CUDA_SUCCESS;
}

ATP_API cuDeviceGetUuid_v2(CUuuid* uuid, CUdevice ordinal) {
  ATP_CALL(kNeedsInit, cost::kCall);
  if (!uuid) return CUDA_ERROR_INVALID_VALUE;
  const Device* device = call.driver.DeviceAt(ordinal);
  if (!device) return CUDA_ERROR_INVALID_DEVICE;
  *uuid = device->uuid;
  return CUDA_SUCCESS;
}

ATP_API cuDeviceGetUuid(CUuuid* uuid, CUdevice ordinal) {
  return cuDeviceGetUuid_v2(uuid, ordinal);
}

ATP_API cuDeviceGetPCIBusId(char* text, int length, CUdevice ordinal) {
  ATP_CALL(kNeedsInit, cost::kCall);
  if (!text || length <= 0) return CUDA_ERROR_INVALID_VALUE;
  const Device* device = call.driver.DeviceAt(ordinal);
  if (!device) return CUDA_ERROR_INVALID_DEVICE;
  std::snprintf(text, static_cast<size_t>(length), "%s", PciText(device->index).c_str());
  return CUDA_SUCCESS;
}

ATP_API cuDeviceGetByPCIBusId(CUdevice* ordinal, const char* text) {
  ATP_CALL(kNeedsInit, cost::kCall);
  if (!ordinal || !text) return CUDA_ERROR_INVALID_VALUE;
  unsigned domain = 0, bus = 0, slot = 0, function = 0;
  const bool full = std::sscanf(text, "%x:%x:%x.%x", &domain, &bus, &slot, &function) == 4;
  if (!full && std::sscanf(text, "%x:%x:%x", &domain, &bus, &slot) != 3) {
    domain = 0;
    if (std::sscanf(text, "%x:%x.%x", &bus, &slot, &function) != 3) return CUDA_ERROR_INVALID_VALUE;
  }
  for (const Device* device : call.driver.devices()) {
    if (domain != 0 || slot != 0 || static_cast<int>(bus) != kFirstBus + device->index) continue;
    *ordinal = device->ordinal;
    return CUDA_SUCCESS;
  }
  return CUDA_ERROR_INVALID_DEVICE;
}

ATP_API cuDeviceGetTexture1DLinearMaxWidth(size_t* width, CUarray_format, unsigned channels,
                                           CUdevice ordinal) {
  ATP_CALL(kNeedsInit, cost::kCall);
  if (!width || channels == 0 || channels > 4) return CUDA_ERROR_INVALID_VALUE;
  if (!call.driver.DeviceAt(ordinal)) return CUDA_ERROR_INVALID_DEVICE;
  *width = size_t{1} << 28;
  return CUDA_SUCCESS;
}

ATP_API cuDeviceGetProperties(CUdevprop* properties, CUdevice ordinal) {
  ATP_CALL(kNeedsInit, cost::kCall);
  if (!properties) return CUDA_ERROR_INVALID_VALUE;
  const Device* device = call.driver.DeviceAt(ordinal);
  if (!device) return CUDA_ERROR_INVALID_DEVICE;
  *properties = CUdevprop{1024,
                          {1024, 1024, 64},
                          {0x7fffffff, 65535, 65535},
                          48 << 10,
                          64 << 10,
                          32,
                          0x7fffffff,
                          65536,
                          device->shape->clock_khz,
                          512};
  return CUDA_SUCCESS;
}

ATP_API cuDeviceCanAccessPeer(int* can, CUdevice first, CUdevice second) {
  ATP_CALL(kNeedsInit, cost::kCall);
  if (!can) return CUDA_ERROR_INVALID_VALUE;
  if (!call.driver.DeviceAt(first) || !call.driver.DeviceAt(second))
    return CUDA_ERROR_INVALID_DEVICE;
  *can = first != second;
  return CUDA_SUCCESS;
}

ATP_API cuDeviceGetP2PAttribute(int* value, CUdevice_P2PAttribute attribute, CUdevice first,
                                CUdevice second) {
  ATP_CALL(kNeedsInit, cost::kCall);
  if (!value) return CUDA_ERROR_INVALID_VALUE;
  if (!call.driver.DeviceAt(first) || !call.driver.DeviceAt(second) || first == second)
    return CUDA_ERROR_INVALID_DEVICE;
  switch (attribute) {
    case CU_DEVICE_P2P_ATTRIBUTE_ACCESS_SUPPORTED:
      *value = 1;
      return CUDA_SUCCESS;
    case CU_DEVICE_P2P_ATTRIBUTE_PERFORMANCE_RANK:
    case CU_DEVICE_P2P_ATTRIBUTE_NATIVE_ATOMIC_SUPPORTED:
    case CU_DEVICE_P2P_ATTRIBUTE_CUDA_ARRAY_ACCESS_SUPPORTED:
      *value = 0;
      return CUDA_SUCCESS;
    default:
      return CUDA_ERROR_INVALID_VALUE;
  }
}

ATP_API cuProfilerStart(void) {
  ATP_CALL(kNeedsContext, cost::kCall);
  call.driver.trace().Mark("profiler start");
  return CUDA_SUCCESS;
}

ATP_API cuProfilerStop(void) {
  ATP_CALL(kNeedsContext, cost::kCall);
  call.driver.trace().Mark("profiler stop");
  return CUDA_SUCCESS;
}
