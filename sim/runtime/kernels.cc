// SPDX-License-Identifier: Apache-2.0
// Kernels: attributes, occupancy, and libraries that a program loads by itself.
#include "sim/runtime/registry.h"

namespace {

using namespace atp::simrt;  // NOLINT: this file only forwards calls

// Runs `body` with the kernel behind a host function address.
template <typename Body>
cudaError_t WithKernel(const void* function, Body body) {
  return WithContext([&](const DriverCalls& cu) -> Status {
    CUkernel kernel = nullptr;
    const Status status = Registry::Get().FindKernel(function, &kernel);
    return status.ok() ? Status(body(cu, kernel)) : status;
  });
}

CUfunction AsFunction(CUkernel kernel) { return reinterpret_cast<CUfunction>(kernel); }

Status ReadAttributes(const DriverCalls& cu, CUfunction function, cudaFuncAttributes* out) {
  // In the order in which NVIDIA's runtime asks (observed at the call).
  constexpr int kAsked[] = {0, 4, 5, 6, 1, 2, 3, 7, 8, 9, 10, 11, 12, 13, 14, 15};
  int values[16] = {};
  for (int attribute : kAsked) {
    const Status status = cu.FuncGetAttribute(
        &values[attribute], static_cast<CUfunction_attribute>(attribute), function);
    // Cluster attributes (10 and up) are unknown to drivers without clusters.
    if (!status.ok() && attribute < 10) return status;
  }
  *out = {};
  out->maxThreadsPerBlock = values[0];
  out->sharedSizeBytes = values[1];
  out->constSizeBytes = values[2];
  out->localSizeBytes = values[3];
  out->numRegs = values[4];
  out->ptxVersion = values[5];
  out->binaryVersion = values[6];
  out->cacheModeCA = values[7];
  out->maxDynamicSharedSizeBytes = values[8];
  out->preferredShmemCarveout = values[9];
  out->clusterDimMustBeSet = values[10];
  out->requiredClusterWidth = values[11];
  out->requiredClusterHeight = values[12];
  out->requiredClusterDepth = values[13];
  out->nonPortableClusterSizeAllowed = values[14];
  out->clusterSchedulingPolicyPreference = values[15];
  return cudaSuccess;
}

Status SetAttribute(const DriverCalls& cu, CUkernel kernel, cudaFuncAttribute attribute, int value,
                    int device) {
  CUfunction function = nullptr;
  const Status status = cu.KernelGetFunction(&function, kernel);
  if (!status.ok()) return status;
  return cu.KernelSetAttribute(static_cast<CUfunction_attribute>(attribute), value, kernel,
                               GetProcess().devices[device]->handle);
}

}  // namespace

