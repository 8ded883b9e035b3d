// SPDX-License-Identifier: Apache-2.0
#include "shim/on_query.h"

#include "shim/call_site.h"
#include "shim/pools.h"
#include "shim/shimlog.h"

namespace atp::shim {

bool InUnmappedRange(CUdeviceptr address) {
  uint64_t start = 0, bytes = 0;
  return MappingAround(address, &start, &bytes) == InRange::kUnmapped;
}

void CorrectPointerAttribute(void* value, CUpointer_attribute attribute, CUdeviceptr address) {
  uint64_t start = 0, bytes = 0;
  CUmemoryPool pool = nullptr;
  if (attribute == CU_POINTER_ATTRIBUTE_MEMPOOL_HANDLE && value != nullptr) {
    const Record* record = g_tracker.Find(address);
    if (record != nullptr && record->pieces != nullptr &&
        PieceAround(address, &start, &bytes, &pool)) {
      *static_cast<CUmemoryPool*>(value) = pool;
    }
    return;
  }
  const bool start_asked = attribute == CU_POINTER_ATTRIBUTE_RANGE_START_ADDR;
  if (value == nullptr || (!start_asked && attribute != CU_POINTER_ATTRIBUTE_RANGE_SIZE)) return;
  if (!ProgramRange(address, &start, &bytes)) return;
  *static_cast<uint64_t*>(value) = start_asked ? start : bytes;
}

CUresult PrepareHandleFor(CUdeviceptr address, size_t bytes, CUmemRangeHandleType type) {
  const Device* device = CurrentDevice();
  int works = 0;
  if (device == nullptr || type != CU_MEM_RANGE_HANDLE_TYPE_DMA_BUF_FD ||
      real().cuDeviceGetAttribute == nullptr ||
      real().cuDeviceGetAttribute(&works, CU_DEVICE_ATTRIBUTE_DMA_BUF_SUPPORTED, device->ordinal) !=
          CUDA_SUCCESS ||
      works == 0) {
    return CUDA_SUCCESS;
  }
  TurnPlain(address);
  return GiveAddressToDriver(address, bytes);
}

void SayWhyRefused(CUdeviceptr address, const char* what) {
  constexpr uint64_t kMostSaid = 16;
  if (g_tracker.Find(address) == nullptr) return;
  const uint64_t before = g_findings.refused_exports.fetch_add(1, std::memory_order_relaxed);
  const bool remembered = RememberCaller();
  if (before >= kMostSaid) return;
  uint64_t start = 0, bytes = 0;
  ProgramRange(address, &start, &bytes);
  char caller[160];
  DescribeCaller(caller, sizeof caller);
  ATP_LOG_WARN(
      "memory at 0x%llx (%s) cannot be %s by %s: it is managed memory, so that it may move.%s "
      "Remedy: the beginning of the name of the library that allocates it in ATP_NATIVE, or "
      "ATP_POLICY=off",
      static_cast<unsigned long long>(address), HumanBytes(bytes).text(), what, caller,
      remembered ? " What that library allocates is plain from now on, while there is room." : "");
}

}  // namespace atp::shim
