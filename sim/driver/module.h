// SPDX-License-Identifier: Apache-2.0
// Modules (code loaded into one context), libraries (code that is loaded into each context that
// uses it), and their functions, kernels and variables. Under the driver's lock.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "sim/driver/cuda_api.h"
#include "sim/exec/exec.h"
#include "sim/machine/machine.h"

namespace atp::sim {

class Driver;
struct Allocation;
struct Context;
struct Kernel;
struct Library;
struct ModuleInstance;

// Settings of a function that a program can change (cuFuncSetAttribute, cuKernelSetAttribute).
struct FunctionSettings {
  int max_dynamic_shared_bytes = 48 << 10;
  int preferred_carveout = -1;
  std::map<int, int> others;  // accepted and reported back
};

struct Function {  // what a CUfunction is
  ModuleInstance* module = nullptr;
  const KernelInfo* info = nullptr;
  Kernel* kernel = nullptr;  // when it comes from a library
  FunctionSettings settings;
  uint64_t signature = 0;  // of name and module text, for traces
};

struct ModuleInstance {  // what a CUmodule is
  Context* context = nullptr;
  Library* library = nullptr;  // null for cuModuleLoad*
  std::unique_ptr<Module> code;
  std::map<std::string, std::unique_ptr<Function>> functions;
  std::map<std::string, Allocation*> variables;
};

struct Kernel {  // what a CUkernel is
  Library* library = nullptr;
  std::string name;
  FunctionSettings settings;  // applied to every function made from it
};

struct Library {  // what a CUlibrary is
  std::string ptx;
  std::map<Context*, ModuleInstance*> instances;
  std::map<std::string, std::unique_ptr<Kernel>> kernels;
  std::unique_ptr<Module> outline;  // parsed once, to list kernels without a context
};

// Loads PTX into a context: parses it, gives variables their addresses and first values. On failure
// `error` says why.
CUresult LoadModule(Driver& driver, Lane lane, Context& context, std::string ptx,
                    ModuleInstance** module, std::string* error);
void UnloadModule(Driver& driver, Lane lane, ModuleInstance* module);
Function* FindFunction(Driver& driver, ModuleInstance& module, const std::string& name);

// The instance of a library in a context, loaded at first use.
CUresult InstanceIn(Driver& driver, Lane lane, Library& library, Context& context,
                    ModuleInstance** module);
// A kernel of a library, null when it has none of that name.
Kernel* FindKernel(Driver& driver, Library& library, const std::string& name);
// Parses a library once, without a context.
CUresult Outline(Library& library);

// The function that a launch means: a CUfunction, or a CUkernel given in its place (the runtime
// does that).
CUresult ResolveFunction(Driver& driver, Lane lane, Context& context, const void* handle,
                         Function** function);

// Says on stderr why code cannot run.
void SayCannotLoad(const std::string& error);

}  // namespace atp::sim
