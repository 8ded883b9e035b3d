// SPDX-License-Identifier: Apache-2.0
// Attributes and parameters of functions and kernels.
#include "sim/driver/driver.h"
#include "sim/driver/module.h"

namespace atp::sim {
namespace {

// A function or kernel handle: its description and settings.
struct Described {
  const KernelInfo* info = nullptr;
  FunctionSettings* settings = nullptr;
};

Described Describe(Call& call, const void* handle) {
  if (Function* function = call.driver.functions.Get(handle))
    return {function->info, &function->settings};
  Kernel* kernel = call.driver.kernels.Get(handle);
  if (!kernel || Outline(*kernel->library) != CUDA_SUCCESS) return {};
  for (const KernelInfo& info : kernel->library->outline->kernels()) {
    if (info.name == kernel->name) return {&info, &kernel->settings};
  }
  return {};
}

int TargetVersion(const DeviceShape& shape) { return shape.major * 10 + shape.minor; }

CUresult GetAttribute(const Described& described, const DeviceShape& shape,
                      CUfunction_attribute attribute, int* value) {
  const KernelInfo& info = *described.info;
  switch (attribute) {
    case CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK:
      *value = static_cast<int>(info.max_threads_per_block);
      break;
    case CU_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES:
      *value = static_cast<int>(info.static_shared_bytes);
      break;
    case CU_FUNC_ATTRIBUTE_CONST_SIZE_BYTES:
      *value = static_cast<int>(info.const_bytes);
      break;
    case CU_FUNC_ATTRIBUTE_LOCAL_SIZE_BYTES:
      *value = static_cast<int>(info.local_bytes);
      break;
    case CU_FUNC_ATTRIBUTE_NUM_REGS:
      *value = static_cast<int>(info.registers);
      break;
    case CU_FUNC_ATTRIBUTE_PTX_VERSION:
    case CU_FUNC_ATTRIBUTE_BINARY_VERSION:
      *value = TargetVersion(shape);
      break;
    case CU_FUNC_ATTRIBUTE_CACHE_MODE_CA:
      *value = 0;
      break;
    case CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES:
      *value = described.settings->max_dynamic_shared_bytes;
      break;
    case CU_FUNC_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT:
      *value = described.settings->preferred_carveout;
      break;
    default: {
      if (attribute < 0 || attribute >= CU_FUNC_ATTRIBUTE_MAX) return CUDA_ERROR_INVALID_VALUE;
      const auto other = described.settings->others.find(attribute);
      *value = other == described.settings->others.end() ? 0 : other->second;
    }
  }
  return CUDA_SUCCESS;
}

CUresult SetAttribute(const Described& described, const DeviceShape& shape,
                      CUfunction_attribute attribute, int value) {
  switch (attribute) {
    case CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES: {
      const int most = shape.shared_bytes_per_block_optin -
                       static_cast<int>(described.info->static_shared_bytes);
      if (value < 0 || value > most) return CUDA_ERROR_INVALID_VALUE;
      described.settings->max_dynamic_shared_bytes = value;
      return CUDA_SUCCESS;
    }
    case CU_FUNC_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT:
      if (value < -1 || value > 100) return CUDA_ERROR_INVALID_VALUE;
      described.settings->preferred_carveout = value;
      return CUDA_SUCCESS;
    case CU_FUNC_ATTRIBUTE_CLUSTER_SIZE_MUST_BE_SET:
    case CU_FUNC_ATTRIBUTE_REQUIRED_CLUSTER_WIDTH:
    case CU_FUNC_ATTRIBUTE_REQUIRED_CLUSTER_HEIGHT:
    case CU_FUNC_ATTRIBUTE_REQUIRED_CLUSTER_DEPTH:
    case CU_FUNC_ATTRIBUTE_NON_PORTABLE_CLUSTER_SIZE_ALLOWED:
      return value ? CUDA_ERROR_NOT_SUPPORTED : CUDA_SUCCESS;  // no clusters
    default:
      return CUDA_ERROR_INVALID_VALUE;
  }
}

CUresult ParamInfoOf(const Described& described, size_t index, size_t* offset, size_t* size) {
  if (!described.info) return CUDA_ERROR_INVALID_HANDLE;
  if (!offset || index >= described.info->params.size()) return CUDA_ERROR_INVALID_VALUE;
  *offset = described.info->params[index].offset;
  if (size) *size = described.info->params[index].size;
  return CUDA_SUCCESS;
}

}  // namespace
}  // namespace atp::sim

ATP_API cuFuncGetAttribute(int* value, CUfunction_attribute attribute, CUfunction function) {
  ATP_CALL(kNeedsContext, cost::kCall);
  const Described described = Describe(call, function);
  if (!described.info) return CUDA_ERROR_INVALID_HANDLE;
  if (!value) return CUDA_ERROR_INVALID_VALUE;
  return GetAttribute(described, *call.context->device->shape, attribute, value);
}

