// SPDX-License-Identifier: Apache-2.0
// The files of this folder are compiled twice: once as they are, once with
// CUDA_API_PER_THREAD_DEFAULT_STREAM. In the second build the CUDA headers rename the functions
// (cudaMemcpy becomes cudaMemcpy_ptds) and InContext hands out the driver calls of the per-thread
// default stream. So each pair of entry points has one body.
#pragma once

#include "sim/runtime/registry.h"

namespace {

using namespace atp::simrt;  // NOLINT: these files only forward calls

template <typename Body>
cudaError_t InContext(Body body) {
  const cudaError_t bound = BindThread();
  if (bound != cudaSuccess) return Note(bound);
#ifdef CUDA_API_PER_THREAD_DEFAULT_STREAM
  return Note(body(GetProcess().driver->per_thread));
#else
  return Note(body(GetProcess().driver->legacy));
#endif
}

}  // namespace
