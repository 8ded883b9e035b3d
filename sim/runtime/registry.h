// SPDX-License-Identifier: Apache-2.0
// What a program registered before main: its fat binaries, kernels and variables, by the host
// addresses that stand for them in its code. Code is loaded into the driver at the first use of a
// fat binary, as NVIDIA's runtime does by default. Any thread; one lock, never held across a call
// of the program's own code.
#pragma once

#include <string>
#include <unordered_map>
#include <vector>

#include "sim/runtime/context.h"

namespace atp::simrt {

struct Variable;

struct FatBinary {
  void* wrapper = nullptr;      // what the program handed over; the driver finds the PTX in it
  CUlibrary library = nullptr;  // null until loaded
  Status load_status = cudaSuccess;
  bool load_tried = false;
  std::vector<Variable*> managed;
};

struct Function {
  FatBinary* binary = nullptr;
  std::string name;  // mangled
  CUkernel kernel = nullptr;
};

struct Variable {
  FatBinary* binary = nullptr;
  std::string name;
  size_t bytes = 0;
  void** managed_shadow =
      nullptr;  // the host pointer that a __managed__ variable is reached through
};

class Registry {
 public:
  static Registry& Get();

  FatBinary* AddBinary(void* wrapper);
  void AddFunction(FatBinary* binary, const void* host, const char* name);
  void AddVariable(FatBinary* binary, const void* host, const char* name, size_t bytes);
  void AddManaged(FatBinary* binary, void** shadow, const char* name, size_t bytes);
  // Unloads the library and forgets what belongs to it. Returns how many binaries are left.
  size_t RemoveBinary(FatBinary* binary);

  // Loads the code of a binary (once) and points its managed variables to their memory.
  Status Load(FatBinary* binary);
  // Kernel for a host function address, or for a kernel handle that this runtime gave out. Needs a
  // bound thread.
  Status FindKernel(const void* function, CUkernel* kernel);
  // Address and size of a device variable, by its host address. Needs a bound thread.
  Status FindVariable(const void* symbol, CUdeviceptr* address, size_t* bytes);
  // The host address that stands for a kernel; the handle itself when there is none.
  const void* HostFunction(CUkernel kernel);
  // Remembers a kernel obtained from a library, so that it may be used where a function address is
  // expected.
  void RememberKernel(CUkernel kernel);

 private:
  Status LoadLocked(FatBinary* binary);

  std::mutex mutex_;
  std::vector<FatBinary*> binaries_;
  std::unordered_map<const void*, Function> functions_;
  std::unordered_map<const void*, Variable*> variables_;
  std::unordered_map<CUkernel, const void*> kernels_;
};

// Why the last kernel handle could not be had. Launches of a null handle report it: generated code
// asks for a handle only once.
void RememberKernelFailure(cudaError_t error);
cudaError_t KernelFailure();

}  // namespace atp::simrt
