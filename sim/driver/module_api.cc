// SPDX-License-Identifier: Apache-2.0
// cuModule*: code loaded into the current context.
#include "sim/driver/driver.h"
#include "sim/driver/image.h"
#include "sim/driver/jit_log.h"
#include "sim/driver/module.h"

namespace atp::sim {
namespace {

CUresult Load(Call& call, CUmodule* out, const Image& image, std::string* error) {
  *error = image.error;
  CUresult result = image.result;
  ModuleInstance* module = nullptr;
  if (result == CUDA_SUCCESS)
    result = LoadModule(call.driver, call.lane(), *call.context, image.ptx, &module, error);
  if (result != CUDA_SUCCESS) {
    SayCannotLoad(*error);
    return result;
  }
  *out = reinterpret_cast<CUmodule>(module);
  return CUDA_SUCCESS;
}

}  // namespace
}  // namespace atp::sim

ATP_API cuModuleLoad(CUmodule* module, const char* path) {
  ATP_CALL(kNeedsContext | kUnsafeInCapture, cost::kModule);
  if (!module || !path) return CUDA_ERROR_INVALID_VALUE;
  const std::string content = ReadFile(path);
  if (content.empty()) return CUDA_ERROR_FILE_NOT_FOUND;
  std::string error;
  return Load(call, module, ReadImage(content.data(), content.size()), &error);
}

ATP_API cuModuleLoadData(CUmodule* module, const void* image) {
  ATP_CALL(kNeedsContext | kUnsafeInCapture, cost::kModule);
  if (!module || !image) return CUDA_ERROR_INVALID_VALUE;
  std::string error;
  return Load(call, module, ReadImage(image, 0), &error);
}

ATP_API cuModuleLoadDataEx(CUmodule* module, const void* image, unsigned count,
                           CUjit_option* options, void** values) {
  ATP_CALL(kNeedsContext | kUnsafeInCapture, cost::kModule);
  if (!module || !image || (count && (!options || !values))) return CUDA_ERROR_INVALID_VALUE;
  std::string error;
  const CUresult result = Load(call, module, ReadImage(image, 0), &error);
  if (result != CUDA_SUCCESS) JitLog::Of(count, options, values).Write(error);
  return result;
}

ATP_API cuModuleLoadFatBinary(CUmodule* module, const void* image) {
  ATP_CALL(kNeedsContext | kUnsafeInCapture, cost::kModule);
  if (!module || !image) return CUDA_ERROR_INVALID_VALUE;
  std::string error;
  return Load(call, module, ReadImage(image, 0), &error);
}

ATP_API cuModuleUnload(CUmodule handle) {
  ATP_CALL(kNeedsContext | kUnsafeInCapture | kIgnoresStickyErrors, cost::kModule);
  ModuleInstance* module = call.driver.modules.Get(handle);
  if (!module || module->library) return CUDA_ERROR_INVALID_HANDLE;
  WaitForContext(call, *module->context);
  UnloadModule(call.driver, call.lane(), module);
  return CUDA_SUCCESS;
}

ATP_API cuModuleGetFunction(CUfunction* function, CUmodule handle, const char* name) {
  ATP_CALL(kNeedsContext, cost::kCall);
  if (!function || !name) return CUDA_ERROR_INVALID_VALUE;
  ModuleInstance* module = call.driver.modules.Get(handle);
  if (!module) return CUDA_ERROR_INVALID_HANDLE;
  Function* found = FindFunction(call.driver, *module, name);
  if (!found) return CUDA_ERROR_NOT_FOUND;
  *function = reinterpret_cast<CUfunction>(found);
  return CUDA_SUCCESS;
}

ATP_API cuModuleGetFunctionCount(unsigned* count, CUmodule handle) {
  ATP_CALL(kNeedsContext, cost::kCall);
  if (!count) return CUDA_ERROR_INVALID_VALUE;
  ModuleInstance* module = call.driver.modules.Get(handle);
  if (!module) return CUDA_ERROR_INVALID_HANDLE;
  *count = static_cast<unsigned>(module->code->kernels().size());
  return CUDA_SUCCESS;
}

ATP_API cuModuleEnumerateFunctions(CUfunction* functions, unsigned count, CUmodule handle) {
  ATP_CALL(kNeedsContext, cost::kCall);
  if (!functions && count) return CUDA_ERROR_INVALID_VALUE;
  ModuleInstance* module = call.driver.modules.Get(handle);
  if (!module) return CUDA_ERROR_INVALID_HANDLE;
  unsigned next = 0;
  for (const KernelInfo& info : module->code->kernels()) {
    if (next == count) break;
    functions[next++] = reinterpret_cast<CUfunction>(FindFunction(call.driver, *module, info.name));
  }
  return CUDA_SUCCESS;
}

ATP_API cuModuleGetGlobal_v2(CUdeviceptr* address, size_t* bytes, CUmodule handle,
                             const char* name) {
  ATP_CALL(kNeedsContext, cost::kCall);
  if (!name || (!address && !bytes)) return CUDA_ERROR_INVALID_VALUE;
  ModuleInstance* module = call.driver.modules.Get(handle);
  if (!module) return CUDA_ERROR_INVALID_HANDLE;
  const auto found = module->variables.find(name);
  if (found == module->variables.end()) return CUDA_ERROR_NOT_FOUND;
  if (address) *address = found->second->begin;
  if (bytes) *bytes = found->second->bytes;
  return CUDA_SUCCESS;
}

ATP_API cuModuleGetLoadingMode(CUmoduleLoadingMode* mode) {
  ATP_CALL(kNeedsInit, cost::kCall);
  if (!mode) return CUDA_ERROR_INVALID_VALUE;
  *mode = call.driver.settings().eager_modules ? CU_MODULE_EAGER_LOADING : CU_MODULE_LAZY_LOADING;
  return CUDA_SUCCESS;
}
