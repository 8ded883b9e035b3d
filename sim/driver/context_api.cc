// SPDX-License-Identifier: Apache-2.0
// Contexts: the current one of each thread, created ones, and their limits and flags.
#include <algorithm>

#include "sim/driver/capture.h"
#include "sim/driver/driver.h"

namespace atp::sim {
namespace {

constexpr unsigned kKnownFlags = CU_CTX_FLAGS_MASK;

CUresult Create(Call& call, CUcontext* out, unsigned flags, CUdevice ordinal,
                unsigned api_version) {
  if (!out || (flags & ~kKnownFlags)) return CUDA_ERROR_INVALID_VALUE;
  Device* device = call.driver.DeviceAt(ordinal);
  if (!device) return CUDA_ERROR_INVALID_DEVICE;
  Context* context = call.driver.NewContext(device, flags, /*primary=*/false);
  context->api_version = api_version;
  call.thread.contexts.push_back(context);
  *out = reinterpret_cast<CUcontext>(context);
  return CUDA_SUCCESS;
}

Context* GivenOrCurrent(Call& call, CUcontext handle) {
  return handle ? call.driver.contexts.Get(handle) : call.context;
}

size_t DefaultLimit(CUlimit limit) {
  switch (limit) {
    case CU_LIMIT_STACK_SIZE:
      return 1024;
    case CU_LIMIT_PRINTF_FIFO_SIZE:
      return 1 << 20;
    case CU_LIMIT_MALLOC_HEAP_SIZE:
      return 8 << 20;
    case CU_LIMIT_DEV_RUNTIME_SYNC_DEPTH:
      return 2;
    case CU_LIMIT_DEV_RUNTIME_PENDING_LAUNCH_COUNT:
      return 2048;
    case CU_LIMIT_MAX_L2_FETCH_GRANULARITY:
      return 64;
    default:
      return 0;
  }
}

}  // namespace
}  // namespace atp::sim

ATP_API cuCtxCreate_v2(CUcontext* context, unsigned flags, CUdevice device) {
  ATP_CALL(kNeedsInit | kUnsafeInCapture, cost::kContext);
  return Create(call, context, flags, device, 3020);
}

ATP_API cuCtxCreate_v3(CUcontext* context, CUexecAffinityParam*, int count, unsigned flags,
                       CUdevice device) {
  ATP_CALL(kNeedsInit | kUnsafeInCapture, cost::kContext);
  if (count) return CUDA_ERROR_UNSUPPORTED_EXEC_AFFINITY;
  return Create(call, context, flags, device, 3020);
}

ATP_API cuCtxCreate_v4(CUcontext* context, CUctxCreateParams* params, unsigned flags,
                       CUdevice device) {
  ATP_CALL(kNeedsInit | kUnsafeInCapture, cost::kContext);
  if (params && (params->numExecAffinityParams || params->cigParams))
    return CUDA_ERROR_NOT_SUPPORTED;
  return Create(call, context, flags, device, 3020);
}

ATP_API cuCtxDestroy_v2(CUcontext handle) {
  ATP_CALL(kNeedsInit, cost::kContext);
  Context* context = call.driver.contexts.Get(handle);
  if (!context || context->primary) return CUDA_ERROR_INVALID_CONTEXT;
  auto& stack = call.thread.contexts;
  if (!stack.empty() && stack.back() == context) stack.pop_back();
  WaitForContext(call, *context);
  call.driver.DestroyContext(call.lane(), context);
  return CUDA_SUCCESS;
}

ATP_API cuCtxDestroy(CUcontext context) { return cuCtxDestroy_v2(context); }

ATP_API cuCtxDetach(CUcontext context) { return cuCtxDestroy_v2(context); }

ATP_API cuCtxAttach(CUcontext* context, unsigned flags) {
  ATP_CALL(kNeedsContext, cost::kCall);
  if (!context || flags) return CUDA_ERROR_INVALID_VALUE;
  *context = reinterpret_cast<CUcontext>(call.context);
  return CUDA_SUCCESS;
}

