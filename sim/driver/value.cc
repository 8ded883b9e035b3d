// SPDX-License-Identifier: Apache-2.0
// Waits for and writes of values in memory, and the calls that ask for them.
#include <cstring>

#include "sim/driver/capture.h"
#include "sim/driver/driver.h"
#include "sim/driver/places.h"

namespace atp::sim {
namespace {

// A write or a satisfied wait as the stream sees it. An estimate: one small access by the front
// end.
constexpr Time kValueTime = 1 * kUs;

// Managed memory is not accepted here, as the CUDA driver API manual says; other memory must be
// registered or of a device.
CUresult CheckAddress(Driver& driver, const Context& context, const ValueTask& task) {
  const uint64_t bytes = task.wide ? 8 : 4;
  Place place;
  if (task.address % bytes != 0) return CUDA_ERROR_INVALID_VALUE;
  if (!Locate(driver.memory(), context, task.address, bytes, &place))
    return CUDA_ERROR_INVALID_VALUE;
  return place.allocation && !place.IsManaged() ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

CUresult SubmitValue(Call& call, CUstream handle, const ValueTask& task) {
  Stream* stream = nullptr;
  if (const CUresult result = ResolveStream(call, handle, &stream); result != CUDA_SUCCESS)
    return result;
  if (const CUresult result = CheckAddress(call.driver, *stream->context, task);
      result != CUDA_SUCCESS)
    return result;
  if (IsCapturing(*stream)) return RefuseInCapture(*stream);
  return Submit(call, *stream, task);
}

bool ToValue(const CUstreamBatchMemOpParams& operation, ValueTask* value) {
  value->address = operation.writeValue.address;
  value->value = operation.writeValue.value64;
  value->flags = operation.writeValue.flags;
  switch (operation.operation) {
    case CU_STREAM_MEM_OP_WAIT_VALUE_32:
      value->wait = true;
      return true;
    case CU_STREAM_MEM_OP_WRITE_VALUE_32:
      return true;
    case CU_STREAM_MEM_OP_WAIT_VALUE_64:
      value->wait = value->wide = true;
      return true;
    case CU_STREAM_MEM_OP_WRITE_VALUE_64:
      value->wide = true;
      return true;
    default:
      return false;
  }
}

}  // namespace

bool ValueIsThere(Driver& driver, const ValueTask& task) {
  const Allocation* allocation = driver.memory().Find(task.address);
  if (!allocation) return true;  // freed under the wait: undefined, so do not hang
  uint64_t seen = 0, wanted = task.value;
  // The program's threads write this while we look.
  if (task.wide) {
    seen = __atomic_load_n(reinterpret_cast<uint64_t*>(allocation->Bytes(task.address)),
                           __ATOMIC_ACQUIRE);
  } else {
    seen = __atomic_load_n(reinterpret_cast<uint32_t*>(allocation->Bytes(task.address)),
                           __ATOMIC_ACQUIRE);
    wanted &= UINT32_MAX;
  }
  switch (task.flags & 3) {
    case CU_STREAM_WAIT_VALUE_GEQ:  // cyclic: a difference that is not negative
      return task.wide ? static_cast<int64_t>(seen - wanted) >= 0
                       : static_cast<int32_t>(static_cast<uint32_t>(seen - wanted)) >= 0;
    case CU_STREAM_WAIT_VALUE_EQ:
      return seen == wanted;
    case CU_STREAM_WAIT_VALUE_AND:
      return (seen & wanted) != 0;
    default:
      return (~(seen | wanted) & (task.wide ? UINT64_MAX : UINT32_MAX)) != 0;
  }
}

CUresult RunValue(Driver& driver, Lane lane, Stream& stream, const ValueTask& task) {
  driver.machine().SubmitDelay(lane, stream.id, kValueTime);
  if (task.wait) return CUDA_SUCCESS;
  const Allocation* allocation = driver.memory().Find(task.address);
  if (!allocation) return CUDA_ERROR_INVALID_VALUE;
  uint8_t* at = allocation->Bytes(task.address);
  if (task.wide) {
    __atomic_store_n(reinterpret_cast<uint64_t*>(at), task.value, __ATOMIC_RELEASE);
  } else {
    __atomic_store_n(reinterpret_cast<uint32_t*>(at), static_cast<uint32_t>(task.value),
                     __ATOMIC_RELEASE);
  }
  return CUDA_SUCCESS;
}

}  // namespace atp::sim

ATP_API cuStreamWaitValue32_v2(CUstream stream, CUdeviceptr address, cuuint32_t value,
                               unsigned flags) {
  ATP_CALL(kNeedsContext, cost::kLaunch);
  return SubmitValue(call, stream, {true, false, address, value, flags});
}

ATP_API cuStreamWaitValue64_v2(CUstream stream, CUdeviceptr address, cuuint64_t value,
                               unsigned flags) {
  ATP_CALL(kNeedsContext, cost::kLaunch);
  return SubmitValue(call, stream, {true, true, address, value, flags});
}

ATP_API cuStreamWriteValue32_v2(CUstream stream, CUdeviceptr address, cuuint32_t value,
                                unsigned flags) {
  ATP_CALL(kNeedsContext, cost::kLaunch);
  return SubmitValue(call, stream, {false, false, address, value, flags});
}

ATP_API cuStreamWriteValue64_v2(CUstream stream, CUdeviceptr address, cuuint64_t value,
                                unsigned flags) {
  ATP_CALL(kNeedsContext, cost::kLaunch);
  return SubmitValue(call, stream, {false, true, address, value, flags});
}

ATP_API cuStreamWaitValue32(CUstream stream, CUdeviceptr address, cuuint32_t value,
                            unsigned flags) {
  return cuStreamWaitValue32_v2(stream, address, value, flags);
}

ATP_API cuStreamWaitValue64(CUstream stream, CUdeviceptr address, cuuint64_t value,
                            unsigned flags) {
  return cuStreamWaitValue64_v2(stream, address, value, flags);
}

ATP_API cuStreamWriteValue32(CUstream stream, CUdeviceptr address, cuuint32_t value,
                             unsigned flags) {
  return cuStreamWriteValue32_v2(stream, address, value, flags);
}

ATP_API cuStreamWriteValue64(CUstream stream, CUdeviceptr address, cuuint64_t value,
                             unsigned flags) {
  return cuStreamWriteValue64_v2(stream, address, value, flags);
}

ATP_API cuStreamBatchMemOp_v2(CUstream handle, unsigned count, CUstreamBatchMemOpParams* params,
                              unsigned flags) {
  ATP_CALL(kNeedsContext, cost::kLaunch);
  if (!params || count == 0 || count > 256 || flags) return CUDA_ERROR_INVALID_VALUE;
  Stream* stream = nullptr;
  if (const CUresult result = ResolveStream(call, handle, &stream); result != CUDA_SUCCESS)
    return result;
  std::vector<ValueTask> operations;
  for (unsigned i = 0; i < count; ++i) {
    if (params[i].operation == CU_STREAM_MEM_OP_FLUSH_REMOTE_WRITES ||
        params[i].operation == CU_STREAM_MEM_OP_BARRIER)
      continue;  // everything is in order here already
    ValueTask value;
    if (!ToValue(params[i], &value)) return CUDA_ERROR_INVALID_VALUE;
    if (const CUresult result = CheckAddress(call.driver, *stream->context, value);
        result != CUDA_SUCCESS)
      return result;
    operations.push_back(value);
  }
  if (IsCapturing(*stream)) return RefuseInCapture(*stream);
  // One by one: a wait in the middle must not hold up what comes before it.
  for (const ValueTask& value : operations) {
    if (const CUresult result = Submit(call, *stream, value); result != CUDA_SUCCESS) return result;
  }
  return CUDA_SUCCESS;
}

ATP_API cuStreamBatchMemOp(CUstream stream, unsigned count, CUstreamBatchMemOpParams* params,
                           unsigned flags) {
  return cuStreamBatchMemOp_v2(stream, count, params, flags);
}
