// SPDX-License-Identifier: Apache-2.0
// How the stand-in runtime finds the driver: the way NVIDIA's runtime does, so that hooks meet the
// same pattern. One dlopen("libcuda.so.1"), one dlsym (cuGetProcAddress_v2), then the versioned
// requests of driver_lookups.def, made through the pointer that was answered for "cuGetProcAddress"
// at 12000. Called from any thread; loading happens once. State lives on the heap and is never
// freed, because programs and frameworks call the runtime from destructors that run after ours.
#pragma once

#include <cuda.h>
#include <cudaProfilerTypedefs.h>
#include <cudaTypedefs.h>
#include <cuda_runtime_api.h>

namespace atp::simrt {

// The first versions, which the runtime asks for and cudaTypedefs.h leaves out; parameters as in
// the later ones.
using PFN_cuDevicePrimaryCtxRelease_v7000 = PFN_cuDevicePrimaryCtxRelease_v11000;
using PFN_cuDevicePrimaryCtxReset_v7000 = PFN_cuDevicePrimaryCtxReset_v11000;

// Typed pointers of driver_calls.def. A request that the driver could not answer points to a
// function that returns CUDA_ERROR_NOT_SUPPORTED, so no member is ever null.
struct DriverCalls {
#define CALL(name, version) PFN_cu##name##_v##version name;
#define STREAM_CALL(name, version, per_thread_version) PFN_cu##name##_v##version name;
#include "sim/runtime/driver_calls.def"
#undef CALL
#undef STREAM_CALL
};

struct Driver {
  DriverCalls legacy;               // default stream = the legacy one
  DriverCalls per_thread;           // default stream = the thread's own
  PFN_cuGetProcAddress_v12000 get;  // the pointer used for all look-ups
};

// cudaErrorInsufficientDriver when there is no driver, it is too old, or it offers no versioned
// look-ups. The first failure says on stderr what was missing. Does not initialise the driver (no
// cuInit).
cudaError_t LoadDriver(const Driver** driver);

}  // namespace atp::simrt
