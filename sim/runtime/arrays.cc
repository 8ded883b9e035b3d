// SPDX-License-Identifier: Apache-2.0
// Arrays: making them, and asking about them.
#include "sim/runtime/arrays.h"

namespace atp::simrt {

Status ToFormat(const cudaChannelFormatDesc& from, CUarray_format* format, unsigned* channels) {
  const int bits = from.x, widths[] = {from.y, from.z, from.w};
  *channels = 1;
  for (const int width : widths) {
    if (width != 0 && width != bits) return cudaErrorInvalidChannelDescriptor;
    *channels += width != 0;
  }
  if (*channels == 3) return cudaErrorInvalidChannelDescriptor;
  const int size = bits == 8 ? 0 : bits == 16 ? 1 : bits == 32 ? 2 : -1;
  if (size < 0) return cudaErrorInvalidChannelDescriptor;
  constexpr CUarray_format kUnsigned[] = {CU_AD_FORMAT_UNSIGNED_INT8, CU_AD_FORMAT_UNSIGNED_INT16,
                                          CU_AD_FORMAT_UNSIGNED_INT32};
  constexpr CUarray_format kSigned[] = {CU_AD_FORMAT_SIGNED_INT8, CU_AD_FORMAT_SIGNED_INT16,
                                        CU_AD_FORMAT_SIGNED_INT32};
  switch (from.f) {
    case cudaChannelFormatKindUnsigned:
      *format = kUnsigned[size];
      return cudaSuccess;
    case cudaChannelFormatKindSigned:
      *format = kSigned[size];
      return cudaSuccess;
    case cudaChannelFormatKindFloat:
      if (size == 0) return cudaErrorInvalidChannelDescriptor;
      *format = size == 1 ? CU_AD_FORMAT_HALF : CU_AD_FORMAT_FLOAT;
      return cudaSuccess;
    default:
      return cudaErrorNotSupported;
  }
}

namespace {

int BitsOf(CUarray_format format) {
  switch (format) {
    case CU_AD_FORMAT_UNSIGNED_INT8:
    case CU_AD_FORMAT_SIGNED_INT8:
      return 8;
    case CU_AD_FORMAT_UNSIGNED_INT16:
    case CU_AD_FORMAT_SIGNED_INT16:
    case CU_AD_FORMAT_HALF:
      return 16;
    default:
      return 32;
  }
}

}  // namespace

cudaChannelFormatDesc FromFormat(CUarray_format format, unsigned channels) {
  const int bits = BitsOf(format);
  const bool is_float = format == CU_AD_FORMAT_HALF || format == CU_AD_FORMAT_FLOAT;
  const bool is_signed = format == CU_AD_FORMAT_SIGNED_INT8 ||
                         format == CU_AD_FORMAT_SIGNED_INT16 || format == CU_AD_FORMAT_SIGNED_INT32;
  cudaChannelFormatDesc to = {bits, channels > 1 ? bits : 0, channels > 2 ? bits : 0,
                              channels > 3 ? bits : 0, cudaChannelFormatKindUnsigned};
  if (is_float) to.f = cudaChannelFormatKindFloat;
  if (is_signed) to.f = cudaChannelFormatKindSigned;
  return to;
}

Status Describe(const DriverCalls& cu, cudaArray_const_t array, CUDA_ARRAY3D_DESCRIPTOR* to) {
  if (!array) return cudaErrorInvalidResourceHandle;
  return cu.Array3DGetDescriptor(to, Handle(array));
}

Status ElementBytes(const DriverCalls& cu, cudaArray_const_t array, size_t* bytes) {
  CUDA_ARRAY3D_DESCRIPTOR d = {};
  const Status status = Describe(cu, array, &d);
  *bytes = static_cast<size_t>(BitsOf(d.Format)) / 8 * d.NumChannels;
  return status;
}

namespace {

Status Create(const DriverCalls& cu, cudaArray_t* array, const cudaChannelFormatDesc* element,
              cudaExtent extent, unsigned flags) {
  if (!array || !element) return cudaErrorInvalidValue;
  CUDA_ARRAY3D_DESCRIPTOR d = {};
  const Status status = ToFormat(*element, &d.Format, &d.NumChannels);
  if (!status.ok()) return status;
  d.Width = extent.width;
  d.Height = extent.height;
  d.Depth = extent.depth;
  d.Flags = flags;  // the same bits in both interfaces
  return cu.Array3DCreate(reinterpret_cast<CUarray*>(array), &d);
}

static_assert(cudaArraySurfaceLoadStore == CUDA_ARRAY3D_SURFACE_LDST);
static_assert(cudaArrayLayered == CUDA_ARRAY3D_LAYERED);
static_assert(cudaArrayTextureGather == CUDA_ARRAY3D_TEXTURE_GATHER);

}  // namespace
}  // namespace atp::simrt

using namespace atp::simrt;  // NOLINT: what follows only forwards calls

extern "C" {

cudaError_t cudaMallocArray(cudaArray_t* array, const cudaChannelFormatDesc* element, size_t width,
                            size_t height, unsigned flags) {
  return WithContext([&](const DriverCalls& cu) {
    return Create(cu, array, element, {width, height, 0}, flags);
  });
}

cudaError_t cudaMalloc3DArray(cudaArray_t* array, const cudaChannelFormatDesc* element,
                              cudaExtent extent, unsigned flags) {
  return WithContext(
      [&](const DriverCalls& cu) { return Create(cu, array, element, extent, flags); });
}

cudaError_t cudaFreeArray(cudaArray_t array) {
  return WithContext([&](const DriverCalls& cu) -> Status {
    if (!array) return cudaSuccess;
    return cu.ArrayDestroy(Handle(array));
  });
}

cudaError_t cudaArrayGetInfo(cudaChannelFormatDesc* element, cudaExtent* extent, unsigned* flags,
                             cudaArray_t array) {
  return WithContext([&](const DriverCalls& cu) {
    CUDA_ARRAY3D_DESCRIPTOR d = {};
    const Status status = Describe(cu, array, &d);
    if (!status.ok()) return status;
    if (element) *element = FromFormat(d.Format, d.NumChannels);
    if (extent) *extent = {d.Width, d.Height, d.Depth};
    if (flags) *flags = d.Flags;
    return status;
  });
}

cudaError_t cudaGetChannelDesc(cudaChannelFormatDesc* element, cudaArray_const_t array) {
  return WithContext([&](const DriverCalls& cu) {
    CUDA_ARRAY3D_DESCRIPTOR d = {};
    const Status status = Describe(cu, array, &d);
    if (status.ok()) *element = FromFormat(d.Format, d.NumChannels);
    return status;
  });
}

}  // extern "C"
