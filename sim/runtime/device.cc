// SPDX-License-Identifier: Apache-2.0
// Devices: count, choice, properties, attributes, limits, synchronisation, versions.
#include <cstring>

#include "sim/runtime/context.h"

namespace {

using namespace atp::simrt;  // NOLINT: this file only forwards calls

Status Find(int device, const Device** found) {
  const auto& devices = GetProcess().devices;
  if (device < 0 || device >= static_cast<int>(devices.size())) return cudaErrorInvalidDevice;
  *found = devices[device];
  return cudaSuccess;
}

struct IntField {
  int cudaDeviceProp::*field;
  int attribute;
};

constexpr IntField kIntFields[] = {
    {&cudaDeviceProp::regsPerBlock, CU_DEVICE_ATTRIBUTE_MAX_REGISTERS_PER_BLOCK},
    {&cudaDeviceProp::warpSize, CU_DEVICE_ATTRIBUTE_WARP_SIZE},
    {&cudaDeviceProp::maxThreadsPerBlock, CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_BLOCK},
    {&cudaDeviceProp::major, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR},
    {&cudaDeviceProp::minor, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR},
    {&cudaDeviceProp::multiProcessorCount, CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT},
    {&cudaDeviceProp::integrated, CU_DEVICE_ATTRIBUTE_INTEGRATED},
    {&cudaDeviceProp::canMapHostMemory, CU_DEVICE_ATTRIBUTE_CAN_MAP_HOST_MEMORY},
    {&cudaDeviceProp::concurrentKernels, CU_DEVICE_ATTRIBUTE_CONCURRENT_KERNELS},
    {&cudaDeviceProp::ECCEnabled, CU_DEVICE_ATTRIBUTE_ECC_ENABLED},
    {&cudaDeviceProp::pciBusID, CU_DEVICE_ATTRIBUTE_PCI_BUS_ID},
    {&cudaDeviceProp::pciDeviceID, CU_DEVICE_ATTRIBUTE_PCI_DEVICE_ID},
    {&cudaDeviceProp::pciDomainID, CU_DEVICE_ATTRIBUTE_PCI_DOMAIN_ID},
    {&cudaDeviceProp::tccDriver, CU_DEVICE_ATTRIBUTE_TCC_DRIVER},
    {&cudaDeviceProp::asyncEngineCount, CU_DEVICE_ATTRIBUTE_ASYNC_ENGINE_COUNT},
    {&cudaDeviceProp::unifiedAddressing, CU_DEVICE_ATTRIBUTE_UNIFIED_ADDRESSING},
    {&cudaDeviceProp::memoryBusWidth, CU_DEVICE_ATTRIBUTE_GLOBAL_MEMORY_BUS_WIDTH},
    {&cudaDeviceProp::l2CacheSize, CU_DEVICE_ATTRIBUTE_L2_CACHE_SIZE},
    {&cudaDeviceProp::persistingL2CacheMaxSize, CU_DEVICE_ATTRIBUTE_MAX_PERSISTING_L2_CACHE_SIZE},
    {&cudaDeviceProp::maxThreadsPerMultiProcessor,
     CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_MULTIPROCESSOR},
    {&cudaDeviceProp::streamPrioritiesSupported, CU_DEVICE_ATTRIBUTE_STREAM_PRIORITIES_SUPPORTED},
    {&cudaDeviceProp::globalL1CacheSupported, CU_DEVICE_ATTRIBUTE_GLOBAL_L1_CACHE_SUPPORTED},
    {&cudaDeviceProp::localL1CacheSupported, CU_DEVICE_ATTRIBUTE_LOCAL_L1_CACHE_SUPPORTED},
    {&cudaDeviceProp::regsPerMultiprocessor, CU_DEVICE_ATTRIBUTE_MAX_REGISTERS_PER_MULTIPROCESSOR},
    {&cudaDeviceProp::managedMemory, CU_DEVICE_ATTRIBUTE_MANAGED_MEMORY},
    {&cudaDeviceProp::isMultiGpuBoard, CU_DEVICE_ATTRIBUTE_MULTI_GPU_BOARD},
    {&cudaDeviceProp::multiGpuBoardGroupID, CU_DEVICE_ATTRIBUTE_MULTI_GPU_BOARD_GROUP_ID},
    {&cudaDeviceProp::hostNativeAtomicSupported, CU_DEVICE_ATTRIBUTE_HOST_NATIVE_ATOMIC_SUPPORTED},
    {&cudaDeviceProp::pageableMemoryAccess, CU_DEVICE_ATTRIBUTE_PAGEABLE_MEMORY_ACCESS},
    {&cudaDeviceProp::concurrentManagedAccess, CU_DEVICE_ATTRIBUTE_CONCURRENT_MANAGED_ACCESS},
    {&cudaDeviceProp::computePreemptionSupported, CU_DEVICE_ATTRIBUTE_COMPUTE_PREEMPTION_SUPPORTED},
    {&cudaDeviceProp::canUseHostPointerForRegisteredMem,
     CU_DEVICE_ATTRIBUTE_CAN_USE_HOST_POINTER_FOR_REGISTERED_MEM},
    {&cudaDeviceProp::cooperativeLaunch, CU_DEVICE_ATTRIBUTE_COOPERATIVE_LAUNCH},
    {&cudaDeviceProp::pageableMemoryAccessUsesHostPageTables,
     CU_DEVICE_ATTRIBUTE_PAGEABLE_MEMORY_ACCESS_USES_HOST_PAGE_TABLES},
    {&cudaDeviceProp::directManagedMemAccessFromHost,
     CU_DEVICE_ATTRIBUTE_DIRECT_MANAGED_MEM_ACCESS_FROM_HOST},
    {&cudaDeviceProp::maxBlocksPerMultiProcessor,
     CU_DEVICE_ATTRIBUTE_MAX_BLOCKS_PER_MULTIPROCESSOR},
    {&cudaDeviceProp::accessPolicyMaxWindowSize, CU_DEVICE_ATTRIBUTE_MAX_ACCESS_POLICY_WINDOW_SIZE},
    {&cudaDeviceProp::hostRegisterSupported, CU_DEVICE_ATTRIBUTE_HOST_REGISTER_SUPPORTED},
    {&cudaDeviceProp::sparseCudaArraySupported, CU_DEVICE_ATTRIBUTE_SPARSE_CUDA_ARRAY_SUPPORTED},
    {&cudaDeviceProp::hostRegisterReadOnlySupported,
     CU_DEVICE_ATTRIBUTE_READ_ONLY_HOST_REGISTER_SUPPORTED},
    {&cudaDeviceProp::timelineSemaphoreInteropSupported,
     CU_DEVICE_ATTRIBUTE_TIMELINE_SEMAPHORE_INTEROP_SUPPORTED},
    {&cudaDeviceProp::memoryPoolsSupported, CU_DEVICE_ATTRIBUTE_MEMORY_POOLS_SUPPORTED},
    {&cudaDeviceProp::gpuDirectRDMASupported, CU_DEVICE_ATTRIBUTE_GPU_DIRECT_RDMA_SUPPORTED},
    {&cudaDeviceProp::gpuDirectRDMAWritesOrdering,
     CU_DEVICE_ATTRIBUTE_GPU_DIRECT_RDMA_WRITES_ORDERING},
    {&cudaDeviceProp::deferredMappingCudaArraySupported,
     CU_DEVICE_ATTRIBUTE_DEFERRED_MAPPING_CUDA_ARRAY_SUPPORTED},
    {&cudaDeviceProp::ipcEventSupported, CU_DEVICE_ATTRIBUTE_IPC_EVENT_SUPPORTED},
    {&cudaDeviceProp::clusterLaunch, CU_DEVICE_ATTRIBUTE_CLUSTER_LAUNCH},
    {&cudaDeviceProp::unifiedFunctionPointers, CU_DEVICE_ATTRIBUTE_UNIFIED_FUNCTION_POINTERS},
    {&cudaDeviceProp::deviceNumaConfig, CU_DEVICE_ATTRIBUTE_NUMA_CONFIG},
    {&cudaDeviceProp::deviceNumaId, CU_DEVICE_ATTRIBUTE_NUMA_ID},
    {&cudaDeviceProp::mpsEnabled, CU_DEVICE_ATTRIBUTE_MPS_ENABLED},
    {&cudaDeviceProp::hostNumaId, CU_DEVICE_ATTRIBUTE_HOST_NUMA_ID},
};

struct SizeField {
  size_t cudaDeviceProp::*field;
  int attribute;
};

constexpr SizeField kSizeFields[] = {
    {&cudaDeviceProp::sharedMemPerBlock, CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK},
    {&cudaDeviceProp::memPitch, CU_DEVICE_ATTRIBUTE_MAX_PITCH},
    {&cudaDeviceProp::totalConstMem, CU_DEVICE_ATTRIBUTE_TOTAL_CONSTANT_MEMORY},
    {&cudaDeviceProp::textureAlignment, CU_DEVICE_ATTRIBUTE_TEXTURE_ALIGNMENT},
    {&cudaDeviceProp::texturePitchAlignment, CU_DEVICE_ATTRIBUTE_TEXTURE_PITCH_ALIGNMENT},
    {&cudaDeviceProp::surfaceAlignment, CU_DEVICE_ATTRIBUTE_SURFACE_ALIGNMENT},
    {&cudaDeviceProp::sharedMemPerMultiprocessor,
     CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_MULTIPROCESSOR},
    {&cudaDeviceProp::sharedMemPerBlockOptin,
     CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN},
    {&cudaDeviceProp::reservedSharedMemPerBlock,
     CU_DEVICE_ATTRIBUTE_RESERVED_SHARED_MEMORY_PER_BLOCK},
};

void FillProperties(const Device& device, cudaDeviceProp* p) {
  *p = {};
  std::strncpy(p->name, device.name.c_str(), sizeof(p->name) - 1);
  static_assert(sizeof(p->uuid) == sizeof(device.uuid));
  std::memcpy(&p->uuid, &device.uuid, sizeof(p->uuid));
  p->totalGlobalMem = device.total_bytes;
  for (const IntField& f : kIntFields) p->*f.field = device.attributes[f.attribute];
  for (const SizeField& f : kSizeFields) p->*f.field = device.attributes[f.attribute];
  for (int i = 0; i < 3; ++i) {
    p->maxThreadsDim[i] = device.attributes[CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_X + i];
    p->maxGridSize[i] = device.attributes[CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_X + i];
  }
  p->gpuDirectRDMAFlushWritesOptions =
      device.attributes[CU_DEVICE_ATTRIBUTE_GPU_DIRECT_RDMA_FLUSH_WRITES_OPTIONS];
  p->memoryPoolSupportedHandleTypes =
      device.attributes[CU_DEVICE_ATTRIBUTE_MEMPOOL_SUPPORTED_HANDLE_TYPES];
}

}  // namespace

