// SPDX-License-Identifier: Apache-2.0
// Other devices and other processes: peer access, peer copies, IPC handles.
#include <cstring>

#include "sim/runtime/context.h"

namespace {

using namespace atp::simrt;  // NOLINT: this file only forwards calls

static_assert(sizeof(cudaIpcMemHandle_t) == sizeof(CUipcMemHandle));
static_assert(sizeof(cudaIpcEventHandle_t) == sizeof(CUipcEventHandle));

Status Handle(int device, CUdevice* handle) {
  const auto& devices = GetProcess().devices;
  if (device < 0 || device >= static_cast<int>(devices.size())) return cudaErrorInvalidDevice;
  *handle = devices[device]->handle;
  return cudaSuccess;
}

Status BothContexts(int to_device, CUcontext* to, int from_device, CUcontext* from) {
  const Status status = PrimaryContext(to_device, to);
  return status.ok() ? PrimaryContext(from_device, from) : status;
}

}  // namespace

extern "C" {

cudaError_t cudaDeviceCanAccessPeer(int* can, int device, int peer) {
  return WithDriver([&](const DriverCalls& cu) -> Status {
    CUdevice from = 0, to = 0;
    Status status = Handle(device, &from);
    if (status.ok()) status = Handle(peer, &to);
    return status.ok() ? Status(cu.DeviceCanAccessPeer(can, from, to)) : status;
  });
}

cudaError_t cudaDeviceGetP2PAttribute(int* value, cudaDeviceP2PAttr attribute, int device,
                                      int peer) {
  return WithDriver([&](const DriverCalls& cu) -> Status {
    CUdevice from = 0, to = 0;
    Status status = Handle(device, &from);
    if (status.ok()) status = Handle(peer, &to);
    if (!status.ok()) return status;
    return cu.DeviceGetP2PAttribute(value, static_cast<CUdevice_P2PAttribute>(attribute), from, to);
  });
}

cudaError_t cudaDeviceEnablePeerAccess(int peer, unsigned flags) {
  return WithContext([&](const DriverCalls& cu) -> Status {
    CUcontext context = nullptr;
    const Status status = PrimaryContext(peer, &context);
    return status.ok() ? Status(cu.CtxEnablePeerAccess(context, flags)) : status;
  });
}

cudaError_t cudaDeviceDisablePeerAccess(int peer) {
  return WithContext([&](const DriverCalls& cu) -> Status {
    CUcontext context = nullptr;
    const Status status = PrimaryContext(peer, &context);
    return status.ok() ? Status(cu.CtxDisablePeerAccess(context)) : status;
  });
}

cudaError_t cudaMemcpyPeer(void* to, int to_device, const void* from, int from_device,
                           size_t bytes) {
  return WithContext([&](const DriverCalls& cu) -> Status {
    CUcontext target = nullptr, source = nullptr;
    const Status status = BothContexts(to_device, &target, from_device, &source);
    if (!status.ok() || bytes == 0) return status;
    return cu.MemcpyPeer(Address(to), target, Address(from), source, bytes);
  });
}

cudaError_t cudaMemcpyPeerAsync(void* to, int to_device, const void* from, int from_device,
                                size_t bytes, cudaStream_t stream) {
  return WithContext([&](const DriverCalls& cu) -> Status {
    CUcontext target = nullptr, source = nullptr;
    const Status status = BothContexts(to_device, &target, from_device, &source);
    if (!status.ok() || bytes == 0) return status;
    return cu.MemcpyPeerAsync(Address(to), target, Address(from), source, bytes, stream);
  });
}

cudaError_t cudaIpcGetMemHandle(cudaIpcMemHandle_t* handle, void* pointer) {
  return WithContext([&](const DriverCalls& cu) {
    return cu.IpcGetMemHandle(reinterpret_cast<CUipcMemHandle*>(handle), Address(pointer));
  });
}

cudaError_t cudaIpcOpenMemHandle(void** pointer, cudaIpcMemHandle_t handle, unsigned flags) {
  return WithContext([&](const DriverCalls& cu) {
    CUipcMemHandle h;
    std::memcpy(&h, &handle, sizeof(h));
    return cu.IpcOpenMemHandle(AddressOut(pointer), h, flags);
  });
}

cudaError_t cudaIpcCloseMemHandle(void* pointer) {
  return WithContext([&](const DriverCalls& cu) { return cu.IpcCloseMemHandle(Address(pointer)); });
}

cudaError_t cudaIpcGetEventHandle(cudaIpcEventHandle_t* handle, cudaEvent_t event) {
  return WithContext([&](const DriverCalls& cu) {
    return cu.IpcGetEventHandle(reinterpret_cast<CUipcEventHandle*>(handle), event);
  });
}

cudaError_t cudaIpcOpenEventHandle(cudaEvent_t* event, cudaIpcEventHandle_t handle) {
  return WithContext([&](const DriverCalls& cu) {
    CUipcEventHandle h;
    std::memcpy(&h, &handle, sizeof(h));
    return cu.IpcOpenEventHandle(event, h);
  });
}

}  // extern "C"
