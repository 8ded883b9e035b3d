// SPDX-License-Identifier: Apache-2.0
// Copies between memory and arrays of one dimension, by offsets in bytes; arrays of more dimensions
// are copied by the calls of copy_shapes_api.cc.
#include "sim/driver/array.h"
#include "sim/driver/copy_calls.h"
#include "sim/driver/driver.h"

namespace atp::sim {
namespace {

// A piece of an array of one dimension; false when there is none there.
bool PieceOf(Call& call, CUarray handle, size_t offset, size_t bytes, uint64_t* address) {
  const Array* array = call.driver.arrays.Get(handle);
  if (!array || array->description.Height != 0 || offset > array->row_bytes ||
      bytes > array->row_bytes - offset)
    return false;
  *address = array->memory->begin + offset;
  return true;
}

CopyTask Row(uint64_t destination, uint64_t source, uint64_t bytes) {
  CopyTask task;
  task.source = source;
  task.destination = destination;
  task.width = bytes;
  return task;
}

uint64_t Host(const void* pointer) { return reinterpret_cast<uint64_t>(pointer); }

}  // namespace
}  // namespace atp::sim

ATP_API cuMemcpyHtoA_v2(CUarray to, size_t offset, const void* from, size_t bytes) {
  ATP_CALL(kNeedsContext | kUnsafeInCapture, cost::kCopy);
  uint64_t at = 0;
  if (!PieceOf(call, to, offset, bytes, &at)) return CUDA_ERROR_INVALID_VALUE;
  return CopyNow(call, Row(at, Host(from), bytes));
}

ATP_API cuMemcpyAtoH_v2(void* to, CUarray from, size_t offset, size_t bytes) {
  ATP_CALL(kNeedsContext | kUnsafeInCapture, cost::kCopy);
  uint64_t at = 0;
  if (!PieceOf(call, from, offset, bytes, &at)) return CUDA_ERROR_INVALID_VALUE;
  return CopyNow(call, Row(Host(to), at, bytes));
}

ATP_API cuMemcpyDtoA_v2(CUarray to, size_t offset, CUdeviceptr from, size_t bytes) {
  ATP_CALL(kNeedsContext | kUnsafeInCapture, cost::kCopy);
  uint64_t at = 0;
  if (!PieceOf(call, to, offset, bytes, &at)) return CUDA_ERROR_INVALID_VALUE;
  return CopyNow(call, Row(at, from, bytes));
}

ATP_API cuMemcpyAtoD_v2(CUdeviceptr to, CUarray from, size_t offset, size_t bytes) {
  ATP_CALL(kNeedsContext | kUnsafeInCapture, cost::kCopy);
  uint64_t at = 0;
  if (!PieceOf(call, from, offset, bytes, &at)) return CUDA_ERROR_INVALID_VALUE;
  return CopyNow(call, Row(to, at, bytes));
}

ATP_API cuMemcpyAtoA_v2(CUarray to, size_t to_offset, CUarray from, size_t from_offset,
                        size_t bytes) {
  ATP_CALL(kNeedsContext | kUnsafeInCapture, cost::kCopy);
  uint64_t destination = 0, source = 0;
  if (!PieceOf(call, to, to_offset, bytes, &destination) ||
      !PieceOf(call, from, from_offset, bytes, &source))
    return CUDA_ERROR_INVALID_VALUE;
  return CopyNow(call, Row(destination, source, bytes));
}

ATP_API cuMemcpyHtoAAsync_v2(CUarray to, size_t offset, const void* from, size_t bytes,
                             CUstream stream) {
  ATP_CALL(kNeedsContext, cost::kCopy);
  uint64_t at = 0;
  if (!PieceOf(call, to, offset, bytes, &at)) return CUDA_ERROR_INVALID_VALUE;
  return CopyLater(call, Row(at, Host(from), bytes), stream);
}

ATP_API cuMemcpyAtoHAsync_v2(void* to, CUarray from, size_t offset, size_t bytes, CUstream stream) {
  ATP_CALL(kNeedsContext, cost::kCopy);
  uint64_t at = 0;
  if (!PieceOf(call, from, offset, bytes, &at)) return CUDA_ERROR_INVALID_VALUE;
  return CopyLater(call, Row(Host(to), at, bytes), stream);
}