ATP_API cuCtxPushCurrent_v2(CUcontext handle) {
  ATP_CALL(kNeedsInit, cost::kCall);
  Context* context = call.driver.contexts.Get(handle);
  if (!context) return CUDA_ERROR_INVALID_CONTEXT;
  call.thread.contexts.push_back(context);
  return CUDA_SUCCESS;
}

ATP_API cuCtxPushCurrent(CUcontext context) { return cuCtxPushCurrent_v2(context); }

ATP_API cuCtxPopCurrent_v2(CUcontext* out) {
  ATP_CALL(kNeedsInit, cost::kCall);
  auto& stack = call.thread.contexts;
  if (stack.empty()) return CUDA_ERROR_INVALID_CONTEXT;
  if (out) *out = reinterpret_cast<CUcontext>(stack.back());
  stack.pop_back();
  return CUDA_SUCCESS;
}

ATP_API cuCtxPopCurrent(CUcontext* context) { return cuCtxPopCurrent_v2(context); }

ATP_API cuCtxSetCurrent(CUcontext handle) {
  ATP_CALL(kNeedsInit, cost::kCall);
  auto& stack = call.thread.contexts;
  Context* context = call.driver.contexts.Get(handle);
  if (handle && !context) return CUDA_ERROR_INVALID_CONTEXT;
  if (!stack.empty()) stack.pop_back();
  if (context) stack.push_back(context);
  return CUDA_SUCCESS;
}

ATP_API cuCtxGetCurrent(CUcontext* context) {
  ATP_CALL(kNeedsInit, cost::kCall);
  if (!context) return CUDA_ERROR_INVALID_VALUE;
  *context = reinterpret_cast<CUcontext>(call.context);
  return CUDA_SUCCESS;
}

ATP_API cuCtxGetDevice_v2(CUdevice* device, CUcontext handle) {
  ATP_CALL(kNeedsInit, cost::kCall);
  if (!device) return CUDA_ERROR_INVALID_VALUE;
  Context* context = GivenOrCurrent(call, handle);
  if (!context) return CUDA_ERROR_INVALID_CONTEXT;
  *device = context->device->ordinal;
  return CUDA_SUCCESS;
}

ATP_API cuCtxGetDevice(CUdevice* device) { return cuCtxGetDevice_v2(device, nullptr); }

ATP_API cuCtxGetFlags(unsigned* flags) {
  ATP_CALL(kNeedsContext, cost::kCall);
  if (!flags) return CUDA_ERROR_INVALID_VALUE;
  *flags = call.context->flags;
  return CUDA_SUCCESS;
}

ATP_API cuCtxSetFlags(unsigned flags) {
  ATP_CALL(kNeedsContext, cost::kCall);
  if (flags & ~kKnownFlags) return CUDA_ERROR_INVALID_VALUE;
  call.context->flags = flags;
  return CUDA_SUCCESS;
}

ATP_API cuCtxGetId(CUcontext handle, unsigned long long* id) {
  ATP_CALL(kNeedsInit, cost::kCall);
  if (!id) return CUDA_ERROR_INVALID_VALUE;
  Context* context = GivenOrCurrent(call, handle);
  if (!context) return handle ? CUDA_ERROR_CONTEXT_IS_DESTROYED : CUDA_ERROR_INVALID_CONTEXT;
  *id = context->id;
  return CUDA_SUCCESS;
}

ATP_API cuCtxGetApiVersion(CUcontext handle, unsigned* version) {
  ATP_CALL(kNeedsInit, cost::kCall);
  if (!version) return CUDA_ERROR_INVALID_VALUE;
  Context* context = GivenOrCurrent(call, handle);
  if (!context) return CUDA_ERROR_INVALID_CONTEXT;
  *version = context->api_version;
  return CUDA_SUCCESS;
}

