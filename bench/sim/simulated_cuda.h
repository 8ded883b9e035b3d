// SPDX-License-Identifier: Apache-2.0
// A simulated card for one benchmark case, in a process of its own: the driver library reads its
// profile when it is loaded.
//
// Used by uvm_crosscheck only. Any failing call ends the case with a message that names the call.
#pragma once

#include <cuda.h>
#include <dlfcn.h>

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <vector>

namespace atp::bench {

class SimulatedCuda {
 public:
  SimulatedCuda(const std::string& library, const std::string& kernels) {
    handle_ = dlopen(library.c_str(), RTLD_NOW);
    if (handle_ == nullptr) Fail(dlerror());
    Call("cuInit", 0u);
    Call("cuDeviceGet", &device_, 0);
    CUcontext context = nullptr;
    Call("cuDevicePrimaryCtxRetain", &context, device_);
    Call("cuCtxSetCurrent", context);
    Call("cuModuleLoad", &module_, kernels.c_str());
    for (CUevent& event : events_) Call("cuEventCreate", &event, 0u);
  }

  CUdeviceptr Managed(uint64_t bytes) {
    CUdeviceptr address = 0;
    Call("cuMemAllocManaged", &address, static_cast<size_t>(bytes),
         static_cast<unsigned>(CU_MEM_ATTACH_GLOBAL));
    return address;
  }
  void Advise(CUdeviceptr address, uint64_t bytes, CUmem_advise advice, bool host) {
    CUmemLocation location{};
    location.type = host ? CU_MEM_LOCATION_TYPE_HOST : CU_MEM_LOCATION_TYPE_DEVICE;
    Call("cuMemAdvise_v2", address, static_cast<size_t>(bytes), advice, location);
  }
  void Prefetch(CUdeviceptr address, uint64_t bytes, bool host) {
    CUmemLocation location{};
    location.type = host ? CU_MEM_LOCATION_TYPE_HOST : CU_MEM_LOCATION_TYPE_DEVICE;
    Call("cuMemPrefetchAsync_v2", address, static_cast<size_t>(bytes), location, 0u,
         static_cast<CUstream>(nullptr));
    Synchronize();
  }
  void Synchronize() { Call("cuCtxSynchronize"); }

  // Milliseconds of virtual time between events around the launch, as the published programs
  // measure.
  double Launch(const char* kernel, unsigned blocks, std::vector<void*> arguments) {
    CUfunction function = nullptr;
    Call("cuModuleGetFunction", &function, module_, kernel);
    Call("cuEventRecord", events_[0], static_cast<CUstream>(nullptr));
    Call("cuLaunchKernel", function, blocks, 1u, 1u, 256u, 1u, 1u, 0u,
         static_cast<CUstream>(nullptr), arguments.data(), static_cast<void**>(nullptr));
    Call("cuEventRecord", events_[1], static_cast<CUstream>(nullptr));
    Call("cuEventSynchronize", events_[1]);
    float ms = 0;
    Call("cuEventElapsedTime", &ms, events_[0], events_[1]);
    return ms;
  }

 private:
  template <typename... Arguments>
  void Call(const char* name, Arguments... arguments) {
    auto* function = reinterpret_cast<CUresult (*)(Arguments...)>(dlsym(handle_, name));
    if (function == nullptr) Fail(std::string("the simulated driver has no ") + name);
    CUresult result = function(arguments...);
    if (result != CUDA_SUCCESS) Fail(std::string(name) + " answered " + std::to_string(result));
  }
  [[noreturn]] static void Fail(const std::string& message) {
    std::fprintf(stderr, "uvm_crosscheck: %s\n", message.c_str());
    std::exit(3);
  }

  void* handle_ = nullptr;
  CUdevice device_ = 0;
  CUmodule module_ = nullptr;
  CUevent events_[2] = {};
};

}  // namespace atp::bench
