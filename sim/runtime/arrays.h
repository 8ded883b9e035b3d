// SPDX-License-Identifier: Apache-2.0
// Turns the runtime's descriptions of arrays, textures and surfaces into the driver's, and back.
#pragma once

#include "sim/runtime/context.h"

namespace atp::simrt {

// cudaErrorInvalidChannelDescriptor for elements that no array has.
Status ToFormat(const cudaChannelFormatDesc& from, CUarray_format* format, unsigned* channels);
cudaChannelFormatDesc FromFormat(CUarray_format format, unsigned channels);

Status Describe(const DriverCalls& cu, cudaArray_const_t array, CUDA_ARRAY3D_DESCRIPTOR* to);
// Bytes of an element of an array.
Status ElementBytes(const DriverCalls& cu, cudaArray_const_t array, size_t* bytes);

inline CUarray Handle(cudaArray_const_t array) {
  return reinterpret_cast<CUarray>(const_cast<cudaArray_t>(array));
}

}  // namespace atp::simrt
