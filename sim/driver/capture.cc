// SPDX-License-Identifier: Apache-2.0
#include "sim/driver/capture.h"

#include <algorithm>

#include "sim/driver/driver.h"
#include "sim/driver/graph.h"

namespace atp::sim {
namespace {

// The captures under way; forgets those that have ended.
std::vector<std::shared_ptr<Capture>> Live(Driver& driver) {
  std::vector<std::shared_ptr<Capture>> live;
  std::erase_if(driver.captures, [](const auto& capture) { return capture.expired(); });
  for (const auto& weak : driver.captures) {
    if (auto capture = weak.lock()) live.push_back(std::move(capture));
  }
  return live;
}

// Whether a call of `thread` that is unsafe in captures conflicts with one ("stream capture modes"
// of cuThreadExchangeStreamCaptureMode in the CUDA driver API manual).
bool Conflicts(const Capture& capture, const ThreadState& thread) {
  if (thread.capture_mode == CU_STREAM_CAPTURE_MODE_RELAXED) return false;
  const bool own = capture.thread == &thread && capture.mode != CU_STREAM_CAPTURE_MODE_RELAXED;
  if (thread.capture_mode == CU_STREAM_CAPTURE_MODE_THREAD_LOCAL) return own;
  return own || capture.mode == CU_STREAM_CAPTURE_MODE_GLOBAL;
}

}  // namespace

CUresult CheckUnsafeInCapture(Driver& driver, const ThreadState& thread) {
  if (driver.captures.empty()) return CUDA_SUCCESS;
  CUresult result = CUDA_SUCCESS;
  for (const auto& capture : Live(driver)) {
    if (!Conflicts(*capture, thread)) continue;
    capture->invalidated = true;
    result = CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
  }
  return result;
}

CUresult CaptureTask(Call& call, Stream& stream, Task task) {
  Capture& capture = *stream.capture;
  if (capture.invalidated) return CUDA_ERROR_STREAM_CAPTURE_INVALIDATED;
  GraphNode* node = AddNode(call.driver, *capture.graph, std::move(task), stream.frontier);
  stream.frontier = {node};
  return CUDA_SUCCESS;
}

CUresult RefuseInCapture(Stream& stream) {
  stream.capture->invalidated = true;
  return CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
}

CUresult CheckImplicitDependency(Driver& driver, const Stream& stream) {
  if (!stream.is_legacy || driver.captures.empty()) return CUDA_SUCCESS;
  CUresult result = CUDA_SUCCESS;
  for (const auto& capture : Live(driver)) {
    const bool depends =
        std::any_of(capture->streams.begin(), capture->streams.end(), [&](const Stream* other) {
          return other->context == stream.context && other->blocks_with_legacy();
        });
    if (!depends) continue;
    capture->invalidated = true;
    result = CUDA_ERROR_STREAM_CAPTURE_IMPLICIT;
  }
  return result;
}

CUresult RecordInCapture(Stream& stream, Event& event) {
  if (stream.capture->invalidated) return CUDA_ERROR_STREAM_CAPTURE_INVALIDATED;
  event.capture = stream.capture;
  event.captured = stream.frontier;
  return CUDA_SUCCESS;
}

CUresult JoinCapture(Call&, Stream& stream, Event& event, const std::shared_ptr<Capture>& capture) {
  if (capture->invalidated) return CUDA_ERROR_STREAM_CAPTURE_INVALIDATED;
  if (stream.is_legacy) {
    capture->invalidated = true;
    return CUDA_ERROR_STREAM_CAPTURE_IMPLICIT;
  }
  if (stream.capture && stream.capture != capture) {
    stream.capture->invalidated = capture->invalidated = true;
    return CUDA_ERROR_STREAM_CAPTURE_MERGE;
  }
  if (!stream.capture) {
    stream.capture = capture;
    stream.frontier.clear();
    capture->streams.push_back(&stream);
  }
  for (GraphNode* node : event.captured) {
    if (std::find(stream.frontier.begin(), stream.frontier.end(), node) == stream.frontier.end())
      stream.frontier.push_back(node);
  }
  return CUDA_SUCCESS;
}

void AbandonCapture(Driver& driver, Capture& capture) {
  const std::vector<Stream*> streams = capture.streams;
  Graph* graph = capture.graph;
  const bool owned = capture.owns_graph;
  std::shared_ptr<Capture> keep = streams.empty() ? nullptr : streams.front()->capture;
  for (Stream* stream : streams) {
    stream->capture.reset();
    stream->frontier.clear();
  }
  if (owned) DestroyGraph(driver, graph);
}

}  // namespace atp::sim