extern "C" {

cudaError_t cudaGetDeviceCount(int* count) {
  *count = 0;
  return WithDriver([&](const DriverCalls&) -> Status {
    *count = static_cast<int>(GetProcess().devices.size());
    return cudaSuccess;
  });
}

cudaError_t cudaSetDevice(int device) {
  return WithDriver([&](const DriverCalls&) { return UseDevice(device); });
}

cudaError_t cudaInitDevice(int device, unsigned, unsigned) {
  return WithDriver([&](const DriverCalls&) -> Status {
    CUcontext context = nullptr;
    return PrimaryContext(device, &context);
  });
}

cudaError_t cudaGetDevice(int* device) {
  return WithDriver([&](const DriverCalls&) -> Status {
    *device = CurrentDevice();
    return cudaSuccess;
  });
}

cudaError_t cudaSetDeviceFlags(unsigned flags) {
  return WithDriver([&](const DriverCalls& cu) {
    return cu.DevicePrimaryCtxSetFlags(GetProcess().devices[CurrentDevice()]->handle, flags);
  });
}

cudaError_t cudaGetDeviceFlags(unsigned* flags) {
  return WithDriver([&](const DriverCalls& cu) {
    int active = 0;
    return cu.DevicePrimaryCtxGetState(GetProcess().devices[CurrentDevice()]->handle, flags,
                                       &active);
  });
}

cudaError_t cudaGetDeviceProperties(cudaDeviceProp* properties, int device) {
  return WithDriver([&](const DriverCalls&) {
    const Device* d = nullptr;
    const Status status = Find(device, &d);
    if (status.ok()) FillProperties(*d, properties);
    return status;
  });
}

cudaError_t cudaDeviceGetAttribute(int* value, cudaDeviceAttr attribute, int device) {
  return WithDriver([&](const DriverCalls& cu) -> Status {
    const Device* d = nullptr;
    const Status status = Find(device, &d);
    if (!status.ok()) return status;
    return cu.DeviceGetAttribute(value, static_cast<CUdevice_attribute>(attribute), d->handle);
  });
}

// The device whose capability and memory meet what is asked for; the first one when none does.
cudaError_t cudaChooseDevice(int* device, const cudaDeviceProp* wanted) {
  return WithDriver([&](const DriverCalls&) -> Status {
    *device = 0;
    for (const Device* d : GetProcess().devices) {
      cudaDeviceProp p;
      FillProperties(*d, &p);
      const bool newer =
          p.major > wanted->major || (p.major == wanted->major && p.minor >= wanted->minor);
      if (!newer || p.totalGlobalMem < wanted->totalGlobalMem) continue;
      *device = d->ordinal;
      break;
    }
    return cudaSuccess;
  });
}

cudaError_t cudaDeviceGetPCIBusId(char* id, int length, int device) {
  return WithDriver([&](const DriverCalls& cu) -> Status {
    const Device* d = nullptr;
    const Status status = Find(device, &d);
    if (!status.ok()) return status;
    return cu.DeviceGetPCIBusId(id, length, d->handle);
  });
}

cudaError_t cudaDeviceGetByPCIBusId(int* device, const char* id) {
  return WithDriver([&](const DriverCalls& cu) -> Status {
    CUdevice handle = 0;
    const Status status = cu.DeviceGetByPCIBusId(&handle, id);
    for (const Device* d : GetProcess().devices) {
      if (status.ok() && d->handle == handle) *device = d->ordinal;
    }
    return status;
  });
}

cudaError_t cudaDeviceReset(void) {
  return WithDriver([&](const DriverCalls&) { return ResetDevice(); });
}

cudaError_t cudaDeviceSynchronize(void) {
  return WithContext([&](const DriverCalls& cu) {
    CUcontext context = nullptr;
    const CUresult result = cu.CtxGetCurrent(&context);
    return result == CUDA_SUCCESS ? cu.CtxSynchronize(context) : result;
  });
}

cudaError_t cudaDeviceSetLimit(cudaLimit limit, size_t value) {
  return WithContext(
      [&](const DriverCalls& cu) { return cu.CtxSetLimit(static_cast<CUlimit>(limit), value); });
}

cudaError_t cudaDeviceGetLimit(size_t* value, cudaLimit limit) {
  return WithContext(
      [&](const DriverCalls& cu) { return cu.CtxGetLimit(value, static_cast<CUlimit>(limit)); });
}

cudaError_t cudaDeviceGetCacheConfig(cudaFuncCache* config) {
  return WithContext([&](const DriverCalls& cu) {
    auto value = CU_FUNC_CACHE_PREFER_NONE;
    const CUresult result = cu.CtxGetCacheConfig(&value);
    *config = static_cast<cudaFuncCache>(value);
    return result;
  });
}

cudaError_t cudaDeviceSetCacheConfig(cudaFuncCache config) {
  return WithContext([&](const DriverCalls& cu) {
    return cu.CtxSetCacheConfig(static_cast<CUfunc_cache>(config));
  });
}

cudaError_t cudaDeviceGetSharedMemConfig(cudaSharedMemConfig* config) {
  return WithContext([&](const DriverCalls& cu) {
    auto value = CU_SHARED_MEM_CONFIG_DEFAULT_BANK_SIZE;
    const CUresult result = cu.CtxGetSharedMemConfig(&value);
    *config = static_cast<cudaSharedMemConfig>(value);
    return result;
  });
}

cudaError_t cudaDeviceSetSharedMemConfig(cudaSharedMemConfig config) {
  return WithContext([&](const DriverCalls& cu) {
    return cu.CtxSetSharedMemConfig(static_cast<CUsharedconfig>(config));
  });
}

cudaError_t cudaCtxResetPersistingL2Cache(void) {
  return WithContext([&](const DriverCalls& cu) { return cu.CtxResetPersistingL2Cache(); });
}

cudaError_t cudaDeviceGetStreamPriorityRange(int* least, int* greatest) {
  return WithContext(
      [&](const DriverCalls& cu) { return cu.CtxGetStreamPriorityRange(least, greatest); });
}

// Answers 0 and no error when there is no driver, as NVIDIA's runtime does.
cudaError_t cudaDriverGetVersion(int* version) {
  const Driver* driver = nullptr;
  *version = 0;
  LoadDriver(&driver);
  return driver->legacy.DriverGetVersion ? Note(driver->legacy.DriverGetVersion(version))
                                         : cudaSuccess;
}

cudaError_t cudaRuntimeGetVersion(int* version) {
  if (!version) return Note(cudaErrorInvalidValue);
  *version = CUDART_VERSION;
  return cudaSuccess;
}

cudaError_t cudaProfilerStart(void) {
  return WithContext([&](const DriverCalls& cu) { return cu.ProfilerStart(); });
}

cudaError_t cudaProfilerStop(void) {
  return WithContext([&](const DriverCalls& cu) { return cu.ProfilerStop(); });
}

}  // extern "C"
