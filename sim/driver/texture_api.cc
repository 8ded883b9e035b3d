// SPDX-License-Identifier: Apache-2.0
// Texture and surface objects.
#include "sim/driver/array.h"
#include "sim/driver/driver.h"

namespace atp::sim {
namespace {

constexpr uint64_t kBaseAlignment = 512, kPitchAlignment = 32;  // as the device's attributes say

// Shape and element of a resource. `surface`: only arrays made for it.
CUresult ReadResource(Call& call, const CUDA_RESOURCE_DESC& resource, bool surface, Texture* to) {
  switch (resource.resType) {
    case CU_RESOURCE_TYPE_ARRAY: {
      const Array* array = call.driver.arrays.Get(resource.res.array.hArray);
      if (!array) return CUDA_ERROR_INVALID_HANDLE;
      const CUDA_ARRAY3D_DESCRIPTOR& d = array->description;
      if (surface && !(d.Flags & CUDA_ARRAY3D_SURFACE_LDST)) return CUDA_ERROR_INVALID_VALUE;
      ElementOf(d.Format, d.NumChannels, to);
      to->base = array->memory->begin;
      to->dimensions = d.Depth ? 3 : d.Height ? 2 : 1;
      to->extent[0] = static_cast<uint32_t>(d.Width);
      to->extent[1] = static_cast<uint32_t>(array->height());
      to->extent[2] = static_cast<uint32_t>(array->depth());
      to->row_pitch = array->row_pitch;
      to->slice_pitch = array->slice_pitch;
      return CUDA_SUCCESS;
    }
    case CU_RESOURCE_TYPE_LINEAR: {
      const auto& linear = resource.res.linear;
      if (surface || linear.devPtr % kBaseAlignment != 0 || linear.sizeInBytes == 0 ||
          !call.driver.memory().FindRange(linear.devPtr, linear.sizeInBytes))
        return CUDA_ERROR_INVALID_VALUE;
      if (!ElementOf(linear.format, linear.numChannels, to)) return CUDA_ERROR_NOT_SUPPORTED;
      to->base = linear.devPtr;
      to->is_buffer = true;
      to->extent[0] = static_cast<uint32_t>(linear.sizeInBytes / to->element_bytes());
      return CUDA_SUCCESS;
    }
    case CU_RESOURCE_TYPE_PITCH2D: {
      const auto& plane = resource.res.pitch2D;
      if (surface || plane.devPtr % kBaseAlignment != 0 || plane.width == 0 || plane.height == 0)
        return CUDA_ERROR_INVALID_VALUE;
      if (!ElementOf(plane.format, plane.numChannels, to)) return CUDA_ERROR_NOT_SUPPORTED;
      const uint64_t row = plane.width * to->element_bytes();
      if (plane.pitchInBytes % kPitchAlignment != 0 || plane.pitchInBytes < row ||
          !call.driver.memory().FindRange(plane.devPtr,
                                          (plane.height - 1) * plane.pitchInBytes + row))
        return CUDA_ERROR_INVALID_VALUE;
      to->base = plane.devPtr;
      to->dimensions = 2;
      to->extent[0] = static_cast<uint32_t>(plane.width);
      to->extent[1] = static_cast<uint32_t>(plane.height);
      to->row_pitch = plane.pitchInBytes;
      return CUDA_SUCCESS;
    }
    default:
      return CUDA_ERROR_NOT_SUPPORTED;  // mipmapped arrays
  }
}

bool IsInteger(const Texture& texture) {
  switch (texture.channel) {
    case Texture::Channel::kF16:
    case Texture::Channel::kF32:
      return false;
    case Texture::Channel::kU32:
    case Texture::Channel::kS32:
      return true;  // there are no fractions of 32-bit integers
    default:
      return texture.as_integer;
  }
}

CUresult ReadDescription(const CUDA_TEXTURE_DESC& from, Texture* to) {
  constexpr unsigned kKnown = CU_TRSF_READ_AS_INTEGER | CU_TRSF_NORMALIZED_COORDINATES |
                              CU_TRSF_DISABLE_TRILINEAR_OPTIMIZATION;
  if (from.flags & ~kKnown) return CUDA_ERROR_NOT_SUPPORTED;  // sRGB, cube maps
  for (int d = 0; d < 3; ++d) {
    if (from.addressMode[d] > CU_TR_ADDRESS_MODE_BORDER) return CUDA_ERROR_INVALID_VALUE;
    to->address[d] = static_cast<Texture::Address>(from.addressMode[d]);
  }
  to->linear = from.filterMode == CU_TR_FILTER_MODE_LINEAR;
  to->normalized = (from.flags & CU_TRSF_NORMALIZED_COORDINATES) != 0;
  to->as_integer = (from.flags & CU_TRSF_READ_AS_INTEGER) != 0;
  for (int c = 0; c < 4; ++c) to->border[c] = from.borderColor[c];
  return to->linear && IsInteger(*to) ? CUDA_ERROR_INVALID_VALUE : CUDA_SUCCESS;
}

uint64_t Add(Call& call, TextureObject object) {
  static uint64_t last = 0;  // under the driver's lock; 0 is nobody's handle
  object.context = call.context;
  call.driver.textures[++last] = object;
  return last;
}

const TextureObject* Find(Call& call, uint64_t handle, bool surface) {
  const auto found = call.driver.textures.find(handle);
  const bool is_there =
      found != call.driver.textures.end() && found->second.texture.is_surface == surface;
  return is_there ? &found->second : nullptr;
}

CUresult Destroy(Call& call, uint64_t handle, bool surface) {
  if (!Find(call, handle, surface)) return CUDA_ERROR_INVALID_VALUE;
  if (const CUresult result = WaitForContext(call, *call.context); result != CUDA_SUCCESS)
    return result;
  call.driver.textures.erase(handle);
  return CUDA_SUCCESS;
}

static_assert(static_cast<int>(Texture::Address::kBorder) == CU_TR_ADDRESS_MODE_BORDER);
static_assert(static_cast<int>(Texture::Address::kMirror) == CU_TR_ADDRESS_MODE_MIRROR);
static_assert(static_cast<int>(Texture::Address::kClamp) == CU_TR_ADDRESS_MODE_CLAMP);

}  // namespace
}  // namespace atp::sim

