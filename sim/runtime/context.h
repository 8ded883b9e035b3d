// SPDX-License-Identifier: Apache-2.0
// Devices and contexts of the stand-in runtime: which device a thread uses, and the primary context
// behind it. Every API function runs its body through WithDriver or WithContext: they load the
// driver, initialise it once, bind the thread to a context at its first use and remember the body's
// error. Any thread. Per device one lock, taken only when a thread is bound.
#pragma once

#include <array>
#include <atomic>
#include <mutex>
#include <string>
#include <vector>

#include "sim/runtime/driver.h"
#include "sim/runtime/errors.h"

namespace atp::simrt {

inline constexpr int kAttributes = 160;  // CUdevice_attribute numbers are below

struct Device {
  int ordinal = 0;
  CUdevice handle = 0;
  std::string name;
  size_t total_bytes = 0;
  CUuuid uuid = {};
  std::array<int, kAttributes> attributes = {};

  std::mutex mutex;  // protects the two below
  CUcontext primary = nullptr;
  bool retained = false;
};

// The initialised driver and its devices; null members while the status is an error.
struct Process {
  cudaError_t status = cudaErrorInitializationError;
  const Driver* driver = nullptr;
  std::vector<Device*> devices;
};

// Loads and initialises the driver at the first call; later calls return the same object.
const Process& GetProcess();

// The device that the calling thread uses (cudaSetDevice).
int CurrentDevice();
// Retains the primary context of `device` (once a process) and returns it.
Status PrimaryContext(int device, CUcontext* context);
// cudaSetDevice: binds the thread to the primary context of `device`.
Status UseDevice(int device);
// cudaDeviceReset: destroys the current device's primary context; every thread binds again at its
// next call.
Status ResetDevice();
// Gives all primary contexts back; called when the process ends.
void ReleaseContexts();

// Binds the calling thread to a context: the one that is current, else its device's primary one.
cudaError_t BindThread();

template <typename Body>
cudaError_t WithDriver(Body body) {
  const Process& process = GetProcess();
  if (process.status != cudaSuccess) return Note(process.status);
  return Note(body(process.driver->legacy));
}

template <typename Body>
cudaError_t WithContext(Body body) {
  const cudaError_t bound = BindThread();
  if (bound != cudaSuccess) return Note(bound);
  return Note(body(GetProcess().driver->legacy));
}

inline CUdeviceptr Address(const void* pointer) { return reinterpret_cast<CUdeviceptr>(pointer); }
inline CUdeviceptr* AddressOut(void** pointer) { return reinterpret_cast<CUdeviceptr*>(pointer); }

}  // namespace atp::simrt