extern "C" {

cudaError_t cudaFuncGetAttributes(cudaFuncAttributes* attributes, const void* function) {
  return WithKernel(function, [&](const DriverCalls& cu, CUkernel kernel) {
    CUfunction f = nullptr;
    const Status status = cu.KernelGetFunction(&f, kernel);
    return status.ok() ? ReadAttributes(cu, f, attributes) : status;
  });
}

cudaError_t cudaFuncSetAttribute(const void* function, cudaFuncAttribute attribute, int value) {
  return WithKernel(function, [&](const DriverCalls& cu, CUkernel kernel) {
    return SetAttribute(cu, kernel, attribute, value, CurrentDevice());
  });
}

cudaError_t cudaKernelSetAttributeForDevice(cudaKernel_t kernel, cudaFuncAttribute attribute,
                                            int value, int device) {
  return WithContext([&](const DriverCalls& cu) -> Status {
    const int count = static_cast<int>(GetProcess().devices.size());
    if (device < 0 || device >= count) return cudaErrorInvalidDevice;
    return SetAttribute(cu, reinterpret_cast<CUkernel>(kernel), attribute, value, device);
  });
}

cudaError_t cudaFuncSetCacheConfig(const void* function, cudaFuncCache config) {
  return WithKernel(function, [&](const DriverCalls& cu, CUkernel kernel) {
    return cu.KernelSetCacheConfig(kernel, static_cast<CUfunc_cache>(config),
                                   GetProcess().devices[CurrentDevice()]->handle);
  });
}

cudaError_t cudaFuncSetSharedMemConfig(const void* function, cudaSharedMemConfig config) {
  return WithKernel(function, [&](const DriverCalls& cu, CUkernel kernel) {
    return cu.FuncSetSharedMemConfig(AsFunction(kernel), static_cast<CUsharedconfig>(config));
  });
}

cudaError_t cudaFuncGetName(const char** name, const void* function) {
  return WithKernel(function, [&](const DriverCalls& cu, CUkernel kernel) {
    return cu.KernelGetName(name, kernel);
  });
}

cudaError_t cudaFuncGetParamInfo(const void* function, size_t index, size_t* offset, size_t* size) {
  return WithKernel(function, [&](const DriverCalls& cu, CUkernel kernel) {
    return cu.KernelGetParamInfo(kernel, index, offset, size);
  });
}

cudaError_t cudaGetKernel(cudaKernel_t* out, const void* function) {
  return WithKernel(function, [&](const DriverCalls&, CUkernel kernel) -> Status {
    *out = reinterpret_cast<cudaKernel_t>(kernel);
    return cudaSuccess;
  });
}

cudaError_t cudaGetFuncBySymbol(cudaFunction_t* out, const void* function) {
  return WithKernel(function, [&](const DriverCalls& cu, CUkernel kernel) {
    return cu.KernelGetFunction(out, kernel);
  });
}

cudaError_t cudaOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(
    int* blocks, const void* function, int block_size, size_t shared_bytes, unsigned flags) {
  return WithKernel(function, [&](const DriverCalls& cu, CUkernel kernel) {
    return cu.OccupancyMaxActiveBlocksPerMultiprocessorWithFlags(blocks, AsFunction(kernel),
                                                                 block_size, shared_bytes, flags);
  });
}

cudaError_t cudaOccupancyMaxActiveBlocksPerMultiprocessor(int* blocks, const void* function,
                                                          int block_size, size_t shared_bytes) {
  return cudaOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(blocks, function, block_size,
                                                                shared_bytes, 0);
}

cudaError_t cudaOccupancyAvailableDynamicSMemPerBlock(size_t* bytes, const void* function,
                                                      int blocks, int block_size) {
  return WithKernel(function, [&](const DriverCalls& cu, CUkernel kernel) {
    return cu.OccupancyAvailableDynamicSMemPerBlock(bytes, AsFunction(kernel), blocks, block_size);
  });
}

cudaError_t cudaLibraryLoadData(cudaLibrary_t* library, const void* code, cudaJitOption* jit,
                                void** jit_values, unsigned jit_count, cudaLibraryOption* options,
                                void** values, unsigned count) {
  return WithContext([&](const DriverCalls& cu) {
    return cu.LibraryLoadData(reinterpret_cast<CUlibrary*>(library), code,
                              reinterpret_cast<CUjit_option*>(jit), jit_values, jit_count,
                              reinterpret_cast<CUlibraryOption*>(options), values, count);
  });
}

cudaError_t cudaLibraryLoadFromFile(cudaLibrary_t* library, const char* file, cudaJitOption* jit,
                                    void** jit_values, unsigned jit_count,
                                    cudaLibraryOption* options, void** values, unsigned count) {
  return WithContext([&](const DriverCalls& cu) {
    return cu.LibraryLoadFromFile(reinterpret_cast<CUlibrary*>(library), file,
                                  reinterpret_cast<CUjit_option*>(jit), jit_values, jit_count,
                                  reinterpret_cast<CUlibraryOption*>(options), values, count);
  });
}

cudaError_t cudaLibraryUnload(cudaLibrary_t library) {
  return WithContext([&](const DriverCalls& cu) {
    return cu.LibraryUnload(reinterpret_cast<CUlibrary>(library));
  });
}

cudaError_t cudaLibraryGetKernel(cudaKernel_t* out, cudaLibrary_t library, const char* name) {
  return WithContext([&](const DriverCalls& cu) {
    CUkernel kernel = nullptr;
    const CUresult result =
        cu.LibraryGetKernel(&kernel, reinterpret_cast<CUlibrary>(library), name);
    if (result == CUDA_SUCCESS) Registry::Get().RememberKernel(kernel);
    *out = reinterpret_cast<cudaKernel_t>(kernel);
    return result;
  });
}

cudaError_t cudaLibraryGetKernelCount(unsigned* count, cudaLibrary_t library) {
  return WithContext([&](const DriverCalls& cu) {
    return cu.LibraryGetKernelCount(count, reinterpret_cast<CUlibrary>(library));
  });
}

cudaError_t cudaLibraryEnumerateKernels(cudaKernel_t* kernels, unsigned count,
                                        cudaLibrary_t library) {
  return WithContext([&](const DriverCalls& cu) {
    return cu.LibraryEnumerateKernels(reinterpret_cast<CUkernel*>(kernels), count,
                                      reinterpret_cast<CUlibrary>(library));
  });
}

cudaError_t cudaLibraryGetGlobal(void** pointer, size_t* bytes, cudaLibrary_t library,
                                 const char* name) {
  return WithContext([&](const DriverCalls& cu) {
    return cu.LibraryGetGlobal(AddressOut(pointer), bytes, reinterpret_cast<CUlibrary>(library),
                               name);
  });
}

cudaError_t cudaLibraryGetManaged(void** pointer, size_t* bytes, cudaLibrary_t library,
                                  const char* name) {
  return WithContext([&](const DriverCalls& cu) {
    return cu.LibraryGetManaged(AddressOut(pointer), bytes, reinterpret_cast<CUlibrary>(library),
                                name);
  });
}

}  // extern "C"
