// SPDX-License-Identifier: Apache-2.0
#include "shim/on_alloc.h"

#include "shim/loop.h"
#include "shim/settings.h"
#include "shim/slab.h"

namespace atp::shim {

CUresult PlacePitched(CUdeviceptr* address, size_t* pitch, size_t width, size_t height,
                      unsigned element_bytes) {
  constexpr size_t kPitch = 512;
  constexpr size_t kMostBytes = 1ull << 46;
  const bool plausible = address != nullptr && pitch != nullptr && width != 0 && height != 0 &&
                         width < kMostBytes && height < kMostBytes / (width + kPitch) &&
                         (element_bytes == 4 || element_bytes == 8 || element_bytes == 16);
  const size_t row = (width + kPitch - 1) / kPitch * kPitch;
  if (!plausible || row * height < Slabs::kMaxBytes) {
    const CUresult result = real().cuMemAllocPitch_v2(address, pitch, width, height, element_bytes);
    if (result == CUDA_SUCCESS) AccountNative(*address, *pitch * height, WhyNative::kSmall);
    return result;
  }
  const CUresult result = PlaceAllocation(address, row * height);
  if (result == CUDA_SUCCESS) *pitch = row;
  return result;
}

// The stream's work up to here must be over before the memory goes; later work may not use it. So
// wait for the stream, then free as usual.
CUresult ReleaseInStreamOrder(CUdeviceptr address, CUstream stream, bool per_thread) {
  if (CaptureOpen() && IsCapturing(stream, per_thread)) {
    return CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
  }
  if (Settings().policy == Policy::kLearned) {
    LoopBeforeWait(Wait::kStream, stream, per_thread, nullptr);
  }
  const auto wait = per_thread && real().cuStreamSynchronize_ptsz != nullptr
                        ? real().cuStreamSynchronize_ptsz
                        : real().cuStreamSynchronize;
  const CUresult result = wait(stream);
  return result == CUDA_SUCCESS ? ReleaseAllocation(address) : result;
}

}  // namespace atp::shim
