// SPDX-License-Identifier: Apache-2.0
// Texture and surface objects.
#include <algorithm>

#include "sim/runtime/arrays.h"

namespace {

using namespace atp::simrt;  // NOLINT: this file only forwards calls

// `element` is what a fetch reads.
Status Convert(const DriverCalls& cu, const cudaResourceDesc& from, CUDA_RESOURCE_DESC* to,
               cudaChannelFormatDesc* element) {
  *to = {};
  switch (from.resType) {
    case cudaResourceTypeArray: {
      CUDA_ARRAY3D_DESCRIPTOR d = {};
      const Status status = Describe(cu, from.res.array.array, &d);
      to->resType = CU_RESOURCE_TYPE_ARRAY;
      to->res.array.hArray = Handle(from.res.array.array);
      if (status.ok()) *element = FromFormat(d.Format, d.NumChannels);
      return status;
    }
    case cudaResourceTypeLinear: {
      const auto& linear = from.res.linear;
      to->resType = CU_RESOURCE_TYPE_LINEAR;
      to->res.linear.devPtr = Address(linear.devPtr);
      to->res.linear.sizeInBytes = linear.sizeInBytes;
      *element = linear.desc;
      return ToFormat(linear.desc, &to->res.linear.format, &to->res.linear.numChannels);
    }
    case cudaResourceTypePitch2D: {
      const auto& plane = from.res.pitch2D;
      to->resType = CU_RESOURCE_TYPE_PITCH2D;
      to->res.pitch2D.devPtr = Address(plane.devPtr);
      to->res.pitch2D.width = plane.width;
      to->res.pitch2D.height = plane.height;
      to->res.pitch2D.pitchInBytes = plane.pitchInBytes;
      *element = plane.desc;
      return ToFormat(plane.desc, &to->res.pitch2D.format, &to->res.pitch2D.numChannels);
    }
    default:
      return cudaErrorNotSupported;
  }
}

cudaResourceDesc Convert(const CUDA_RESOURCE_DESC& from) {
  cudaResourceDesc to = {};
  switch (from.resType) {
    case CU_RESOURCE_TYPE_LINEAR:
      to.resType = cudaResourceTypeLinear;
      to.res.linear.devPtr = reinterpret_cast<void*>(from.res.linear.devPtr);
      to.res.linear.sizeInBytes = from.res.linear.sizeInBytes;
      to.res.linear.desc = FromFormat(from.res.linear.format, from.res.linear.numChannels);
      break;
    case CU_RESOURCE_TYPE_PITCH2D:
      to.resType = cudaResourceTypePitch2D;
      to.res.pitch2D.devPtr = reinterpret_cast<void*>(from.res.pitch2D.devPtr);
      to.res.pitch2D.width = from.res.pitch2D.width;
      to.res.pitch2D.height = from.res.pitch2D.height;
      to.res.pitch2D.pitchInBytes = from.res.pitch2D.pitchInBytes;
      to.res.pitch2D.desc = FromFormat(from.res.pitch2D.format, from.res.pitch2D.numChannels);
      break;
    default:
      to.resType = cudaResourceTypeArray;
      to.res.array.array = reinterpret_cast<cudaArray_t>(from.res.array.hArray);
  }
  return to;
}

Status Convert(const cudaTextureDesc& from, const cudaChannelFormatDesc& element,
               CUDA_TEXTURE_DESC* to) {
  const bool is_float = element.f == cudaChannelFormatKindFloat;
  const bool fractions = from.readMode == cudaReadModeNormalizedFloat;
  if (fractions && (is_float || element.x == 32)) return cudaErrorInvalidNormSetting;
  if (from.filterMode == cudaFilterModeLinear && !is_float && !fractions)
    return cudaErrorInvalidFilterSetting;
  *to = {};
  for (int d = 0; d < 3; ++d) to->addressMode[d] = static_cast<CUaddress_mode>(from.addressMode[d]);
  to->filterMode = static_cast<CUfilter_mode>(from.filterMode);
  if (!fractions && !is_float) to->flags |= CU_TRSF_READ_AS_INTEGER;
  if (from.normalizedCoords) to->flags |= CU_TRSF_NORMALIZED_COORDINATES;
  if (from.sRGB) to->flags |= CU_TRSF_SRGB;
  if (from.disableTrilinearOptimization) to->flags |= CU_TRSF_DISABLE_TRILINEAR_OPTIMIZATION;
  if (from.seamlessCubemap) to->flags |= CU_TRSF_SEAMLESS_CUBEMAP;
  to->maxAnisotropy = from.maxAnisotropy;
  to->mipmapFilterMode = static_cast<CUfilter_mode>(from.mipmapFilterMode);
  to->mipmapLevelBias = from.mipmapLevelBias;
  to->minMipmapLevelClamp = from.minMipmapLevelClamp;
  to->maxMipmapLevelClamp = from.maxMipmapLevelClamp;
  std::copy_n(from.borderColor, 4, to->borderColor);
  return cudaSuccess;
}

cudaTextureDesc Convert(const CUDA_TEXTURE_DESC& from) {
  cudaTextureDesc to = {};
  for (int d = 0; d < 3; ++d)
    to.addressMode[d] = static_cast<cudaTextureAddressMode>(from.addressMode[d]);
  to.filterMode = static_cast<cudaTextureFilterMode>(from.filterMode);
  to.readMode = (from.flags & CU_TRSF_READ_AS_INTEGER) != 0 ? cudaReadModeElementType
                                                            : cudaReadModeNormalizedFloat;
  to.normalizedCoords = (from.flags & CU_TRSF_NORMALIZED_COORDINATES) != 0;
  to.maxAnisotropy = from.maxAnisotropy;
  to.mipmapFilterMode = static_cast<cudaTextureFilterMode>(from.mipmapFilterMode);
  to.mipmapLevelBias = from.mipmapLevelBias;
  to.minMipmapLevelClamp = from.minMipmapLevelClamp;
  to.maxMipmapLevelClamp = from.maxMipmapLevelClamp;
  to.disableTrilinearOptimization = (from.flags & CU_TRSF_DISABLE_TRILINEAR_OPTIMIZATION) != 0;
  std::copy_n(from.borderColor, 4, to.borderColor);
  return to;
}

}  // namespace