ATP_API cuCtxSynchronize_v2(CUcontext handle) {
  ATP_CALL(kNeedsInit | kUnsafeInCapture, cost::kSync);
  Context* context = GivenOrCurrent(call, handle);
  if (!context) return CUDA_ERROR_INVALID_CONTEXT;
  if (const CUresult result = Health(call.driver, *context); result != CUDA_SUCCESS) return result;
  return WaitForContext(call, *context);
}

ATP_API cuCtxSynchronize(void) { return cuCtxSynchronize_v2(nullptr); }

ATP_API cuCtxSetLimit(CUlimit limit, size_t value) {
  ATP_CALL(kNeedsContext, cost::kCall);
  if (limit < 0 || limit >= CU_LIMIT_MAX) return CUDA_ERROR_INVALID_VALUE;
  call.context->limits[limit] = value;
  return CUDA_SUCCESS;
}

ATP_API cuCtxGetLimit(size_t* value, CUlimit limit) {
  ATP_CALL(kNeedsContext, cost::kCall);
  if (!value || limit < 0 || limit >= CU_LIMIT_MAX) return CUDA_ERROR_INVALID_VALUE;
  const auto set = call.context->limits.find(limit);
  *value = set == call.context->limits.end() ? DefaultLimit(limit) : set->second;
  return CUDA_SUCCESS;
}

ATP_API cuCtxGetCacheConfig(CUfunc_cache* config) {
  ATP_CALL(kNeedsContext, cost::kCall);
  if (!config) return CUDA_ERROR_INVALID_VALUE;
  *config = call.context->cache;
  return CUDA_SUCCESS;
}

ATP_API cuCtxSetCacheConfig(CUfunc_cache config) {
  ATP_CALL(kNeedsContext, cost::kCall);
  call.context->cache = config;
  return CUDA_SUCCESS;
}

ATP_API cuCtxGetSharedMemConfig(CUsharedconfig* config) {
  ATP_CALL(kNeedsContext, cost::kCall);
  if (!config) return CUDA_ERROR_INVALID_VALUE;
  *config = CU_SHARED_MEM_CONFIG_FOUR_BYTE_BANK_SIZE;
  return CUDA_SUCCESS;
}

ATP_API cuCtxSetSharedMemConfig(CUsharedconfig config) {
  ATP_CALL(kNeedsContext, cost::kCall);
  call.context->shared_config = config;
  return CUDA_SUCCESS;
}

ATP_API cuCtxGetStreamPriorityRange(int* least, int* greatest) {
  ATP_CALL(kNeedsContext, cost::kCall);
  if (least) *least = 0;
  if (greatest) *greatest = -5;
  return CUDA_SUCCESS;
}

ATP_API cuCtxResetPersistingL2Cache(void) {
  ATP_CALL(kNeedsContext, cost::kCall);
  return CUDA_SUCCESS;
}

ATP_API cuCtxEnablePeerAccess(CUcontext handle, unsigned flags) {
  ATP_CALL(kNeedsContext, cost::kStream);
  if (flags) return CUDA_ERROR_INVALID_VALUE;
  Context* peer = call.driver.contexts.Get(handle);
  if (!peer || peer == call.context) return CUDA_ERROR_INVALID_CONTEXT;
  if (peer->device == call.context->device) return CUDA_ERROR_PEER_ACCESS_UNSUPPORTED;
  if (!call.context->peers.insert(peer).second) return CUDA_ERROR_PEER_ACCESS_ALREADY_ENABLED;
  call.machine().SetPeerAccess(call.context->device->index, peer->device->index, true);
  return CUDA_SUCCESS;
}

ATP_API cuCtxDisablePeerAccess(CUcontext handle) {
  ATP_CALL(kNeedsContext, cost::kStream);
  Context* peer = call.driver.contexts.Get(handle);
  if (!peer) return CUDA_ERROR_INVALID_CONTEXT;
  if (!call.context->peers.erase(peer)) return CUDA_ERROR_PEER_ACCESS_NOT_ENABLED;
  call.machine().SetPeerAccess(call.context->device->index, peer->device->index, false);
  return CUDA_SUCCESS;
}
