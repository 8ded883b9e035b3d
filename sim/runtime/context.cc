// SPDX-License-Identifier: Apache-2.0
#include "sim/runtime/context.h"

namespace atp::simrt {
namespace {

// What NVIDIA's runtime asks of every device before the first context (observed at the call).
constexpr int kAttributesAskedAtStart[] = {
    1,   2,   3,   4,   5,   6,   7,   8,   9,   10,  11,  12,  14,  16,  18,  19,  21,  22,  23,
    24,  25,  26,  27,  28,  29,  30,  31,  32,  33,  34,  35,  37,  38,  39,  40,  41,  42,  43,
    45,  46,  47,  48,  49,  50,  51,  52,  53,  54,  55,  56,  57,  58,  59,  60,  61,  62,  63,
    64,  65,  66,  67,  68,  70,  71,  72,  73,  74,  75,  76,  77,  78,  79,  80,  81,  82,  83,
    84,  85,  86,  88,  89,  90,  91,  95,  97,  99,  100, 101, 106, 108, 109, 111, 112, 113, 114,
    115, 116, 117, 118, 119, 120, 121, 125, 129, 130, 131, 133, 134, 139, 140, 143};

std::atomic<unsigned> binding_epoch{1};  // grows when contexts are destroyed
std::atomic<Process*> started{nullptr};  // what GetProcess returns, once it has run
thread_local unsigned thread_epoch = 0;  // 0 = never bound
thread_local int thread_device = 0;

Status ReadDevice(const DriverCalls& cu, int ordinal, Device* device) {
  device->ordinal = ordinal;
  Status status = cu.DeviceGet(&device->handle, ordinal);
  char name[256] = {};
  if (status.ok()) status = cu.DeviceGetName(name, sizeof(name), device->handle);
  if (status.ok()) status = cu.DeviceTotalMem(&device->total_bytes, device->handle);
  if (!status.ok()) return status;
  device->name = name;
  for (int attribute : kAttributesAskedAtStart) {
    int value = 0;
    const auto asked = static_cast<CUdevice_attribute>(attribute);
    if (cu.DeviceGetAttribute(&value, asked, device->handle) == CUDA_SUCCESS) {
      device->attributes[attribute] = value;
    }
  }
  cu.DeviceGetUuid(&device->uuid, device->handle);
  return cudaSuccess;
}

cudaError_t Start(Process* process) {
  cudaError_t loaded = LoadDriver(&process->driver);
  if (loaded != cudaSuccess) return loaded;
  const DriverCalls& cu = process->driver->legacy;
  Status status = cu.Init(0);
  if (!status.ok()) return status.error;
  CUmoduleLoadingMode mode;
  cu.ModuleGetLoadingMode(&mode);
  int count = 0;
  status = cu.DeviceGetCount(&count);
  if (!status.ok()) return status.error;
  if (count == 0) return cudaErrorNoDevice;
  for (int i = 0; i < count; ++i) {
    auto* device = new Device;
    status = ReadDevice(cu, i, device);
    if (!status.ok()) return status.error;
    process->devices.push_back(device);
  }
  return cudaSuccess;
}

bool IsDevice(const Process& process, int device) {
  return device >= 0 && device < static_cast<int>(process.devices.size());
}

// A context that the program made current through the driver API is the one to use.
bool AdoptCurrentContext(const DriverCalls& cu) {
  CUcontext current = nullptr;
  CUdevice handle = 0;
  if (cu.CtxGetCurrent(&current) != CUDA_SUCCESS || !current) return false;
  if (cu.CtxGetDevice(&handle) != CUDA_SUCCESS) return false;
  for (const Device* device : GetProcess().devices) {
    if (device->handle == handle) thread_device = device->ordinal;
  }
  return true;
}

}  // namespace

const Process& GetProcess() {
  static Process* const process = [] {
    auto* fresh = new Process;
    fresh->status = Start(fresh);
    started.store(fresh, std::memory_order_release);
    return fresh;
  }();
  return *process;
}

int CurrentDevice() { return thread_device; }

Status PrimaryContext(int device, CUcontext* context) {
  const Process& process = GetProcess();
  if (process.status != cudaSuccess) return process.status;
  if (!IsDevice(process, device)) return cudaErrorInvalidDevice;
  Device* d = process.devices[device];
  std::lock_guard<std::mutex> lock(d->mutex);
  if (!d->retained) {
    const Status status = process.driver->legacy.DevicePrimaryCtxRetain(&d->primary, d->handle);
    if (!status.ok()) return status;
    d->retained = true;
  }
  *context = d->primary;
  return cudaSuccess;
}

Status UseDevice(int device) {
  CUcontext context = nullptr;
  Status status = PrimaryContext(device, &context);
  if (!status.ok()) return status;
  status = GetProcess().driver->legacy.CtxSetCurrent(context);
  if (!status.ok()) return status;
  thread_device = device;
  thread_epoch = binding_epoch.load(std::memory_order_acquire);
  return status;
}

cudaError_t BindThread() {
  const unsigned epoch = binding_epoch.load(std::memory_order_acquire);
  if (thread_epoch == epoch) return cudaSuccess;
  const Process& process = GetProcess();
  if (process.status != cudaSuccess) return process.status;
  if (thread_epoch == 0 && AdoptCurrentContext(process.driver->legacy)) {
    thread_epoch = epoch;
    return cudaSuccess;
  }
  return UseDevice(thread_device).error;
}

Status ResetDevice() {
  const Process& process = GetProcess();
  if (process.status != cudaSuccess) return process.status;
  Device* d = process.devices[thread_device];
  std::lock_guard<std::mutex> lock(d->mutex);
  const Status status = process.driver->legacy.DevicePrimaryCtxReset(d->handle);
  if (!status.ok()) return status;
  if (d->retained) process.driver->legacy.DevicePrimaryCtxRelease(d->handle);
  d->retained = false;
  d->primary = nullptr;
  binding_epoch.fetch_add(1, std::memory_order_acq_rel);
  ForgetLastError();
  return status;
}

void ReleaseContexts() {
  Process* process = started.load(std::memory_order_acquire);
  if (!process) return;
  for (Device* d : process->devices) {
    std::lock_guard<std::mutex> lock(d->mutex);
    if (d->retained) process->driver->legacy.DevicePrimaryCtxRelease(d->handle);
    d->retained = false;
  }
}

}  // namespace atp::simrt