extern "C" {

cudaError_t cudaCreateTextureObject(cudaTextureObject_t* object, const cudaResourceDesc* resource,
                                    const cudaTextureDesc* description,
                                    const cudaResourceViewDesc* view) {
  return WithContext([&](const DriverCalls& cu) -> Status {
    if (!object || !resource || !description) return cudaErrorInvalidValue;
    if (view) return cudaErrorNotSupported;
    CUDA_RESOURCE_DESC r;
    CUDA_TEXTURE_DESC d;
    cudaChannelFormatDesc element = {};
    Status status = Convert(cu, *resource, &r, &element);
    if (status.ok()) status = Convert(*description, element, &d);
    return status.ok() ? Status(cu.TexObjectCreate(object, &r, &d, nullptr)) : status;
  });
}

cudaError_t cudaDestroyTextureObject(cudaTextureObject_t object) {
  return WithContext([&](const DriverCalls& cu) -> Status {
    if (object == 0) return cudaSuccess;
    return cu.TexObjectDestroy(object);
  });
}

cudaError_t cudaGetTextureObjectResourceDesc(cudaResourceDesc* resource,
                                             cudaTextureObject_t object) {
  return WithContext([&](const DriverCalls& cu) {
    CUDA_RESOURCE_DESC r = {};
    const Status status = cu.TexObjectGetResourceDesc(&r, object);
    if (status.ok()) *resource = Convert(r);
    return status;
  });
}

cudaError_t cudaGetTextureObjectTextureDesc(cudaTextureDesc* description,
                                            cudaTextureObject_t object) {
  return WithContext([&](const DriverCalls& cu) {
    CUDA_TEXTURE_DESC d = {};
    CUDA_RESOURCE_DESC r = {};
    Status status = cu.TexObjectGetTextureDesc(&d, object);
    if (status.ok()) status = cu.TexObjectGetResourceDesc(&r, object);
    if (!status.ok()) return status;
    *description = Convert(d);
    // Floats are read as they are, whatever the flags say.
    cudaChannelFormatDesc element = {};
    status = Convert(cu, Convert(r), &r, &element);
    if (element.f == cudaChannelFormatKindFloat) description->readMode = cudaReadModeElementType;
    return status;
  });
}

cudaError_t cudaCreateSurfaceObject(cudaSurfaceObject_t* object, const cudaResourceDesc* resource) {
  return WithContext([&](const DriverCalls& cu) -> Status {
    if (!object || !resource) return cudaErrorInvalidValue;
    CUDA_RESOURCE_DESC r;
    cudaChannelFormatDesc element = {};
    const Status status = Convert(cu, *resource, &r, &element);
    return status.ok() ? Status(cu.SurfObjectCreate(object, &r)) : status;
  });
}

cudaError_t cudaDestroySurfaceObject(cudaSurfaceObject_t object) {
  return WithContext([&](const DriverCalls& cu) -> Status {
    if (object == 0) return cudaSuccess;
    return cu.SurfObjectDestroy(object);
  });
}

cudaError_t cudaGetSurfaceObjectResourceDesc(cudaResourceDesc* resource,
                                             cudaSurfaceObject_t object) {
  return WithContext([&](const DriverCalls& cu) {
    CUDA_RESOURCE_DESC r = {};
    const Status status = cu.SurfObjectGetResourceDesc(&r, object);
    if (status.ok()) *resource = Convert(r);
    return status;
  });
}

}  // extern "C"
