// SPDX-License-Identifier: Apache-2.0
// cuLibrary* and cuKernel*: code that belongs to the process and is loaded into each context that
// uses it. The runtime library loads everything this way and passes kernels where functions are
// expected.
#include "sim/driver/driver.h"
#include "sim/driver/image.h"
#include "sim/driver/module.h"

namespace atp::sim {
namespace {

CUresult LoadLibrary(Call& call, CUlibrary* out, const Image& image) {
  if (image.result != CUDA_SUCCESS) {
    SayCannotLoad(image.error);
    return image.result;
  }
  auto* library = new Library;
  library->ptx = image.ptx;
  if (call.driver.settings().eager_modules) {
    const CUresult result = Outline(*library);
    if (result != CUDA_SUCCESS) {
      delete library;
      return result;
    }
  }
  *out = reinterpret_cast<CUlibrary>(call.driver.libraries.Add(library));
  return CUDA_SUCCESS;
}

CUresult FindVariable(Call& call, CUlibrary handle, const char* name, bool managed,
                      CUdeviceptr* address, size_t* bytes) {
  if (!name || (!address && !bytes)) return CUDA_ERROR_INVALID_VALUE;
  Library* library = call.driver.libraries.Get(handle);
  if (!library) return CUDA_ERROR_INVALID_HANDLE;
  ModuleInstance* module = nullptr;
  const CUresult result = InstanceIn(call.driver, call.lane(), *library, *call.context, &module);
  if (result != CUDA_SUCCESS) return result;
  const auto found = module->variables.find(name);
  if (found == module->variables.end() || found->second->IsManaged() != managed)
    return CUDA_ERROR_NOT_FOUND;
  if (address) *address = found->second->begin;
  if (bytes) *bytes = found->second->bytes;
  return CUDA_SUCCESS;
}

}  // namespace
}  // namespace atp::sim

ATP_API cuLibraryLoadData(CUlibrary* library, const void* code, CUjit_option*, void**, unsigned,
                          CUlibraryOption*, void**, unsigned) {
  ATP_CALL(kNeedsInit, cost::kModule);
  if (!library || !code) return CUDA_ERROR_INVALID_VALUE;
  return LoadLibrary(call, library, ReadImage(code, 0));
}

ATP_API cuLibraryLoadFromFile(CUlibrary* library, const char* path, CUjit_option*, void**, unsigned,
                              CUlibraryOption*, void**, unsigned) {
  ATP_CALL(kNeedsInit, cost::kModule);
  if (!library || !path) return CUDA_ERROR_INVALID_VALUE;
  const std::string content = ReadFile(path);
  if (content.empty()) return CUDA_ERROR_FILE_NOT_FOUND;
  return LoadLibrary(call, library, ReadImage(content.data(), content.size()));
}

ATP_API cuLibraryUnload(CUlibrary handle) {
  ATP_CALL(kNeedsInit, cost::kModule);
  Library* library = call.driver.libraries.Get(handle);
  if (!library) return CUDA_ERROR_INVALID_HANDLE;
  while (!library->instances.empty()) {
    auto [context, module] = *library->instances.begin();
    call.machine().SyncDevice(call.lane(), context->device->index);
    UnloadModule(call.driver, call.lane(), module);
  }
  for (const auto& [name, kernel] : library->kernels) call.driver.kernels.Remove(kernel.get());
  call.driver.libraries.Remove(library);
  delete library;
  return CUDA_SUCCESS;
}

ATP_API cuLibraryGetKernel(CUkernel* kernel, CUlibrary handle, const char* name) {
  ATP_CALL(kNeedsInit, cost::kCall);
  if (!kernel || !name) return CUDA_ERROR_INVALID_VALUE;
  Library* library = call.driver.libraries.Get(handle);
  if (!library) return CUDA_ERROR_INVALID_HANDLE;
  if (const CUresult result = Outline(*library); result != CUDA_SUCCESS) return result;
  Kernel* found = FindKernel(call.driver, *library, name);
  if (!found) return CUDA_ERROR_NOT_FOUND;
  *kernel = reinterpret_cast<CUkernel>(found);
  return CUDA_SUCCESS;
}