ATP_API cuFuncSetAttribute(CUfunction function, CUfunction_attribute attribute, int value) {
  ATP_CALL(kNeedsContext, cost::kCall);
  const Described described = Describe(call, function);
  if (!described.info) return CUDA_ERROR_INVALID_HANDLE;
  return SetAttribute(described, *call.context->device->shape, attribute, value);
}

ATP_API cuFuncSetCacheConfig(CUfunction function, CUfunc_cache) {
  ATP_CALL(kNeedsContext, cost::kCall);
  return Describe(call, function).info ? CUDA_SUCCESS : CUDA_ERROR_INVALID_HANDLE;
}

ATP_API cuFuncSetSharedMemConfig(CUfunction function, CUsharedconfig) {
  ATP_CALL(kNeedsContext, cost::kCall);
  return Describe(call, function).info ? CUDA_SUCCESS : CUDA_ERROR_INVALID_HANDLE;
}

ATP_API cuFuncGetModule(CUmodule* module, CUfunction handle) {
  ATP_CALL(kNeedsContext, cost::kCall);
  if (!module) return CUDA_ERROR_INVALID_VALUE;
  Function* function = nullptr;
  const CUresult result =
      ResolveFunction(call.driver, call.lane(), *call.context, handle, &function);
  if (result == CUDA_SUCCESS) *module = reinterpret_cast<CUmodule>(function->module);
  return result;
}

ATP_API cuFuncGetName(const char** name, CUfunction function) {
  ATP_CALL(kNeedsInit, cost::kCall);
  if (!name) return CUDA_ERROR_INVALID_VALUE;
  const Described described = Describe(call, function);
  if (!described.info) return CUDA_ERROR_INVALID_HANDLE;
  *name = described.info->name.c_str();
  return CUDA_SUCCESS;
}

ATP_API cuFuncGetParamInfo(CUfunction function, size_t index, size_t* offset, size_t* size) {
  ATP_CALL(kNeedsInit, cost::kCall);
  return ParamInfoOf(Describe(call, function), index, offset, size);
}

ATP_API cuFuncIsLoaded(CUfunctionLoadingState* state, CUfunction function) {
  ATP_CALL(kNeedsContext, cost::kCall);
  if (!state) return CUDA_ERROR_INVALID_VALUE;
  if (!Describe(call, function).info) return CUDA_ERROR_INVALID_HANDLE;
  *state = CU_FUNCTION_LOADING_STATE_LOADED;
  return CUDA_SUCCESS;
}

ATP_API cuFuncLoad(CUfunction function) {
  ATP_CALL(kNeedsContext, cost::kCall);
  return Describe(call, function).info ? CUDA_SUCCESS : CUDA_ERROR_INVALID_HANDLE;
}

ATP_API cuKernelGetAttribute(int* value, CUfunction_attribute attribute, CUkernel kernel,
                             CUdevice ordinal) {
  ATP_CALL(kNeedsInit, cost::kCall);
  const Device* device = call.driver.DeviceAt(ordinal);
  if (!device) return CUDA_ERROR_INVALID_DEVICE;
  const Described described = Describe(call, kernel);
  if (!described.info) return CUDA_ERROR_INVALID_HANDLE;
  if (!value) return CUDA_ERROR_INVALID_VALUE;
  return GetAttribute(described, *device->shape, attribute, value);
}

// Applies to the kernel in every context, to those that are loaded already as well.
ATP_API cuKernelSetAttribute(CUfunction_attribute attribute, int value, CUkernel handle,
                             CUdevice ordinal) {
  ATP_CALL(kNeedsInit, cost::kCall);
  const Device* device = call.driver.DeviceAt(ordinal);
  if (!device) return CUDA_ERROR_INVALID_DEVICE;
  const Described described = Describe(call, handle);
  if (!described.info) return CUDA_ERROR_INVALID_HANDLE;
  const CUresult result = SetAttribute(described, *device->shape, attribute, value);
  Kernel* kernel = call.driver.kernels.Get(handle);
  if (result != CUDA_SUCCESS || !kernel) return result;
  for (const auto& [context, module] : kernel->library->instances) {
    const auto function = module->functions.find(kernel->name);
    if (function != module->functions.end()) function->second->settings = kernel->settings;
  }
  return result;
}

ATP_API cuKernelSetCacheConfig(CUkernel kernel, CUfunc_cache, CUdevice ordinal) {
  ATP_CALL(kNeedsInit, cost::kCall);
  if (!call.driver.DeviceAt(ordinal)) return CUDA_ERROR_INVALID_DEVICE;
  return Describe(call, kernel).info ? CUDA_SUCCESS : CUDA_ERROR_INVALID_HANDLE;
}

ATP_API cuKernelGetParamInfo(CUkernel kernel, size_t index, size_t* offset, size_t* size) {
  ATP_CALL(kNeedsInit, cost::kCall);
  return ParamInfoOf(Describe(call, kernel), index, offset, size);
}
