// SPDX-License-Identifier: Apache-2.0
// Prefetch, discard and advice on managed memory.
#include "sim/driver/advice.h"
#include "sim/driver/capture.h"
#include "sim/driver/driver.h"
#include "sim/driver/host_touches.h"

namespace atp::sim {
namespace {

constexpr uint64_t kPage = 1u << kPageBits;

// The machine's answer as the program sees it; a dead context stays dead.
CUresult FromMachine(Context& context, MachineStatus status) {
  switch (status) {
    case MachineStatus::kOk:
      return CUDA_SUCCESS;
    case MachineStatus::kOutOfMemory:
      return CUDA_ERROR_OUT_OF_MEMORY;
    case MachineStatus::kContextDead:
      return context.sticky = CUDA_ERROR_ILLEGAL_ADDRESS;
    case MachineStatus::kInvalidValue:
      break;
  }
  return CUDA_ERROR_INVALID_VALUE;
}

// A managed range, rounded outwards to pages. Null when it is not wholly managed.
Allocation* ManagedRange(Call& call, CUdeviceptr address, size_t bytes, uint64_t* begin,
                         uint64_t* end) {
  if (bytes == 0) return nullptr;
  Allocation* allocation = call.driver.memory().FindRange(address, bytes);
  if (!allocation || !allocation->IsManaged()) return nullptr;
  *begin = address / kPage * kPage;
  *end = (address + bytes + kPage - 1) / kPage * kPage;
  return allocation;
}

CUresult CheckLocation(Call& call, const CUmemLocation& location, int* where) {
  if (!ToMachineLocation(call.driver, location, where))
    return location.type == CU_MEM_LOCATION_TYPE_DEVICE ? CUDA_ERROR_INVALID_DEVICE
                                                        : CUDA_ERROR_INVALID_VALUE;
  return call.driver.settings().concurrent_managed ? CUDA_SUCCESS : CUDA_ERROR_INVALID_DEVICE;
}

CUresult SubmitHint(Call& call, Stream& stream, CUdeviceptr address, size_t bytes, bool discard,
                    bool prefetch, const CUmemLocation& location) {
  int where = kHost;
  if (prefetch) {
    if (const CUresult result = CheckLocation(call, location, &where); result != CUDA_SUCCESS)
      return result;
  } else if (!call.driver.settings().concurrent_managed) {
    return CUDA_ERROR_INVALID_DEVICE;
  }
  uint64_t begin = 0, end = 0;
  Allocation* allocation = ManagedRange(call, address, bytes, &begin, &end);
  if (!allocation) return CUDA_ERROR_INVALID_VALUE;
  if (IsCapturing(stream)) return RefuseInCapture(stream);  // there is no graph node for it
  if (prefetch)
    ChangeAdvice(allocation, begin, end,
                 [&](Advised& advised) { advised.last_prefetch = location; });
  return Submit(call, stream, HintTask{begin, end - begin, discard, prefetch, where});
}

CUresult Prefetch(Call& call, CUdeviceptr address, size_t bytes, const CUmemLocation& location,
                  CUstream handle) {
  Stream* stream = nullptr;
  if (const CUresult result = ResolveStream(call, handle, &stream); result != CUDA_SUCCESS)
    return result;
  return SubmitHint(call, *stream, address, bytes, false, true, location);
}

bool ToMachineAdvice(CUmem_advise advice, Advice* out) {
  switch (advice) {
    case CU_MEM_ADVISE_SET_READ_MOSTLY:
      *out = Advice::kSetReadMostly;
      return true;
    case CU_MEM_ADVISE_UNSET_READ_MOSTLY:
      *out = Advice::kUnsetReadMostly;
      return true;
    case CU_MEM_ADVISE_SET_PREFERRED_LOCATION:
      *out = Advice::kSetPreferred;
      return true;
    case CU_MEM_ADVISE_UNSET_PREFERRED_LOCATION:
      *out = Advice::kUnsetPreferred;
      return true;
    case CU_MEM_ADVISE_SET_ACCESSED_BY:
      *out = Advice::kSetAccessedBy;
      return true;
    case CU_MEM_ADVISE_UNSET_ACCESSED_BY:
      *out = Advice::kUnsetAccessedBy;
      return true;
  }
  return false;
}

void Remember(Advised& advised, Advice advice, const CUmemLocation& location) {
  const int device = location.type == CU_MEM_LOCATION_TYPE_DEVICE ? location.id : CU_DEVICE_CPU;
  switch (advice) {
    case Advice::kSetReadMostly:
      advised.read_mostly = true;
      break;
    case Advice::kUnsetReadMostly:
      advised.read_mostly = false;
      break;
    case Advice::kSetPreferred:
      advised.preferred = location;
      break;
    case Advice::kUnsetPreferred:
      advised.preferred = {CU_MEM_LOCATION_TYPE_INVALID, 0};
      break;
    case Advice::kSetAccessedBy:
      advised.accessed_by.insert(device);
      break;
    case Advice::kUnsetAccessedBy:
      advised.accessed_by.erase(device);
      break;
  }
}

CUresult Advise(Call& call, CUdeviceptr address, size_t bytes, CUmem_advise advice,
                CUmemLocation location) {
  Advice wanted;
  if (!ToMachineAdvice(advice, &wanted)) return CUDA_ERROR_INVALID_VALUE;
  const bool located = wanted == Advice::kSetPreferred || wanted == Advice::kSetAccessedBy ||
                       wanted == Advice::kUnsetAccessedBy;
  int where = kHost;
  if (located) {
    if (const CUresult result = CheckLocation(call, location, &where); result != CUDA_SUCCESS)
      return result;
    const bool numa = location.type == CU_MEM_LOCATION_TYPE_HOST_NUMA ||
                      location.type == CU_MEM_LOCATION_TYPE_HOST_NUMA_CURRENT;
    if (numa && wanted != Advice::kSetPreferred) return CUDA_ERROR_INVALID_VALUE;
  } else if (!call.driver.settings().concurrent_managed) {
    return CUDA_ERROR_INVALID_DEVICE;
  }
  uint64_t begin = 0, end = 0;
  Allocation* allocation = ManagedRange(call, address, bytes, &begin, &end);
  if (!allocation) return CUDA_ERROR_INVALID_VALUE;
  CollectHostTouches(call.driver, call.lane(), begin, end);
  const MachineStatus status =
      call.machine().Advise(call.lane(), begin, end - begin, wanted, where);
  if (status != MachineStatus::kOk) return FromMachine(*call.context, status);
  ChangeAdvice(allocation, begin, end,
               [&](Advised& advised) { Remember(advised, wanted, location); });
  return CUDA_SUCCESS;
}

// Arguments that the three batch calls share. They refuse the legacy default stream.
CUresult CheckBatch(Call& call, CUdeviceptr* addresses, size_t* sizes, size_t count,
                    unsigned long long flags, CUstream handle, Stream** stream) {
  if (!addresses || !sizes || count == 0 || flags) return CUDA_ERROR_INVALID_VALUE;
  if (const CUresult result = ResolveStream(call, handle, stream); result != CUDA_SUCCESS)
    return result;
  return (*stream)->is_legacy ? CUDA_ERROR_INVALID_VALUE : CUDA_SUCCESS;
}

CUresult PrefetchBatch(Call& call, CUdeviceptr* addresses, size_t* sizes, size_t count,
                       CUmemLocation* locations, size_t* first_of, size_t location_count,
                       unsigned long long flags, CUstream handle, bool discard) {
  Stream* stream = nullptr;
  if (const CUresult result = CheckBatch(call, addresses, sizes, count, flags, handle, &stream);
      result != CUDA_SUCCESS)
    return result;
  if (!locations || !first_of || location_count == 0 || location_count > count || first_of[0] != 0)
    return CUDA_ERROR_INVALID_VALUE;
  for (size_t i = 1; i < location_count; ++i) {
    if (first_of[i] <= first_of[i - 1] || first_of[i] >= count) return CUDA_ERROR_INVALID_VALUE;
  }
  size_t location = 0;
  for (size_t i = 0; i < count; ++i) {
    if (location + 1 < location_count && first_of[location + 1] == i) ++location;
    const CUresult result =
        SubmitHint(call, *stream, addresses[i], sizes[i], discard, true, locations[location]);
    if (result != CUDA_SUCCESS) return result;
  }
  return CUDA_SUCCESS;
}

}  // namespace

CUresult RunHint(Driver& driver, Lane lane, Stream& stream, const HintTask& task) {
  CollectHostTouches(driver, lane, task.address, task.address + task.bytes);
  Machine& machine = driver.machine();
  const MachineStatus status =
      task.discard
          ? machine.Discard(lane, stream.id, task.address, task.bytes, task.prefetch, task.location)
          : machine.Prefetch(lane, stream.id, task.address, task.bytes, task.location);
  return FromMachine(*stream.context, status);
}

}  // namespace atp::sim

