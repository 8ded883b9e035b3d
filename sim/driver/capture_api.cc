// SPDX-License-Identifier: Apache-2.0
// Stream capture calls.
#include <algorithm>
#include <set>

#include "sim/driver/capture.h"
#include "sim/driver/driver.h"
#include "sim/driver/graph.h"

namespace atp::sim {
namespace {

CUresult Begin(Call& call, CUstream handle, CUstreamCaptureMode mode, Graph* graph,
               std::vector<GraphNode*> after) {
  Stream* stream = nullptr;
  if (const CUresult result = ResolveStream(call, handle, &stream); result != CUDA_SUCCESS)
    return result;
  if (mode < CU_STREAM_CAPTURE_MODE_GLOBAL || mode > CU_STREAM_CAPTURE_MODE_RELAXED)
    return CUDA_ERROR_INVALID_VALUE;
  if (stream->is_legacy) return CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
  if (IsCapturing(*stream)) return CUDA_ERROR_ILLEGAL_STATE;
  auto capture = std::make_shared<Capture>();
  capture->id = call.driver.NextNumber();
  capture->mode = mode;
  capture->thread = &call.thread;
  capture->origin = stream;
  capture->owns_graph = graph == nullptr;
  capture->graph = graph ? graph : call.driver.graphs.Add(new Graph);
  capture->streams = {stream};
  stream->capture = capture;
  stream->frontier = std::move(after);
  call.driver.captures.push_back(capture);
  return CUDA_SUCCESS;
}

// True when every stream that joined has been joined back: its last nodes lead to the origin's
// frontier.
bool IsJoined(const Capture& capture) {
  std::set<const GraphNode*> reached;
  std::vector<const GraphNode*> open(capture.origin->frontier.begin(),
                                     capture.origin->frontier.end());
  while (!open.empty()) {
    const GraphNode* node = open.back();
    open.pop_back();
    if (!reached.insert(node).second) continue;
    open.insert(open.end(), node->dependencies.begin(), node->dependencies.end());
  }
  for (const Stream* stream : capture.streams) {
    for (const GraphNode* node : stream->frontier) {
      if (!reached.count(node)) return false;
    }
  }
  return true;
}

CUresult Info(Call& call, CUstream handle, CUstreamCaptureStatus* status, cuuint64_t* id,
              CUgraph* graph, const CUgraphNode** dependencies, const CUgraphEdgeData** edges,
              size_t* count) {
  if (!status) return CUDA_ERROR_INVALID_VALUE;
  Stream* stream = nullptr;
  if (const CUresult result = ResolveStream(call, handle, &stream); result != CUDA_SUCCESS)
    return result;
  if (const CUresult result = CheckImplicitDependency(call.driver, *stream); result != CUDA_SUCCESS)
    return result;
  if (count) *count = 0;
  if (edges) *edges = nullptr;
  if (!IsCapturing(*stream)) {
    *status = CU_STREAM_CAPTURE_STATUS_NONE;
    return CUDA_SUCCESS;
  }
  const Capture& capture = *stream->capture;
  *status =
      capture.invalidated ? CU_STREAM_CAPTURE_STATUS_INVALIDATED : CU_STREAM_CAPTURE_STATUS_ACTIVE;
  if (capture.invalidated) return CUDA_SUCCESS;
  if (id) *id = capture.id;
  if (graph) *graph = reinterpret_cast<CUgraph>(capture.graph);
  if (dependencies) *dependencies = reinterpret_cast<const CUgraphNode*>(stream->frontier.data());
  if (count) *count = stream->frontier.size();
  return CUDA_SUCCESS;
}

CUresult ToNodes(Call& call, const CUgraphNode* handles, size_t count,
                 std::vector<GraphNode*>* nodes) {
  if (count && !handles) return CUDA_ERROR_INVALID_VALUE;
  for (size_t i = 0; i < count; ++i) {
    GraphNode* node = call.driver.nodes.Get(handles[i]);
    if (!node) return CUDA_ERROR_INVALID_VALUE;
    nodes->push_back(node);
  }
  return CUDA_SUCCESS;
}

CUresult UpdateDependencies(Call& call, CUstream handle, CUgraphNode* handles, size_t count,
                            unsigned flags) {
  Stream* stream = nullptr;
  if (const CUresult result = ResolveStream(call, handle, &stream); result != CUDA_SUCCESS)
    return result;
  if (!IsCapturing(*stream)) return CUDA_ERROR_ILLEGAL_STATE;
  if (flags > CU_STREAM_SET_CAPTURE_DEPENDENCIES) return CUDA_ERROR_INVALID_VALUE;
  std::vector<GraphNode*> nodes;
  if (const CUresult result = ToNodes(call, handles, count, &nodes); result != CUDA_SUCCESS)
    return result;
  if (flags == CU_STREAM_SET_CAPTURE_DEPENDENCIES) stream->frontier.clear();
  stream->frontier.insert(stream->frontier.end(), nodes.begin(), nodes.end());
  return CUDA_SUCCESS;
}

}  // namespace
}  // namespace atp::sim

