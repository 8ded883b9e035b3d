// SPDX-License-Identifier: Apache-2.0
// The launch of an executable graph while launches are looked at: seen by the loop as what its
// nodes touch, or, when that is more than the device's room, launched node by node, so that memory
// can move between them. Any thread, re-entry guard held.
#pragma once

#include "shim/cuda_abi.h"

namespace atp::shim {

// `whole` launches it as the program asked.
CUresult LaunchGraph(CUgraphExec exec, CUstream stream, bool per_thread,
                     CUresult (*whole)(CUgraphExec, CUstream));

}  // namespace atp::shim
