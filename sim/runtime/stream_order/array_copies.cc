// SPDX-License-Identifier: Apache-2.0
// Copies from and to arrays. Offsets and widths are in bytes, heights in rows.
#include <algorithm>

#include "sim/runtime/arrays.h"
#include "sim/runtime/copy_shapes.h"
#include "sim/runtime/stream_order/mode.h"

namespace {

void ToArray(CUDA_MEMCPY2D* copy, cudaArray_const_t array, size_t x, size_t y) {
  copy->dstMemoryType = CU_MEMORYTYPE_ARRAY;
  copy->dstArray = Handle(array);
  copy->dstXInBytes = x;
  copy->dstY = y;
}

void FromArray(CUDA_MEMCPY2D* copy, cudaArray_const_t array, size_t x, size_t y) {
  copy->srcMemoryType = CU_MEMORYTYPE_ARRAY;
  copy->srcArray = Handle(array);
  copy->srcXInBytes = x;
  copy->srcY = y;
}

// `stream` null: a synchronous copy.
Status Submit(const DriverCalls& cu, const CUDA_MEMCPY2D& copy, const cudaStream_t* stream) {
  if (copy.WidthInBytes == 0 || copy.Height == 0) return cudaSuccess;
  return stream ? cu.Memcpy2DAsync(&copy, *stream) : cu.Memcpy2DUnaligned(&copy);
}

// A run of bytes that goes on at the next row of `array`: a piece of the first row, whole rows, a
// piece of the last. `make(done, x, y, width, rows)` describes one of them.
template <typename Make>
Status InRows(const DriverCalls& cu, cudaArray_const_t array, size_t x, size_t y, size_t bytes,
              const cudaStream_t* stream, Make make) {
  CUDA_ARRAY3D_DESCRIPTOR d = {};
  size_t element = 0;
  Status status = Describe(cu, array, &d);
  if (status.ok()) status = ElementBytes(cu, array, &element);
  if (!status.ok()) return status;
  const size_t row = d.Width * element;
  if (x >= row && bytes > 0) return cudaErrorInvalidValue;
  for (size_t done = 0; done < bytes;) {
    const size_t left = bytes - done;
    const bool whole_rows = x == 0 && left >= row;
    const size_t width = whole_rows ? row : std::min(left, row - x);
    const size_t rows = whole_rows ? left / row : 1;
    status = Submit(cu, make(done, x, y, width, rows), stream);
    if (!status.ok()) return status;
    done += width * rows;
    y += rows;
    x = 0;
  }
  return cudaSuccess;
}

Status CopyToArray(const DriverCalls& cu, cudaArray_t to, size_t x, size_t y, const void* from,
                   size_t bytes, cudaMemcpyKind kind, const cudaStream_t* stream) {
  return InRows(cu, to, x, y, bytes, stream,
                [&](size_t done, size_t at_x, size_t at_y, size_t width, size_t rows) {
                  const void* part = static_cast<const char*>(from) + done;
                  CUDA_MEMCPY2D copy = Copy2D(nullptr, 0, part, width, width, rows, kind);
                  ToArray(&copy, to, at_x, at_y);
                  return copy;
                });
}

Status CopyFromArray(const DriverCalls& cu, void* to, cudaArray_const_t from, size_t x, size_t y,
                     size_t bytes, cudaMemcpyKind kind, const cudaStream_t* stream) {
  return InRows(cu, from, x, y, bytes, stream,
                [&](size_t done, size_t at_x, size_t at_y, size_t width, size_t rows) {
                  void* part = static_cast<char*>(to) + done;
                  CUDA_MEMCPY2D copy = Copy2D(part, width, nullptr, 0, width, rows, kind);
                  FromArray(&copy, from, at_x, at_y);
                  return copy;
                });
}

CUDA_MEMCPY2D PlaneToArray(cudaArray_t to, size_t x, size_t y, const void* from, size_t pitch,
                           size_t width, size_t height, cudaMemcpyKind kind) {
  CUDA_MEMCPY2D copy = Copy2D(nullptr, 0, from, pitch, width, height, kind);
  ToArray(&copy, to, x, y);
  return copy;
}

CUDA_MEMCPY2D PlaneFromArray(void* to, size_t pitch, cudaArray_const_t from, size_t x, size_t y,
                             size_t width, size_t height, cudaMemcpyKind kind) {
  CUDA_MEMCPY2D copy = Copy2D(to, pitch, nullptr, 0, width, height, kind);
  FromArray(&copy, from, x, y);
  return copy;
}

CUDA_MEMCPY2D BetweenArrays(cudaArray_t to, size_t to_x, size_t to_y, cudaArray_const_t from,
                            size_t from_x, size_t from_y, size_t width, size_t height) {
  CUDA_MEMCPY2D copy = {};
  copy.WidthInBytes = width;
  copy.Height = height;
  ToArray(&copy, to, to_x, to_y);
  FromArray(&copy, from, from_x, from_y);
  return copy;
}

}  // namespace

