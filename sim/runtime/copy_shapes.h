// SPDX-License-Identifier: Apache-2.0
// Turns the runtime's descriptions of copies into the driver's.
#pragma once

#include "sim/runtime/context.h"

namespace atp::simrt {

// Two-dimensional copy between pointers. `kind` is not checked against the pointers, as NVIDIA's
// runtime does not.
CUDA_MEMCPY2D Copy2D(void* to, size_t to_pitch, const void* from, size_t from_pitch, size_t width,
                     size_t height, cudaMemcpyKind kind);

// Arrays are asked for the size of their elements.
Status Copy3D(const cudaMemcpy3DParms& from, CUDA_MEMCPY3D* to);
Status Copy3DPeer(const cudaMemcpy3DPeerParms& from, CUDA_MEMCPY3D_PEER* to);

}  // namespace atp::simrt