ATP_API cuLibraryGetKernelCount(unsigned* count, CUlibrary handle) {
  ATP_CALL(kNeedsInit, cost::kCall);
  if (!count) return CUDA_ERROR_INVALID_VALUE;
  Library* library = call.driver.libraries.Get(handle);
  if (!library) return CUDA_ERROR_INVALID_HANDLE;
  if (const CUresult result = Outline(*library); result != CUDA_SUCCESS) return result;
  *count = static_cast<unsigned>(library->outline->kernels().size());
  return CUDA_SUCCESS;
}

ATP_API cuLibraryEnumerateKernels(CUkernel* kernels, unsigned count, CUlibrary handle) {
  ATP_CALL(kNeedsInit, cost::kCall);
  if (!kernels && count) return CUDA_ERROR_INVALID_VALUE;
  Library* library = call.driver.libraries.Get(handle);
  if (!library) return CUDA_ERROR_INVALID_HANDLE;
  if (const CUresult result = Outline(*library); result != CUDA_SUCCESS) return result;
  unsigned next = 0;
  for (const KernelInfo& info : library->outline->kernels()) {
    if (next == count) break;
    kernels[next++] = reinterpret_cast<CUkernel>(FindKernel(call.driver, *library, info.name));
  }
  return CUDA_SUCCESS;
}

ATP_API cuLibraryGetModule(CUmodule* module, CUlibrary handle) {
  ATP_CALL(kNeedsContext, cost::kCall);
  if (!module) return CUDA_ERROR_INVALID_VALUE;
  Library* library = call.driver.libraries.Get(handle);
  if (!library) return CUDA_ERROR_INVALID_HANDLE;
  ModuleInstance* instance = nullptr;
  const CUresult result = InstanceIn(call.driver, call.lane(), *library, *call.context, &instance);
  if (result == CUDA_SUCCESS) *module = reinterpret_cast<CUmodule>(instance);
  return result;
}

ATP_API cuLibraryGetGlobal(CUdeviceptr* address, size_t* bytes, CUlibrary library,
                           const char* name) {
  ATP_CALL(kNeedsContext, cost::kCall);
  return FindVariable(call, library, name, /*managed=*/false, address, bytes);
}

// A managed variable has one address per context here; a real driver has one for all of them
// (docs/sim.md).
ATP_API cuLibraryGetManaged(CUdeviceptr* address, size_t* bytes, CUlibrary library,
                            const char* name) {
  ATP_CALL(kNeedsContext, cost::kCall);
  return FindVariable(call, library, name, /*managed=*/true, address, bytes);
}

ATP_API cuKernelGetFunction(CUfunction* function, CUkernel kernel) {
  ATP_CALL(kNeedsContext, cost::kCall);
  if (!function) return CUDA_ERROR_INVALID_VALUE;
  Function* found = nullptr;
  const CUresult result = ResolveFunction(call.driver, call.lane(), *call.context, kernel, &found);
  if (result == CUDA_SUCCESS) *function = reinterpret_cast<CUfunction>(found);
  return result;
}

ATP_API cuKernelGetLibrary(CUlibrary* library, CUkernel handle) {
  ATP_CALL(kNeedsInit, cost::kCall);
  if (!library) return CUDA_ERROR_INVALID_VALUE;
  Kernel* kernel = call.driver.kernels.Get(handle);
  if (!kernel) return CUDA_ERROR_INVALID_HANDLE;
  *library = reinterpret_cast<CUlibrary>(kernel->library);
  return CUDA_SUCCESS;
}

ATP_API cuKernelGetName(const char** name, CUkernel handle) {
  ATP_CALL(kNeedsInit, cost::kCall);
  if (!name) return CUDA_ERROR_INVALID_VALUE;
  Kernel* kernel = call.driver.kernels.Get(handle);
  if (kernel) {
    *name = kernel->name.c_str();
    return CUDA_SUCCESS;
  }
  Function* function = call.driver.functions.Get(handle);
  if (!function) return CUDA_ERROR_INVALID_HANDLE;
  *name = function->info->name.c_str();
  return CUDA_SUCCESS;
}
