// SPDX-License-Identifier: Apache-2.0
// The loop of a build without the period detector (policy/period.cc): hooks and placement work, no
// hint is ever given.
#include "shim/loop.h"

namespace atp::shim {

void LoopStart(int, CUcontext) {}
void LoopOnAlloc(Allocation*) {}
void LoopOnFree(Allocation*) {}
void LoopBeforeLaunch(const LaunchView&) {}
void LoopAfterLaunch(const LaunchView&) {}
void LoopBeforeWait(Wait, CUstream, bool, CUevent) {}
void LoopOnStreamDestroy(CUstream) {}
void LoopStop() {}

}  // namespace atp::shim
