// SPDX-License-Identifier: Apache-2.0
#include "sim/runtime/registry.h"

#include <unordered_set>

namespace atp::simrt {
namespace {
std::atomic<cudaError_t> kernel_failure{cudaErrorInvalidDeviceFunction};
}  // namespace

void RememberKernelFailure(cudaError_t error) { kernel_failure = error; }
cudaError_t KernelFailure() { return kernel_failure; }

Registry& Registry::Get() {
  static Registry* const registry = new Registry;
  return *registry;
}

FatBinary* Registry::AddBinary(void* wrapper) {
  std::lock_guard<std::mutex> lock(mutex_);
  auto* binary = new FatBinary;
  binary->wrapper = wrapper;
  binaries_.push_back(binary);
  return binary;
}

void Registry::AddFunction(FatBinary* binary, const void* host, const char* name) {
  std::lock_guard<std::mutex> lock(mutex_);
  functions_[host] = Function{binary, name, nullptr};
}

void Registry::AddVariable(FatBinary* binary, const void* host, const char* name, size_t bytes) {
  std::lock_guard<std::mutex> lock(mutex_);
  variables_[host] = new Variable{binary, name, bytes, nullptr};
}

void Registry::AddManaged(FatBinary* binary, void** shadow, const char* name, size_t bytes) {
  std::lock_guard<std::mutex> lock(mutex_);
  auto* variable = new Variable{binary, name, bytes, shadow};
  binary->managed.push_back(variable);
  variables_[shadow] = variable;
}

size_t Registry::RemoveBinary(FatBinary* binary) {
  std::lock_guard<std::mutex> lock(mutex_);
  if (binary->library) GetProcess().driver->legacy.LibraryUnload(binary->library);
  for (const auto& [host, function] : functions_) {
    if (function.binary == binary) kernels_.erase(function.kernel);
  }
  std::erase_if(functions_, [&](auto& entry) { return entry.second.binary == binary; });
  // A managed variable is listed under its shadow pointer and under its address.
  std::unordered_set<Variable*> gone;
  for (const auto& [host, variable] : variables_) {
    if (variable->binary == binary) gone.insert(variable);
  }
  std::erase_if(variables_, [&](auto& entry) { return gone.contains(entry.second); });
  for (Variable* variable : gone) delete variable;
  std::erase(binaries_, binary);
  delete binary;
  return binaries_.size();
}

Status Registry::Load(FatBinary* binary) {
  std::lock_guard<std::mutex> lock(mutex_);
  return LoadLocked(binary);
}

Status Registry::LoadLocked(FatBinary* binary) {
  if (binary->load_tried) return binary->load_status;
  binary->load_tried = true;
  const DriverCalls& cu = GetProcess().driver->legacy;
  // The wrapper stays where it is for as long as the program is loaded, and the driver is told so.
  CUlibraryOption option = CU_LIBRARY_BINARY_IS_PRESERVED;
  void* value = reinterpret_cast<void*>(uintptr_t{1});
  Status status = cu.LibraryLoadData(&binary->library, binary->wrapper, nullptr, nullptr, 0,
                                     &option, &value, 1);
  for (size_t i = 0; status.ok() && i < binary->managed.size(); ++i) {
    Variable* variable = binary->managed[i];
    CUdeviceptr address = 0;
    size_t bytes = 0;
    status = cu.LibraryGetManaged(&address, &bytes, binary->library, variable->name.c_str());
    if (!status.ok()) break;
    *variable->managed_shadow = reinterpret_cast<void*>(address);
    variables_[reinterpret_cast<void*>(address)] = variable;
  }
  binary->load_status = status;
  return status;
}

Status Registry::FindKernel(const void* function, CUkernel* kernel) {
  std::lock_guard<std::mutex> lock(mutex_);
  auto found = functions_.find(function);
  if (found == functions_.end()) {
    *kernel = reinterpret_cast<CUkernel>(const_cast<void*>(function));
    return kernels_.contains(*kernel) ? cudaSuccess : cudaErrorInvalidDeviceFunction;
  }
  Function& f = found->second;
  if (!f.kernel) {
    Status status = LoadLocked(f.binary);
    if (!status.ok()) return status;
    const DriverCalls& cu = GetProcess().driver->legacy;
    status = cu.LibraryGetKernel(&f.kernel, f.binary->library, f.name.c_str());
    if (status.error == cudaErrorSymbolNotFound) return cudaErrorInvalidDeviceFunction;
    if (!status.ok()) return status;
    kernels_[f.kernel] = function;
  }
  *kernel = f.kernel;
  return cudaSuccess;
}

Status Registry::FindVariable(const void* symbol, CUdeviceptr* address, size_t* bytes) {
  std::lock_guard<std::mutex> lock(mutex_);
  auto found = variables_.find(symbol);
  if (found == variables_.end()) return cudaErrorInvalidSymbol;
  Variable* variable = found->second;
  Status status = LoadLocked(variable->binary);
  if (!status.ok()) return status;
  const DriverCalls& cu = GetProcess().driver->legacy;
  if (variable->managed_shadow) {
    *address = Address(*variable->managed_shadow);
    *bytes = variable->bytes;
    return cudaSuccess;
  }
  status = cu.LibraryGetGlobal(address, bytes, variable->binary->library, variable->name.c_str());
  return status.error == cudaErrorSymbolNotFound ? Status(cudaErrorInvalidSymbol) : status;
}

const void* Registry::HostFunction(CUkernel kernel) {
  std::lock_guard<std::mutex> lock(mutex_);
  auto found = kernels_.find(kernel);
  return found == kernels_.end() || !found->second ? kernel : found->second;
}

void Registry::RememberKernel(CUkernel kernel) {
  std::lock_guard<std::mutex> lock(mutex_);
  kernels_.try_emplace(kernel, nullptr);
}

}  // namespace atp::simrt
