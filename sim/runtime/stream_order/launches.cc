// SPDX-License-Identifier: Apache-2.0
// Kernel launches and host functions. A kernel handle of a library goes to the driver in the place
// of a function handle: the driver API allows that ("cuLaunchKernel" in the CUDA driver API
// manual), and NVIDIA's runtime does so.
#include "sim/runtime/stream_order/mode.h"

namespace {

CUfunction AsFunction(CUkernel kernel) { return reinterpret_cast<CUfunction>(kernel); }

// The driver calls a shape that no device can run an invalid value; the runtime has an error of its
// own for it.
Status NameShapeError(Status status, dim3 grid, dim3 block) {
  if (status.error != cudaErrorInvalidValue) return status;
  const auto& limits = GetProcess().devices[CurrentDevice()]->attributes;
  const unsigned long long threads = 1ull * block.x * block.y * block.z;
  const unsigned block_sizes[] = {block.x, block.y, block.z};
  const unsigned grid_sizes[] = {grid.x, grid.y, grid.z};
  const int most = limits[CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_BLOCK];
  bool fits = threads <= static_cast<unsigned>(most);
  for (int i = 0; i < 3; ++i) {
    const unsigned block_limit = limits[CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_X + i];
    const unsigned grid_limit = limits[CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_X + i];
    fits = fits && block_sizes[i] > 0 && block_sizes[i] <= block_limit;
    fits = fits && grid_sizes[i] > 0 && grid_sizes[i] <= grid_limit;
  }
  return fits ? status : Status(cudaErrorInvalidConfiguration);
}

Status Launch(const DriverCalls& cu, CUkernel kernel, dim3 grid, dim3 block, void** args,
              size_t shared_bytes, cudaStream_t stream) {
  if (!kernel) return KernelFailure();
  const Status status =
      cu.LaunchKernel(AsFunction(kernel), grid.x, grid.y, grid.z, block.x, block.y, block.z,
                      static_cast<unsigned>(shared_bytes), stream, args, nullptr);
  return status.ok() ? status : NameShapeError(status, grid, block);
}

}  // namespace

extern "C" {

#ifdef CUDA_API_PER_THREAD_DEFAULT_STREAM
#define __cudaLaunchKernel __cudaLaunchKernel_ptsz
#endif

cudaError_t __cudaLaunchKernel(cudaKernel_t kernel, dim3 grid, dim3 block, void** args,
                               size_t shared_bytes, cudaStream_t stream) {
  return InContext([&](const DriverCalls& cu) {
    return Launch(cu, reinterpret_cast<CUkernel>(kernel), grid, block, args, shared_bytes, stream);
  });
}

cudaError_t cudaLaunchKernel(const void* function, dim3 grid, dim3 block, void** args,
                             size_t shared_bytes, cudaStream_t stream) {
  return InContext([&](const DriverCalls& cu) {
    CUkernel kernel = nullptr;
    const Status status = Registry::Get().FindKernel(function, &kernel);
    return status.ok() ? Launch(cu, kernel, grid, block, args, shared_bytes, stream) : status;
  });
}

cudaError_t cudaLaunchCooperativeKernel(const void* function, dim3 grid, dim3 block, void** args,
                                        size_t shared_bytes, cudaStream_t stream) {
  return InContext([&](const DriverCalls& cu) -> Status {
    CUkernel kernel = nullptr;
    Status status = Registry::Get().FindKernel(function, &kernel);
    if (!status.ok()) return status;
    status =
        cu.LaunchCooperativeKernel(AsFunction(kernel), grid.x, grid.y, grid.z, block.x, block.y,
                                   block.z, static_cast<unsigned>(shared_bytes), stream, args);
    return NameShapeError(status, grid, block);
  });
}

cudaError_t cudaLaunchKernelExC(const cudaLaunchConfig_t* config, const void* function,
                                void** args) {
  return InContext([&](const DriverCalls& cu) -> Status {
    static_assert(sizeof(cudaLaunchAttribute) == sizeof(CUlaunchAttribute));
    CUkernel kernel = nullptr;
    const Status status = Registry::Get().FindKernel(function, &kernel);
    if (!status.ok()) return status;
    CUlaunchConfig c = {};
    c.gridDimX = config->gridDim.x;
    c.gridDimY = config->gridDim.y;
    c.gridDimZ = config->gridDim.z;
    c.blockDimX = config->blockDim.x;
    c.blockDimY = config->blockDim.y;
    c.blockDimZ = config->blockDim.z;
    c.sharedMemBytes = static_cast<unsigned>(config->dynamicSmemBytes);
    c.hStream = config->stream;
    c.attrs = reinterpret_cast<CUlaunchAttribute*>(config->attrs);
    c.numAttrs = config->numAttrs;
    return cu.LaunchKernelEx(&c, AsFunction(kernel), args, nullptr);
  });
}

cudaError_t cudaLaunchHostFunc(cudaStream_t stream, cudaHostFn_t function, void* user) {
  return InContext(
      [&](const DriverCalls& cu) { return cu.LaunchHostFunc(stream, function, user); });
}

}  // extern "C"
