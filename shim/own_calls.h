// SPDX-License-Identifier: Apache-2.0
// What our own driver calls inside the program's thread are bracketed by, so that the program does
// not notice them. Any thread, re-entry guard held.
#pragma once

#include "shim/resolve.h"

namespace atp::shim {

// The device's context is current for our calls, whatever the program has current.
class WithContext {
 public:
  explicit WithContext(CUcontext context) {
    CUcontext current = nullptr;
    real().cuCtxGetCurrent(&current);
    if (current != context && real().cuCtxPushCurrent_v2 != nullptr) {
      pushed_ = real().cuCtxPushCurrent_v2(context) == CUDA_SUCCESS;
    }
  }
  ~WithContext() {
    CUcontext popped;
    if (pushed_) real().cuCtxPopCurrent_v2(&popped);
  }
  WithContext(const WithContext&) = delete;
  WithContext& operator=(const WithContext&) = delete;

 private:
  bool pushed_ = false;
};

// In relaxed mode our calls do not invalidate a capture that some thread has open.
class Relaxed {
 public:
  Relaxed() { Exchange(); }
  ~Relaxed() { Exchange(); }
  Relaxed(const Relaxed&) = delete;
  Relaxed& operator=(const Relaxed&) = delete;

 private:
  void Exchange() {
    if (real().cuThreadExchangeStreamCaptureMode != nullptr) {
      real().cuThreadExchangeStreamCaptureMode(&mode_);
    }
  }
  CUstreamCaptureMode mode_ = CU_STREAM_CAPTURE_MODE_RELAXED;
};

}  // namespace atp::shim
