// SPDX-License-Identifier: Apache-2.0
// Bodies of the hooks where the program's thread blocks: the loop hears of it first, so that hints
// go on while the thread is gone.
#pragma once

#include "shim/loop.h"
#include "shim/placement.h"
#include "shim/resolve.h"

namespace atp::shim {

template <HookId id>
CUresult OnStreamWait(CUstream stream) {
  if (Watching()) LoopBeforeWait(Wait::kStream, stream, Row<id>::kPerThread, nullptr);
  return Row<id>::Real()(stream);
}

template <HookId id>
CUresult OnEventWait(CUevent event) {
  if (Watching()) LoopBeforeWait(Wait::kEvent, nullptr, false, event);
  return Row<id>::Real()(event);
}

template <HookId id>
CUresult OnContextWait() {
  if (Watching()) LoopBeforeWait(Wait::kContext, nullptr, false, nullptr);
  return Row<id>::Real()();
}

template <HookId id>
CUresult OnContextWaitV2(CUcontext context) {
  if (Watching()) LoopBeforeWait(Wait::kContext, nullptr, false, nullptr);
  return Row<id>::Real()(context);
}

}  // namespace atp::shim
