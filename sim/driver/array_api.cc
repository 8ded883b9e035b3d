// SPDX-License-Identifier: Apache-2.0
#include "sim/driver/array.h"
#include "sim/driver/driver.h"

namespace atp::sim {
namespace {

constexpr uint64_t kRowAlignment = 32;
// Least sizes that the CUDA programming guide promises for compute capability 7 and later.
constexpr uint64_t kMost1D = 131072, kMost2DWidth = 131072, kMost2DHeight = 65536, kMost3D = 16384;

bool FitsLimits(const CUDA_ARRAY3D_DESCRIPTOR& d) {
  if (d.Width == 0 || (d.Depth != 0 && d.Height == 0)) return false;
  if (d.Depth != 0) return d.Width <= kMost3D && d.Height <= kMost3D && d.Depth <= kMost3D;
  if (d.Height != 0) return d.Width <= kMost2DWidth && d.Height <= kMost2DHeight;
  return d.Width <= kMost1D;
}

CUresult CreateArray(Call& call, CUarray* out, const CUDA_ARRAY3D_DESCRIPTOR& d) {
  constexpr unsigned kKnown = CUDA_ARRAY3D_SURFACE_LDST | CUDA_ARRAY3D_TEXTURE_GATHER;
  if (!out || !FitsLimits(d)) return CUDA_ERROR_INVALID_VALUE;
  if (d.NumChannels != 1 && d.NumChannels != 2 && d.NumChannels != 4)
    return CUDA_ERROR_INVALID_VALUE;
  Texture element;
  if (!ElementOf(d.Format, d.NumChannels, &element) || (d.Flags & ~kKnown))
    return CUDA_ERROR_NOT_SUPPORTED;
  auto array = std::make_unique<Array>();
  array->description = d;
  array->context = call.context;
  array->row_bytes = d.Width * element.element_bytes();
  array->row_pitch = (array->row_bytes + kRowAlignment - 1) / kRowAlignment * kRowAlignment;
  array->slice_pitch = array->row_pitch * array->height();
  const CUresult result = call.driver.memory().AllocateDevice(
      call.lane(), call.context, array->slice_pitch * array->depth(), &array->memory);
  if (result != CUDA_SUCCESS) return result;
  *out = reinterpret_cast<CUarray>(call.driver.arrays.Add(array.release()));
  return CUDA_SUCCESS;
}

}  // namespace

bool ElementOf(CUarray_format format, unsigned channels, Texture* texture) {
  texture->channels = static_cast<int>(channels);
  switch (format) {
    case CU_AD_FORMAT_UNSIGNED_INT8:
      texture->channel = Texture::Channel::kU8;
      return true;
    case CU_AD_FORMAT_UNSIGNED_INT16:
      texture->channel = Texture::Channel::kU16;
      return true;
    case CU_AD_FORMAT_UNSIGNED_INT32:
      texture->channel = Texture::Channel::kU32;
      return true;
    case CU_AD_FORMAT_SIGNED_INT8:
      texture->channel = Texture::Channel::kS8;
      return true;
    case CU_AD_FORMAT_SIGNED_INT16:
      texture->channel = Texture::Channel::kS16;
      return true;
    case CU_AD_FORMAT_SIGNED_INT32:
      texture->channel = Texture::Channel::kS32;
      return true;
    case CU_AD_FORMAT_HALF:
      texture->channel = Texture::Channel::kF16;
      return true;
    case CU_AD_FORMAT_FLOAT:
      texture->channel = Texture::Channel::kF32;
      return true;
    default:
      return false;
  }
}

void DropArray(Driver& driver, Lane lane, Array* array) {
  driver.arrays.Remove(array);
  driver.memory().Free(lane, array->memory);
  delete array;
}

void DropArraysOf(Driver& driver, Lane lane, Context* context) {
  std::erase_if(driver.textures,
                [&](const auto& object) { return object.second.context == context; });
  std::vector<Array*> doomed;
  for (Array* array : driver.arrays.all()) {
    if (array->context == context) doomed.push_back(array);
  }
  for (Array* array : doomed) DropArray(driver, lane, array);
}

}  // namespace atp::sim

ATP_API cuArray3DCreate_v2(CUarray* out, const CUDA_ARRAY3D_DESCRIPTOR* description) {
  ATP_CALL(kNeedsContext | kUnsafeInCapture, cost::kAlloc);
  return description ? CreateArray(call, out, *description) : CUDA_ERROR_INVALID_VALUE;
}

ATP_API cuArrayCreate_v2(CUarray* out, const CUDA_ARRAY_DESCRIPTOR* description) {
  ATP_CALL(kNeedsContext | kUnsafeInCapture, cost::kAlloc);
  if (!description) return CUDA_ERROR_INVALID_VALUE;
  CUDA_ARRAY3D_DESCRIPTOR d{};
  d.Width = description->Width;
  d.Height = description->Height;
  d.Format = description->Format;
  d.NumChannels = description->NumChannels;
  return CreateArray(call, out, d);
}

ATP_API cuArray3DGetDescriptor_v2(CUDA_ARRAY3D_DESCRIPTOR* description, CUarray handle) {
  ATP_CALL(kNeedsContext, cost::kCall);
  const Array* array = call.driver.arrays.Get(handle);
  if (!array) return CUDA_ERROR_INVALID_HANDLE;
  if (!description) return CUDA_ERROR_INVALID_VALUE;
  *description = array->description;
  return CUDA_SUCCESS;
}

ATP_API cuArrayGetDescriptor_v2(CUDA_ARRAY_DESCRIPTOR* description, CUarray handle) {
  ATP_CALL(kNeedsContext, cost::kCall);
  const Array* array = call.driver.arrays.Get(handle);
  if (!array) return CUDA_ERROR_INVALID_HANDLE;
  if (!description) return CUDA_ERROR_INVALID_VALUE;
  const CUDA_ARRAY3D_DESCRIPTOR& d = array->description;
  *description = {d.Width, d.Height, d.Format, d.NumChannels};
  return CUDA_SUCCESS;
}

ATP_API cuArrayDestroy(CUarray handle) {
  ATP_CALL(kNeedsContext | kUnsafeInCapture, cost::kFree);
  Array* array = call.driver.arrays.Get(handle);
  if (!array) return CUDA_ERROR_INVALID_HANDLE;
  if (const CUresult result = WaitForContext(call, *array->context); result != CUDA_SUCCESS)
    return result;
  DropArray(call.driver, call.lane(), array);
  return CUDA_SUCCESS;
}
