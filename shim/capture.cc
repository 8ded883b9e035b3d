// SPDX-License-Identifier: Apache-2.0
#include "shim/capture.h"

#include "shim/resolve.h"

namespace atp::shim {

std::atomic<int> g_open_captures{0};

bool IsCapturing(CUstream stream, bool per_thread) {
  const auto ask = per_thread && real().cuStreamIsCapturing_ptsz != nullptr
                       ? real().cuStreamIsCapturing_ptsz
                       : real().cuStreamIsCapturing;
  if (ask == nullptr) return false;
  CUstreamCaptureStatus status = CU_STREAM_CAPTURE_STATUS_NONE;
  const CUresult result = ask(stream, &status);
  // The legacy stream refuses the question while another stream records: a launch there would fail
  // by itself, and is not recorded.
  return result == CUDA_SUCCESS && status != CU_STREAM_CAPTURE_STATUS_NONE;
}

}  // namespace atp::shim
