// SPDX-License-Identifier: Apache-2.0
// Streams: waits, queries, callbacks, attributes.
#include "sim/runtime/stream_order/mode.h"

namespace {

// cudaStreamAddCallback passes a runtime error to the callback, the driver a driver error.
struct Callback {
  cudaStreamCallback_t function;
  void* user;
};

void CUDA_CB RunCallback(CUstream stream, CUresult result, void* user) {
  const Callback callback = *static_cast<Callback*>(user);
  delete static_cast<Callback*>(user);
  callback.function(stream, Status(result).error, callback.user);
}

}  // namespace

extern "C" {

cudaError_t cudaStreamSynchronize(cudaStream_t stream) {
  return InContext([&](const DriverCalls& cu) { return cu.StreamSynchronize(stream); });
}

cudaError_t cudaStreamQuery(cudaStream_t stream) {
  return InContext([&](const DriverCalls& cu) { return cu.StreamQuery(stream); });
}

cudaError_t cudaStreamWaitEvent(cudaStream_t stream, cudaEvent_t event, unsigned flags) {
  return InContext([&](const DriverCalls& cu) { return cu.StreamWaitEvent(stream, event, flags); });
}

cudaError_t cudaStreamAddCallback(cudaStream_t stream, cudaStreamCallback_t function, void* user,
                                  unsigned flags) {
  return InContext([&](const DriverCalls& cu) {
    auto* callback = new Callback{function, user};
    const CUresult result = cu.StreamAddCallback(stream, RunCallback, callback, flags);
    if (result != CUDA_SUCCESS) delete callback;
    return result;
  });
}

cudaError_t cudaStreamAttachMemAsync(cudaStream_t stream, void* pointer, size_t bytes,
                                     unsigned flags) {
  return InContext([&](const DriverCalls& cu) {
    return cu.StreamAttachMemAsync(stream, Address(pointer), bytes, flags);
  });
}

cudaError_t cudaStreamGetPriority(cudaStream_t stream, int* priority) {
  return InContext([&](const DriverCalls& cu) { return cu.StreamGetPriority(stream, priority); });
}

cudaError_t cudaStreamGetFlags(cudaStream_t stream, unsigned* flags) {
  return InContext([&](const DriverCalls& cu) { return cu.StreamGetFlags(stream, flags); });
}

cudaError_t cudaStreamGetId(cudaStream_t stream, unsigned long long* id) {
  return InContext([&](const DriverCalls& cu) { return cu.StreamGetId(stream, id); });
}

cudaError_t cudaStreamGetDevice(cudaStream_t stream, int* device) {
  return InContext([&](const DriverCalls& cu) -> Status {
    CUdevice handle = 0;
    const Status status = cu.StreamGetDevice(stream, &handle);
    for (const Device* d : GetProcess().devices) {
      if (status.ok() && d->handle == handle) *device = d->ordinal;
    }
    return status;
  });
}

static_assert(sizeof(cudaStreamAttrValue) == sizeof(CUstreamAttrValue));

cudaError_t cudaStreamCopyAttributes(cudaStream_t to, cudaStream_t from) {
  return InContext([&](const DriverCalls& cu) { return cu.StreamCopyAttributes(to, from); });
}

cudaError_t cudaStreamGetAttribute(cudaStream_t stream, cudaStreamAttrID attribute,
                                   cudaStreamAttrValue* value) {
  return InContext([&](const DriverCalls& cu) {
    return cu.StreamGetAttribute(stream, static_cast<CUstreamAttrID>(attribute),
                                 reinterpret_cast<CUstreamAttrValue*>(value));
  });
}

cudaError_t cudaStreamSetAttribute(cudaStream_t stream, cudaStreamAttrID attribute,
                                   const cudaStreamAttrValue* value) {
  return InContext([&](const DriverCalls& cu) {
    return cu.StreamSetAttribute(stream, static_cast<CUstreamAttrID>(attribute),
                                 reinterpret_cast<const CUstreamAttrValue*>(value));
  });
}

cudaError_t cudaEventRecord(cudaEvent_t event, cudaStream_t stream) {
  return InContext([&](const DriverCalls& cu) { return cu.EventRecord(event, stream); });
}

cudaError_t cudaEventRecordWithFlags(cudaEvent_t event, cudaStream_t stream, unsigned flags) {
  return InContext(
      [&](const DriverCalls& cu) { return cu.EventRecordWithFlags(event, stream, flags); });
}

}  // extern "C"