ATP_API cuTexObjectCreate(CUtexObject* out, const CUDA_RESOURCE_DESC* resource,
                          const CUDA_TEXTURE_DESC* description,
                          const CUDA_RESOURCE_VIEW_DESC* view) {
  ATP_CALL(kNeedsContext, cost::kCall);
  if (!out || !resource || !description) return CUDA_ERROR_INVALID_VALUE;
  if (view) return CUDA_ERROR_NOT_SUPPORTED;
  TextureObject object;
  object.resource = *resource;
  object.description = *description;
  CUresult result = ReadResource(call, *resource, false, &object.texture);
  if (result == CUDA_SUCCESS) result = ReadDescription(*description, &object.texture);
  if (result == CUDA_SUCCESS) *out = Add(call, object);
  return result;
}

ATP_API cuTexObjectDestroy(CUtexObject handle) {
  ATP_CALL(kNeedsContext, cost::kCall);
  return Destroy(call, handle, false);
}

ATP_API cuTexObjectGetResourceDesc(CUDA_RESOURCE_DESC* resource, CUtexObject handle) {
  ATP_CALL(kNeedsContext, cost::kCall);
  const TextureObject* object = Find(call, handle, false);
  if (!resource || !object) return CUDA_ERROR_INVALID_VALUE;
  *resource = object->resource;
  return CUDA_SUCCESS;
}

ATP_API cuTexObjectGetTextureDesc(CUDA_TEXTURE_DESC* description, CUtexObject handle) {
  ATP_CALL(kNeedsContext, cost::kCall);
  const TextureObject* object = Find(call, handle, false);
  if (!description || !object) return CUDA_ERROR_INVALID_VALUE;
  *description = object->description;
  return CUDA_SUCCESS;
}

ATP_API cuSurfObjectCreate(CUsurfObject* out, const CUDA_RESOURCE_DESC* resource) {
  ATP_CALL(kNeedsContext, cost::kCall);
  if (!out || !resource || resource->resType != CU_RESOURCE_TYPE_ARRAY)
    return CUDA_ERROR_INVALID_VALUE;
  TextureObject object;
  object.resource = *resource;
  object.texture.is_surface = true;
  const CUresult result = ReadResource(call, *resource, true, &object.texture);
  if (result == CUDA_SUCCESS) *out = Add(call, object);
  return result;
}

ATP_API cuSurfObjectDestroy(CUsurfObject handle) {
  ATP_CALL(kNeedsContext, cost::kCall);
  return Destroy(call, handle, true);
}

ATP_API cuSurfObjectGetResourceDesc(CUDA_RESOURCE_DESC* resource, CUsurfObject handle) {
  ATP_CALL(kNeedsContext, cost::kCall);
  const TextureObject* object = Find(call, handle, true);
  if (!resource || !object) return CUDA_ERROR_INVALID_VALUE;
  *resource = object->resource;
  return CUDA_SUCCESS;
}
