// SPDX-License-Identifier: Apache-2.0
// Bodies of the capture hooks: they only count, see capture.h.
#pragma once

#include "shim/capture.h"
#include "shim/resolve.h"

namespace atp::shim {

template <HookId id, typename... Arguments>
CUresult OnBeginCapture(Arguments... arguments) {
  // Counted before the call: a launch of another thread that races with it may ask once too often,
  // never too rarely.
  g_open_captures.fetch_add(1, std::memory_order_relaxed);
  const CUresult result = Row<id>::Real()(arguments...);
  if (result != CUDA_SUCCESS) g_open_captures.fetch_sub(1, std::memory_order_relaxed);
  return result;
}

// An end that reports an invalidated capture has ended it as well; only an end of what never began
// has not.
template <HookId id>
CUresult OnEndCapture(CUstream stream, CUgraph* graph) {
  const bool was_open = IsCapturing(stream, Row<id>::kPerThread);
  const CUresult result = Row<id>::Real()(stream, graph);
  if (was_open && !IsCapturing(stream, Row<id>::kPerThread)) {
    g_open_captures.fetch_sub(1, std::memory_order_relaxed);
  }
  return result;
}

}  // namespace atp::shim
