// SPDX-License-Identifier: Apache-2.0
// Interprocess handles. Memory of a process stays its own on the simulated machine: exporting says
// so, and refuses managed memory first, as a real driver does.
#include "sim/driver/driver.h"

ATP_API cuIpcGetMemHandle(CUipcMemHandle* handle, CUdeviceptr address) {
  ATP_CALL(kNeedsContext, cost::kCall);
  const Allocation* allocation = call.driver.memory().Find(address);
  if (!handle || !allocation || allocation->kind != MemoryKind::kDevice)
    return CUDA_ERROR_INVALID_VALUE;
  return CUDA_ERROR_NOT_SUPPORTED;
}

ATP_API cuIpcGetEventHandle(CUipcEventHandle* handle, CUevent event) {
  ATP_CALL(kNeedsContext, cost::kCall);
  if (!handle || !call.driver.events.Get(event)) return CUDA_ERROR_INVALID_VALUE;
  return CUDA_ERROR_NOT_SUPPORTED;
}
