// SPDX-License-Identifier: Apache-2.0
#include "sim/driver/module.h"

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <functional>

#include "sim/driver/driver.h"

namespace atp::sim {
namespace {

// Gives a module's variable its memory.
CUresult PlaceVariable(Driver& driver, Lane lane, ModuleInstance& module,
                       const GlobalInfo& global) {
  Allocation* allocation = nullptr;
  const uint64_t bytes = std::max<uint64_t>(global.bytes, 1);
  Memory& memory = driver.memory();
  const CUresult result =
      global.is_managed
          ? memory.AllocateManaged(lane, module.context, bytes, CU_MEM_ATTACH_GLOBAL, &allocation)
          : memory.AllocateDevice(lane, module.context, bytes, &allocation);
  if (result != CUDA_SUCCESS) return result;
  module.variables[global.name] = allocation;
  module.code->BindGlobal(global.name, allocation->begin);
  return CUDA_SUCCESS;
}

// Writes the first values, once every variable has its address: some hold addresses of others.
void FillVariables(Driver& driver, const ModuleInstance& module) {
  for (const auto& [name, allocation] : module.variables) {
    uint8_t* content = allocation->Bytes(allocation->begin);
    std::memset(content, 0,
                allocation->bytes);  // small pieces of device memory are reused uncleared
    const std::vector<uint8_t> initial = module.code->InitialImage(name);
    std::copy_n(initial.begin(), std::min<uint64_t>(initial.size(), allocation->bytes), content);
    driver.memory().NoteWritten(allocation->begin, allocation->bytes);
  }
}

}  // namespace

void SayCannotLoad(const std::string& error) {
  std::fprintf(stderr, "libcuda (simulated): cannot load code: %s\n", error.c_str());
}

CUresult LoadModule(Driver& driver, Lane lane, Context& context, std::string ptx,
                    ModuleInstance** module, std::string* error) {
  auto code = Module::Load(ptx, error);
  if (!code) return CUDA_ERROR_INVALID_PTX;
  auto* loaded = new ModuleInstance;
  loaded->context = &context;
  loaded->code = std::move(code);
  context.modules.insert(loaded);
  driver.modules.Add(loaded);
  for (const GlobalInfo& global : loaded->code->globals()) {
    const CUresult result = PlaceVariable(driver, lane, *loaded, global);
    if (result == CUDA_SUCCESS) continue;
    UnloadModule(driver, lane, loaded);
    *error = "no device memory for variable " + global.name;
    return result;
  }
  FillVariables(driver, *loaded);
  *module = loaded;
  return CUDA_SUCCESS;
}

void UnloadModule(Driver& driver, Lane lane, ModuleInstance* module) {
  for (const auto& [name, allocation] : module->variables) driver.memory().Free(lane, allocation);
  for (const auto& [name, function] : module->functions) driver.functions.Remove(function.get());
  module->context->modules.erase(module);
  if (module->library) module->library->instances.erase(module->context);
  driver.modules.Remove(module);
  delete module;
}

Function* FindFunction(Driver& driver, ModuleInstance& module, const std::string& name) {
  if (auto it = module.functions.find(name); it != module.functions.end()) return it->second.get();
  for (const KernelInfo& info : module.code->kernels()) {
    if (info.name != name) continue;
    auto function = std::make_unique<Function>();
    function->module = &module;
    function->info = &info;
    function->signature = std::hash<std::string>{}(name);
    if (module.library) {
      function->kernel = FindKernel(driver, *module.library, name);
      function->settings = function->kernel->settings;
    }
    Function* raw = function.get();
    module.functions[name] = std::move(function);
    return driver.functions.Add(raw);
  }
  return nullptr;
}

CUresult InstanceIn(Driver& driver, Lane lane, Library& library, Context& context,
                    ModuleInstance** module) {
  if (auto it = library.instances.find(&context); it != library.instances.end()) {
    *module = it->second;
    return CUDA_SUCCESS;
  }
  std::string error;
  const CUresult result = LoadModule(driver, lane, context, library.ptx, module, &error);
  if (result != CUDA_SUCCESS) {
    SayCannotLoad(error);
    return result;
  }
  (*module)->library = &library;
  library.instances[&context] = *module;
  return CUDA_SUCCESS;
}

CUresult Outline(Library& library) {
  if (library.outline) return CUDA_SUCCESS;
  std::string error;
  library.outline = Module::Load(library.ptx, &error);
  if (library.outline) return CUDA_SUCCESS;
  SayCannotLoad(error);
  return CUDA_ERROR_INVALID_PTX;
}

Kernel* FindKernel(Driver& driver, Library& library, const std::string& name) {
  if (auto it = library.kernels.find(name); it != library.kernels.end()) return it->second.get();
  if (Outline(library) != CUDA_SUCCESS) return nullptr;
  for (const KernelInfo& info : library.outline->kernels()) {
    if (info.name != name) continue;
    auto kernel = std::make_unique<Kernel>();
    kernel->library = &library;
    kernel->name = name;
    Kernel* raw = kernel.get();
    library.kernels[name] = std::move(kernel);
    return driver.kernels.Add(raw);
  }
  return nullptr;
}

CUresult ResolveFunction(Driver& driver, Lane lane, Context& context, const void* handle,
                         Function** function) {
  if (Function* plain = driver.functions.Get(handle)) {
    *function = plain;
    return plain->module->context == &context ? CUDA_SUCCESS : CUDA_ERROR_INVALID_HANDLE;
  }
  Kernel* kernel = driver.kernels.Get(handle);
  if (!kernel) return CUDA_ERROR_INVALID_HANDLE;
  ModuleInstance* module = nullptr;
  const CUresult result = InstanceIn(driver, lane, *kernel->library, context, &module);
  if (result != CUDA_SUCCESS) return result;
  *function = FindFunction(driver, *module, kernel->name);
  return *function ? CUDA_SUCCESS : CUDA_ERROR_INVALID_HANDLE;
}

}  // namespace atp::sim
