// SPDX-License-Identifier: Apache-2.0
// Stream capture, and launching graphs.
#include "sim/runtime/stream_order/mode.h"

namespace {
static_assert(sizeof(cudaGraphEdgeData) == sizeof(CUgraphEdgeData));
static_assert(sizeof(cudaGraphInstantiateParams) == sizeof(CUDA_GRAPH_INSTANTIATE_PARAMS));
}  // namespace

extern "C" {

cudaError_t cudaStreamBeginCapture(cudaStream_t stream, cudaStreamCaptureMode mode) {
  return InContext([&](const DriverCalls& cu) {
    return cu.StreamBeginCapture(stream, static_cast<CUstreamCaptureMode>(mode));
  });
}

cudaError_t cudaStreamBeginCaptureToGraph(cudaStream_t stream, cudaGraph_t graph,
                                          const cudaGraphNode_t* dependencies,
                                          const cudaGraphEdgeData* edges, size_t count,
                                          cudaStreamCaptureMode mode) {
  return InContext([&](const DriverCalls& cu) {
    return cu.StreamBeginCaptureToGraph(stream, graph, dependencies,
                                        reinterpret_cast<const CUgraphEdgeData*>(edges), count,
                                        static_cast<CUstreamCaptureMode>(mode));
  });
}

cudaError_t cudaStreamEndCapture(cudaStream_t stream, cudaGraph_t* graph) {
  return InContext([&](const DriverCalls& cu) { return cu.StreamEndCapture(stream, graph); });
}

cudaError_t cudaStreamIsCapturing(cudaStream_t stream, cudaStreamCaptureStatus* status) {
  return InContext([&](const DriverCalls& cu) {
    auto answer = CU_STREAM_CAPTURE_STATUS_NONE;
    const CUresult result = cu.StreamIsCapturing(stream, &answer);
    *status = static_cast<cudaStreamCaptureStatus>(answer);
    return result;
  });
}

cudaError_t cudaStreamGetCaptureInfo(cudaStream_t stream, cudaStreamCaptureStatus* status,
                                     unsigned long long* id, cudaGraph_t* graph,
                                     const cudaGraphNode_t** dependencies,
                                     const cudaGraphEdgeData** edges, size_t* count) {
  return InContext([&](const DriverCalls& cu) {
    auto answer = CU_STREAM_CAPTURE_STATUS_NONE;
    cuuint64_t sequence = 0;
    const CUresult result =
        cu.StreamGetCaptureInfo(stream, &answer, &sequence, graph, dependencies,
                                reinterpret_cast<const CUgraphEdgeData**>(edges), count);
    *status = static_cast<cudaStreamCaptureStatus>(answer);
    if (id) *id = sequence;
    return result;
  });
}

cudaError_t cudaStreamUpdateCaptureDependencies(cudaStream_t stream, cudaGraphNode_t* dependencies,
                                                const cudaGraphEdgeData* edges, size_t count,
                                                unsigned flags) {
  return InContext([&](const DriverCalls& cu) {
    return cu.StreamUpdateCaptureDependencies(
        stream, dependencies, reinterpret_cast<const CUgraphEdgeData*>(edges), count, flags);
  });
}

cudaError_t cudaGraphInstantiateWithParams(cudaGraphExec_t* exec, cudaGraph_t graph,
                                           cudaGraphInstantiateParams* params) {
  return InContext([&](const DriverCalls& cu) {
    return cu.GraphInstantiateWithParams(exec, graph,
                                         reinterpret_cast<CUDA_GRAPH_INSTANTIATE_PARAMS*>(params));
  });
}

cudaError_t cudaGraphUpload(cudaGraphExec_t exec, cudaStream_t stream) {
  return InContext([&](const DriverCalls& cu) { return cu.GraphUpload(exec, stream); });
}

cudaError_t cudaGraphLaunch(cudaGraphExec_t exec, cudaStream_t stream) {
  return InContext([&](const DriverCalls& cu) { return cu.GraphLaunch(exec, stream); });
}

}  // extern "C"