extern "C" {

cudaError_t cudaMemcpy2DToArray(cudaArray_t to, size_t x, size_t y, const void* from, size_t pitch,
                                size_t width, size_t height, cudaMemcpyKind kind) {
  return InContext([&](const DriverCalls& cu) {
    return Submit(cu, PlaneToArray(to, x, y, from, pitch, width, height, kind), nullptr);
  });
}

cudaError_t cudaMemcpy2DToArrayAsync(cudaArray_t to, size_t x, size_t y, const void* from,
                                     size_t pitch, size_t width, size_t height, cudaMemcpyKind kind,
                                     cudaStream_t stream) {
  return InContext([&](const DriverCalls& cu) {
    return Submit(cu, PlaneToArray(to, x, y, from, pitch, width, height, kind), &stream);
  });
}

cudaError_t cudaMemcpy2DFromArray(void* to, size_t pitch, cudaArray_const_t from, size_t x,
                                  size_t y, size_t width, size_t height, cudaMemcpyKind kind) {
  return InContext([&](const DriverCalls& cu) {
    return Submit(cu, PlaneFromArray(to, pitch, from, x, y, width, height, kind), nullptr);
  });
}

cudaError_t cudaMemcpy2DFromArrayAsync(void* to, size_t pitch, cudaArray_const_t from, size_t x,
                                       size_t y, size_t width, size_t height, cudaMemcpyKind kind,
                                       cudaStream_t stream) {
  return InContext([&](const DriverCalls& cu) {
    return Submit(cu, PlaneFromArray(to, pitch, from, x, y, width, height, kind), &stream);
  });
}

cudaError_t cudaMemcpy2DArrayToArray(cudaArray_t to, size_t to_x, size_t to_y,
                                     cudaArray_const_t from, size_t from_x, size_t from_y,
                                     size_t width, size_t height, cudaMemcpyKind) {
  return InContext([&](const DriverCalls& cu) {
    return Submit(cu, BetweenArrays(to, to_x, to_y, from, from_x, from_y, width, height), nullptr);
  });
}

cudaError_t cudaMemcpyToArray(cudaArray_t to, size_t x, size_t y, const void* from, size_t bytes,
                              cudaMemcpyKind kind) {
  return InContext(
      [&](const DriverCalls& cu) { return CopyToArray(cu, to, x, y, from, bytes, kind, nullptr); });
}

cudaError_t cudaMemcpyToArrayAsync(cudaArray_t to, size_t x, size_t y, const void* from,
                                   size_t bytes, cudaMemcpyKind kind, cudaStream_t stream) {
  return InContext(
      [&](const DriverCalls& cu) { return CopyToArray(cu, to, x, y, from, bytes, kind, &stream); });
}

cudaError_t cudaMemcpyFromArray(void* to, cudaArray_const_t from, size_t x, size_t y, size_t bytes,
                                cudaMemcpyKind kind) {
  return InContext([&](const DriverCalls& cu) {
    return CopyFromArray(cu, to, from, x, y, bytes, kind, nullptr);
  });
}

cudaError_t cudaMemcpyFromArrayAsync(void* to, cudaArray_const_t from, size_t x, size_t y,
                                     size_t bytes, cudaMemcpyKind kind, cudaStream_t stream) {
  return InContext([&](const DriverCalls& cu) {
    return CopyFromArray(cu, to, from, x, y, bytes, kind, &stream);
  });
}

// Both places must have the bytes in whole rows, or in one.
cudaError_t cudaMemcpyArrayToArray(cudaArray_t to, size_t to_x, size_t to_y, cudaArray_const_t from,
                                   size_t from_x, size_t from_y, size_t bytes, cudaMemcpyKind) {
  return InContext([&](const DriverCalls& cu) {
    return InRows(cu, from, from_x, from_y, bytes, nullptr,
                  [&](size_t done, size_t x, size_t y, size_t width, size_t rows) {
                    const size_t at_x = done == 0 ? to_x : 0;
                    return BetweenArrays(to, at_x, to_y + y - from_y, from, x, y, width, rows);
                  });
  });
}

}  // extern "C"
