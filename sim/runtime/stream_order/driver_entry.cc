// SPDX-License-Identifier: Apache-2.0
// Driver entry points for programs that ask the runtime for them.
#include "sim/runtime/stream_order/mode.h"

namespace {

cudaError_t Get(const char* symbol, void** pointer, unsigned version, unsigned long long flags,
                cudaDriverEntryPointQueryResult* result) {
  const Process& process = GetProcess();
  if (process.status != cudaSuccess) return Note(process.status);
  if (!symbol || !pointer) return Note(cudaErrorInvalidValue);
#ifdef CUDA_API_PER_THREAD_DEFAULT_STREAM
  if (flags == cudaEnableDefault) flags = cudaEnablePerThreadDefaultStream;
#endif
  auto found = CU_GET_PROC_ADDRESS_SYMBOL_NOT_FOUND;
  const Status status =
      process.driver->get(symbol, pointer, static_cast<int>(version), flags, &found);
  if (!result) return Note(status);
  *result = static_cast<cudaDriverEntryPointQueryResult>(found);
  // With a place for the answer, "no such symbol" is an answer and not an error.
  return Note(status.error == cudaErrorSymbolNotFound ? Status(cudaSuccess) : status);
}

}  // namespace

extern "C" {

cudaError_t cudaGetDriverEntryPoint(const char* symbol, void** pointer, unsigned long long flags,
                                    cudaDriverEntryPointQueryResult* result) {
  return Get(symbol, pointer, CUDART_VERSION, flags, result);
}

cudaError_t cudaGetDriverEntryPointByVersion(const char* symbol, void** pointer, unsigned version,
                                             unsigned long long flags,
                                             cudaDriverEntryPointQueryResult* result) {
  return Get(symbol, pointer, version, flags, result);
}

}  // extern "C"
