// SPDX-License-Identifier: Apache-2.0
// Launches of kernels and host functions.
#include "sim/driver/capture.h"
#include "sim/driver/driver.h"
#include "sim/driver/launch.h"

namespace atp::sim {
namespace {

struct Geometry {
  unsigned grid[3], block[3], shared_bytes;
};

CUresult Launch(Call& call, CUfunction handle, const Geometry& geometry, CUstream stream_handle,
                bool cooperative, void** kernel_params, void** extra) {
  Stream* stream = nullptr;
  CUresult result = ResolveStream(call, stream_handle, &stream);
  if (result != CUDA_SUCCESS) return result;
  Function* function = nullptr;
  result = ResolveFunction(call.driver, call.lane(), *stream->context, handle, &function);
  if (result != CUDA_SUCCESS) return result;
  LaunchConfig config;
  for (int i = 0; i < 3; ++i) {
    config.grid[i] = geometry.grid[i];
    config.block[i] = geometry.block[i];
  }
  config.dynamic_shared_bytes = geometry.shared_bytes;
  config.cooperative = cooperative;
  KernelTask task;
  result = MakeKernelTask(call.driver, *function, config, kernel_params, extra, &task);
  if (call.thread.asks_for_touches && result == CUDA_SUCCESS) {
    task.touches = call.thread.touches = std::make_shared<KernelTouches>();
  }
  return result == CUDA_SUCCESS ? Submit(call, *stream, std::move(task)) : result;
}

// Clusters are refused; what only tunes is accepted.
CUresult CheckAttributes(const CUlaunchConfig& config, bool* cooperative) {
  if (config.numAttrs && !config.attrs) return CUDA_ERROR_INVALID_VALUE;
  for (unsigned i = 0; i < config.numAttrs; ++i) {
    const CUlaunchAttribute& attribute = config.attrs[i];
    if (attribute.id == CU_LAUNCH_ATTRIBUTE_COOPERATIVE)
      *cooperative = attribute.value.cooperative != 0;
    if (attribute.id == CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION) {
      const auto& cluster = attribute.value.clusterDim;
      if (cluster.x * cluster.y * cluster.z != 1) return CUDA_ERROR_NOT_SUPPORTED;
    }
  }
  return CUDA_SUCCESS;
}

}  // namespace
}  // namespace atp::sim

ATP_API cuLaunchKernel(CUfunction function, unsigned grid_x, unsigned grid_y, unsigned grid_z,
                       unsigned block_x, unsigned block_y, unsigned block_z, unsigned shared_bytes,
                       CUstream stream, void** kernel_params, void** extra) {
  ATP_CALL(kNeedsContext, cost::kLaunch);
  const Geometry geometry{{grid_x, grid_y, grid_z}, {block_x, block_y, block_z}, shared_bytes};
  return Launch(call, function, geometry, stream, false, kernel_params, extra);
}

ATP_API cuLaunchKernelEx(const CUlaunchConfig* config, CUfunction function, void** kernel_params,
                         void** extra) {
  ATP_CALL(kNeedsContext, cost::kLaunch);
  if (!config) return CUDA_ERROR_INVALID_VALUE;
  bool cooperative = false;
  if (const CUresult result = CheckAttributes(*config, &cooperative); result != CUDA_SUCCESS)
    return result;
  const Geometry geometry{{config->gridDimX, config->gridDimY, config->gridDimZ},
                          {config->blockDimX, config->blockDimY, config->blockDimZ},
                          config->sharedMemBytes};
  return Launch(call, function, geometry, config->hStream, cooperative, kernel_params, extra);
}

ATP_API cuLaunchCooperativeKernel(CUfunction function, unsigned grid_x, unsigned grid_y,
                                  unsigned grid_z, unsigned block_x, unsigned block_y,
                                  unsigned block_z, unsigned shared_bytes, CUstream stream,
                                  void** kernel_params) {
  ATP_CALL(kNeedsContext, cost::kLaunch);
  const Geometry geometry{{grid_x, grid_y, grid_z}, {block_x, block_y, block_z}, shared_bytes};
  return Launch(call, function, geometry, stream, true, kernel_params, nullptr);
}

ATP_API cuLaunchHostFunc(CUstream handle, CUhostFn function, void* argument) {
  ATP_CALL(kNeedsContext, cost::kLaunch);
  if (!function) return CUDA_ERROR_INVALID_VALUE;
  Stream* stream = nullptr;
  if (const CUresult result = ResolveStream(call, handle, &stream); result != CUDA_SUCCESS)
    return result;
  return Submit(call, *stream, HostTask{function, argument, nullptr, nullptr});
}

ATP_API cuStreamAddCallback(CUstream handle, CUstreamCallback callback, void* argument,
                            unsigned flags) {
  ATP_CALL(kNeedsContext, cost::kLaunch);
  if (!callback || flags) return CUDA_ERROR_INVALID_VALUE;
  Stream* stream = nullptr;
  if (const CUresult result = ResolveStream(call, handle, &stream); result != CUDA_SUCCESS)
    return result;
  if (IsCapturing(*stream)) return RefuseInCapture(*stream);
  return Submit(call, *stream, HostTask{nullptr, argument, callback, handle});
}
