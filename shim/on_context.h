// SPDX-License-Identifier: Apache-2.0
// Bodies of the hooks where the driver takes memory, streams or kernels back without a free.
#pragma once

#include "shim/functions.h"
#include "shim/loop.h"
#include "shim/placement.h"
#include "shim/pools.h"
#include "shim/populate.h"
#include "shim/resolve.h"
#include "shim/settings.h"
#include "shim/vmm.h"

namespace atp::shim {

// Also for cuCtxDetach, of which only the last one ends the context: what is forgotten earlier than
// needed is the driver's to judge, and is not hinted.
template <HookId id>
CUresult OnContextDestroy(CUcontext context) {
  if (context != nullptr) {
    ForgetRangesOf(context);
    ForgetMemoryOf(context, -1);
    ForgetContext(context);
    ForgetPopulateStream(context);
    ForgetFunctions();
  }
  return Row<id>::Real()(context);
}

// The primary context of a device: everything of ours there goes.
void ForgetPrimary(CUdevice device);

template <HookId id>
CUresult OnPrimaryReset(CUdevice device) {
  ForgetPrimary(device);
  return Row<id>::Real()(device);
}

// Only the last release ends the context, and the driver does not say beforehand which one that is.
template <HookId id>
CUresult OnPrimaryRelease(CUdevice device) {
  const CUresult result = Row<id>::Real()(device);
  unsigned flags = 0;
  int active = 1;
  if (result == CUDA_SUCCESS && real().cuDevicePrimaryCtxGetState != nullptr &&
      real().cuDevicePrimaryCtxGetState(device, &flags, &active) == CUDA_SUCCESS && active == 0) {
    ForgetPrimary(device);
  }
  return result;
}

template <HookId id>
CUresult OnStreamDestroy(CUstream stream) {
  if (Settings().policy == Policy::kLearned) LoopOnStreamDestroy(stream);
  ForgetStreamOfPieces(stream);
  return Row<id>::Real()(stream);
}

template <HookId id, typename Handle>
CUresult OnUnload(Handle handle) {
  const CUresult result = Row<id>::Real()(handle);
  ForgetFunctions();
  return result;
}

template <HookId id>
CUresult OnLibraryGetKernel(CUkernel* kernel, CUlibrary library, const char* name) {
  const CUresult result = Row<id>::Real()(kernel, library, name);
  if (result == CUDA_SUCCESS && kernel != nullptr) RememberKernel(*kernel);
  return result;
}

template <HookId id>
CUresult OnLibraryEnumerateKernels(CUkernel* kernels, unsigned count, CUlibrary library) {
  const CUresult result = Row<id>::Real()(kernels, count, library);
  for (unsigned i = 0; result == CUDA_SUCCESS && kernels != nullptr && i < count; ++i) {
    if (kernels[i] != nullptr) RememberKernel(kernels[i]);
  }
  return result;
}

}  // namespace atp::shim