ATP_API cuStreamBeginCapture_v2(CUstream stream, CUstreamCaptureMode mode) {
  ATP_CALL(kNeedsContext, cost::kCall);
  return Begin(call, stream, mode, nullptr, {});
}

ATP_API cuStreamBeginCapture(CUstream stream) {
  return cuStreamBeginCapture_v2(stream, CU_STREAM_CAPTURE_MODE_GLOBAL);
}

ATP_API cuStreamBeginCaptureToGraph(CUstream stream, CUgraph handle,
                                    const CUgraphNode* dependencies, const CUgraphEdgeData*,
                                    size_t count, CUstreamCaptureMode mode) {
  ATP_CALL(kNeedsContext, cost::kCall);
  Graph* graph = call.driver.graphs.Get(handle);
  if (!graph) return CUDA_ERROR_INVALID_VALUE;
  std::vector<GraphNode*> after;
  if (const CUresult result = ToNodes(call, dependencies, count, &after); result != CUDA_SUCCESS)
    return result;
  return Begin(call, stream, mode, graph, std::move(after));
}

ATP_API cuStreamEndCapture(CUstream handle, CUgraph* out) {
  ATP_CALL(kNeedsContext, cost::kCall);
  Stream* stream = nullptr;
  if (const CUresult result = ResolveStream(call, handle, &stream); result != CUDA_SUCCESS)
    return result;
  if (!out) return CUDA_ERROR_INVALID_VALUE;
  *out = nullptr;
  if (!IsCapturing(*stream)) return CUDA_ERROR_ILLEGAL_STATE;
  const std::shared_ptr<Capture> capture = stream->capture;
  if (capture->origin != stream) return CUDA_ERROR_STREAM_CAPTURE_UNMATCHED;
  if (capture->mode != CU_STREAM_CAPTURE_MODE_RELAXED && capture->thread != &call.thread)
    return CUDA_ERROR_STREAM_CAPTURE_WRONG_THREAD;
  CUresult result = capture->invalidated ? CUDA_ERROR_STREAM_CAPTURE_INVALIDATED : CUDA_SUCCESS;
  if (result == CUDA_SUCCESS && !IsJoined(*capture)) result = CUDA_ERROR_STREAM_CAPTURE_UNJOINED;
  if (result != CUDA_SUCCESS) {
    AbandonCapture(call.driver, *capture);
    return result;
  }
  for (Stream* joined : capture->streams) {
    joined->capture.reset();
    joined->frontier.clear();
  }
  *out = reinterpret_cast<CUgraph>(capture->graph);
  return CUDA_SUCCESS;
}

// Asking about the legacy stream while a stream that waits for it captures is an error, as any use
// of it.
ATP_API cuStreamIsCapturing(CUstream stream, CUstreamCaptureStatus* status) {
  ATP_CALL(kNeedsContext, cost::kCall);
  return Info(call, stream, status, nullptr, nullptr, nullptr, nullptr, nullptr);
}

ATP_API cuStreamGetCaptureInfo_v3(CUstream stream, CUstreamCaptureStatus* status, cuuint64_t* id,
                                  CUgraph* graph, const CUgraphNode** dependencies,
                                  const CUgraphEdgeData** edges, size_t* count) {
  ATP_CALL(kNeedsContext, cost::kCall);
  return Info(call, stream, status, id, graph, dependencies, edges, count);
}

ATP_API cuStreamGetCaptureInfo_v2(CUstream stream, CUstreamCaptureStatus* status, cuuint64_t* id,
                                  CUgraph* graph, const CUgraphNode** dependencies, size_t* count) {
  ATP_CALL(kNeedsContext, cost::kCall);
  return Info(call, stream, status, id, graph, dependencies, nullptr, count);
}

ATP_API cuStreamGetCaptureInfo(CUstream stream, CUstreamCaptureStatus* status, cuuint64_t* id) {
  ATP_CALL(kNeedsContext, cost::kCall);
  return Info(call, stream, status, id, nullptr, nullptr, nullptr, nullptr);
}

ATP_API cuStreamUpdateCaptureDependencies(CUstream stream, CUgraphNode* nodes, size_t count,
                                          unsigned flags) {
  ATP_CALL(kNeedsContext, cost::kCall);
  return UpdateDependencies(call, stream, nodes, count, flags);
}

ATP_API cuStreamUpdateCaptureDependencies_v2(CUstream stream, CUgraphNode* nodes,
                                             const CUgraphEdgeData*, size_t count, unsigned flags) {
  ATP_CALL(kNeedsContext, cost::kCall);
  return UpdateDependencies(call, stream, nodes, count, flags);
}

ATP_API cuThreadExchangeStreamCaptureMode(CUstreamCaptureMode* mode) {
  ATP_CALL(kNeedsInit, cost::kCall);
  if (!mode || *mode < CU_STREAM_CAPTURE_MODE_GLOBAL || *mode > CU_STREAM_CAPTURE_MODE_RELAXED)
    return CUDA_ERROR_INVALID_VALUE;
  std::swap(*mode, call.thread.capture_mode);
  return CUDA_SUCCESS;
}
