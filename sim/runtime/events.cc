// SPDX-License-Identifier: Apache-2.0
// Events, and the life of streams. Work put into streams is in stream_order/.
#include "sim/runtime/context.h"

namespace {
using namespace atp::simrt;  // NOLINT: this file only forwards calls
}

extern "C" {

cudaError_t cudaEventCreate(cudaEvent_t* event) {
  return WithContext([&](const DriverCalls& cu) { return cu.EventCreate(event, 0); });
}

cudaError_t cudaEventCreateWithFlags(cudaEvent_t* event, unsigned flags) {
  return WithContext([&](const DriverCalls& cu) { return cu.EventCreate(event, flags); });
}

cudaError_t cudaEventQuery(cudaEvent_t event) {
  return WithContext([&](const DriverCalls& cu) { return cu.EventQuery(event); });
}

cudaError_t cudaEventSynchronize(cudaEvent_t event) {
  return WithContext([&](const DriverCalls& cu) { return cu.EventSynchronize(event); });
}

cudaError_t cudaEventDestroy(cudaEvent_t event) {
  return WithContext([&](const DriverCalls& cu) { return cu.EventDestroy(event); });
}

cudaError_t cudaEventElapsedTime(float* milliseconds, cudaEvent_t start, cudaEvent_t end) {
  return WithContext(
      [&](const DriverCalls& cu) { return cu.EventElapsedTime(milliseconds, start, end); });
}

cudaError_t cudaStreamCreate(cudaStream_t* stream) {
  return WithContext([&](const DriverCalls& cu) { return cu.StreamCreate(stream, 0); });
}

cudaError_t cudaStreamCreateWithFlags(cudaStream_t* stream, unsigned flags) {
  return WithContext([&](const DriverCalls& cu) { return cu.StreamCreate(stream, flags); });
}

cudaError_t cudaStreamCreateWithPriority(cudaStream_t* stream, unsigned flags, int priority) {
  return WithContext(
      [&](const DriverCalls& cu) { return cu.StreamCreateWithPriority(stream, flags, priority); });
}

cudaError_t cudaStreamDestroy(cudaStream_t stream) {
  return WithContext([&](const DriverCalls& cu) { return cu.StreamDestroy(stream); });
}

cudaError_t cudaThreadExchangeStreamCaptureMode(cudaStreamCaptureMode* mode) {
  return WithContext([&](const DriverCalls& cu) {
    return cu.ThreadExchangeStreamCaptureMode(reinterpret_cast<CUstreamCaptureMode*>(mode));
  });
}

}  // extern "C"
