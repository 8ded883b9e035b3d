// SPDX-License-Identifier: Apache-2.0
// Bodies of the hooks where the program asks about memory. Pointers tell the truth: the driver
// answers, and only the range is corrected to what the program asked for, where ours is rounded up
// or a slab. Numbers come from one place (memory_numbers.cc) and agree with each other.
#pragma once

#include "shim/findings.h"
#include "shim/memory_numbers.h"
#include "shim/placement.h"
#include "shim/resolve.h"
#include "shim/turn_plain.h"
#include "shim/vmm.h"

namespace atp::shim {

template <HookId id>
CUresult OnMemGetInfo(size_t* free, size_t* total) {
  const CUresult result = Row<id>::Real()(free, total);
  const Device* device = CurrentDevice();
  if (result == CUDA_SUCCESS) CorrectMemoryInfo(device, free, total);
  if (device != nullptr && !device->ever_managed.load(std::memory_order_relaxed)) {
    g_findings.asked_before_allocating.store(true, std::memory_order_relaxed);
  }
  return result;
}

template <HookId id>
CUresult OnDeviceTotalMem(size_t* bytes, CUdevice device) {
  const CUresult result = Row<id>::Real()(bytes, device);
  if (result == CUDA_SUCCESS && bytes != nullptr) *bytes = ReportedTotal(*bytes);
  return result;
}

// Reserved by the program, and nothing is mapped there: to the driver it is managed memory.
bool InUnmappedRange(CUdeviceptr address);

template <HookId id>
CUresult OnMemGetAddressRange(CUdeviceptr* base, size_t* size, CUdeviceptr address) {
  uint64_t start = 0, bytes = 0;
  if (InUnmappedRange(address)) return CUDA_ERROR_NOT_FOUND;
  const CUresult result = Row<id>::Real()(base, size, address);
  if (result != CUDA_SUCCESS || !ProgramRange(address, &start, &bytes)) return result;
  if (base != nullptr) *base = start;
  if (size != nullptr) *size = bytes;
  return result;
}

void CorrectPointerAttribute(void* value, CUpointer_attribute attribute, CUdeviceptr address);

template <HookId id>
CUresult OnPointerGetAttribute(void* value, CUpointer_attribute attribute, CUdeviceptr address) {
  if (InUnmappedRange(address)) return CUDA_ERROR_INVALID_VALUE;
  const CUresult result = Row<id>::Real()(value, attribute, address);
  if (result == CUDA_SUCCESS) CorrectPointerAttribute(value, attribute, address);
  return result;
}

template <HookId id>
CUresult OnPointerGetAttributes(unsigned count, CUpointer_attribute* attributes, void** values,
                                CUdeviceptr address) {
  if (InUnmappedRange(address)) address = 0;  // answered as any unknown address
  const CUresult result = Row<id>::Real()(count, attributes, values, address);
  if (result != CUDA_SUCCESS || attributes == nullptr || values == nullptr) return result;
  for (unsigned i = 0; i < count; ++i) CorrectPointerAttribute(values[i], attributes[i], address);
  return result;
}

// The driver has refused something that plain memory can do and managed memory cannot: says so in
// the log, with caller and remedy, and remembers the caller. `what`: as in "cannot be exported".
void SayWhyRefused(CUdeviceptr address, const char* what);
constexpr const char* kNoExport = "exported to another process or device";

template <HookId id>
CUresult OnIpcGetMemHandle(CUipcMemHandle* handle, CUdeviceptr address) {
  const CUresult result = Row<id>::Real()(handle, address);
  if (result != CUDA_SUCCESS) SayWhyRefused(address, kNoExport);
  return result;
}

// Before a handle for other devices (dma-buf) is asked for: memory that a range shows can become
// the driver's, where the device has such handles at all.
CUresult PrepareHandleFor(CUdeviceptr address, size_t bytes, CUmemRangeHandleType type);

template <HookId id>
CUresult OnHandleForRange(void* handle, CUdeviceptr address, size_t bytes,
                          CUmemRangeHandleType type, unsigned long long flags) {
  const CUresult prepared = PrepareHandleFor(address, bytes, type);
  if (prepared != CUDA_SUCCESS) return prepared;
  const CUresult result = Row<id>::Real()(handle, address, bytes, type, flags);
  if (result != CUDA_SUCCESS) SayWhyRefused(address, kNoExport);
  return result;
}

// Operations of a stream on values in memory: what they are refused for becomes plain memory.
constexpr const char* kNoMemOps = "used by stream memory operations";

template <HookId id, typename Value>
CUresult OnStreamValue(CUstream stream, CUdeviceptr address, Value value, unsigned flags) {
  CUresult result = Row<id>::Real()(stream, address, value, flags);
  if (result == CUDA_ERROR_INVALID_VALUE && address % sizeof value == 0 && TurnPlain(address)) {
    result = Row<id>::Real()(stream, address, value, flags);
  }
  if (result == CUDA_ERROR_INVALID_VALUE) SayWhyRefused(address, kNoMemOps);
  return result;
}

template <HookId id>
CUresult OnStreamMemOps(CUstream stream, unsigned count, CUstreamBatchMemOpParams* operations,
                        unsigned flags) {
  const auto submit = [&] { return Row<id>::Real()(stream, count, operations, flags); };
  const auto each_address = [&](auto body) {
    for (unsigned i = 0; operations != nullptr && i < count; ++i) {
      const bool has_address = operations[i].operation != CU_STREAM_MEM_OP_FLUSH_REMOTE_WRITES &&
                               operations[i].operation != CU_STREAM_MEM_OP_BARRIER;
      if (has_address) body(operations[i].writeValue.address);
    }
  };
  CUresult result = submit();
  if (result != CUDA_ERROR_INVALID_VALUE) return result;
  bool turned = false;
  each_address([&](CUdeviceptr address) { turned |= TurnPlain(address); });
  if (turned) result = submit();
  if (result == CUDA_ERROR_INVALID_VALUE) {
    each_address([](CUdeviceptr address) { SayWhyRefused(address, kNoMemOps); });
  }
  return result;
}

}  // namespace atp::shim