ATP_API cuMemPrefetchAsync_v2(CUdeviceptr address, size_t bytes, CUmemLocation location,
                              unsigned flags, CUstream stream) {
  ATP_CALL(kNeedsContext, cost::kNone);
  if (flags) return CUDA_ERROR_INVALID_VALUE;
  return Prefetch(call, address, bytes, location, stream);
}

ATP_API cuMemPrefetchAsync(CUdeviceptr address, size_t bytes, CUdevice device, CUstream stream) {
  ATP_CALL(kNeedsContext, cost::kNone);
  return Prefetch(call, address, bytes, FromDevice(device), stream);
}

ATP_API cuMemAdvise_v2(CUdeviceptr address, size_t bytes, CUmem_advise advice,
                       CUmemLocation location) {
  ATP_CALL(kNeedsContext, cost::kNone);
  return Advise(call, address, bytes, advice, location);
}

ATP_API cuMemAdvise(CUdeviceptr address, size_t bytes, CUmem_advise advice, CUdevice device) {
  ATP_CALL(kNeedsContext, cost::kNone);
  return Advise(call, address, bytes, advice, FromDevice(device));
}

ATP_API cuMemPrefetchBatchAsync(CUdeviceptr* addresses, size_t* sizes, size_t count,
                                CUmemLocation* locations, size_t* first_of, size_t location_count,
                                unsigned long long flags, CUstream stream) {
  ATP_CALL(kNeedsContext, cost::kNone);
  return PrefetchBatch(call, addresses, sizes, count, locations, first_of, location_count, flags,
                       stream, false);
}

ATP_API cuMemDiscardAndPrefetchBatchAsync(CUdeviceptr* addresses, size_t* sizes, size_t count,
                                          CUmemLocation* locations, size_t* first_of,
                                          size_t location_count, unsigned long long flags,
                                          CUstream stream) {
  ATP_CALL(kNeedsContext, cost::kNone);
  return PrefetchBatch(call, addresses, sizes, count, locations, first_of, location_count, flags,
                       stream, true);
}

ATP_API cuMemDiscardBatchAsync(CUdeviceptr* addresses, size_t* sizes, size_t count,
                               unsigned long long flags, CUstream handle) {
  ATP_CALL(kNeedsContext, cost::kNone);
  Stream* stream = nullptr;
  if (const CUresult result = CheckBatch(call, addresses, sizes, count, flags, handle, &stream);
      result != CUDA_SUCCESS)
    return result;
  for (size_t i = 0; i < count; ++i) {
    const CUresult result = SubmitHint(call, *stream, addresses[i], sizes[i], true, false, {});
    if (result != CUDA_SUCCESS) return result;
  }
  return CUDA_SUCCESS;
}
