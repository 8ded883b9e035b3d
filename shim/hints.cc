// SPDX-License-Identifier: Apache-2.0
#include "shim/hints.h"

#include <chrono>

#include "shim/own_calls.h"
#include "shim/settings.h"

namespace atp::shim {
bool DriverHints::Open() {
  WithContext current(context_);
  Relaxed relaxed;
  for (CUstream& stream : evict_streams_) {
    if (real().cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING) != CUDA_SUCCESS) return false;
  }
  for (CUstream& stream : fetch_streams_) {
    if (real().cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING) != CUDA_SUCCESS) return false;
  }
  return real().cuStreamCreate(&clock_stream_, CU_STREAM_NON_BLOCKING) == CUDA_SUCCESS;
}

CUresult DriverHints::Prefetch(uint64_t address, uint64_t bytes, bool to_device, CUstream stream) {
  if (real().cuMemPrefetchAsync_v2 != nullptr) {
    CUmemLocation location{};
    location.type = to_device ? CU_MEM_LOCATION_TYPE_DEVICE : CU_MEM_LOCATION_TYPE_HOST;
    location.id = to_device ? device_ : 0;
    return real().cuMemPrefetchAsync_v2(address, bytes, location, 0, stream);
  }
  if (real().cuMemPrefetchAsync == nullptr) return CUDA_ERROR_NOT_SUPPORTED;
  return real().cuMemPrefetchAsync(address, bytes, to_device ? device_ : CU_DEVICE_CPU, stream);
}

CUresult DriverHints::Evict(unsigned mover, uint64_t address, uint64_t bytes) {
  if (Settings().Disabled(kDisableEvict)) return CUDA_SUCCESS;  // the driver makes room by itself
  WithContext current(context_);
  Relaxed relaxed;
  // On an idle stream the driver returns when the pages have left (it maps them on the host
  // before); on a busy one it would only hand the call over to its thread.
  const CUresult idle = real().cuStreamSynchronize(evict_streams_[mover]);
  return idle != CUDA_SUCCESS ? idle : Prefetch(address, bytes, false, evict_streams_[mover]);
}

CUresult DriverHints::Advise(uint64_t address, uint64_t bytes, bool read_mostly) {
  const CUmem_advise advice =
      read_mostly ? CU_MEM_ADVISE_SET_READ_MOSTLY : CU_MEM_ADVISE_UNSET_READ_MOSTLY;
  if (real().cuMemAdvise_v2 != nullptr) {
    CUmemLocation location{};  // ignored by this advice, but must be one that exists
    location.type = CU_MEM_LOCATION_TYPE_DEVICE;
    location.id = device_;
    return real().cuMemAdvise_v2(address, bytes, advice, location);
  }
  if (real().cuMemAdvise == nullptr) return CUDA_ERROR_NOT_SUPPORTED;
  return real().cuMemAdvise(address, bytes, advice, device_);
}

// Taking ReadMostly back makes the driver keep one copy: the first processor's that has one, and
// the host is the first (uvm_policy.c in NVIDIA/open-gpu-kernel-modules, unset_read_duplication).
// So the device's copy goes without a transfer. The advice is given again at once, so that the next
// prefetch duplicates. It is no part of any stream's order: nobody may be writing the range.
CUresult DriverHints::Drop(unsigned mover, uint64_t address, uint64_t bytes, bool duplicated) {
  if (Settings().Disabled(kDisableEvict)) return CUDA_SUCCESS;
  CUresult result = CUDA_SUCCESS;
  {
    WithContext current(context_);
    Relaxed relaxed;
    if (!duplicated) {
      result = Advise(address, bytes, true);
      if (result == CUDA_SUCCESS) result = real().cuStreamSynchronize(evict_streams_[mover]);
      if (result == CUDA_SUCCESS) result = Prefetch(address, bytes, false, evict_streams_[mover]);
    }
    if (result == CUDA_SUCCESS) result = Advise(address, bytes, false);
    if (result == CUDA_SUCCESS) result = Advise(address, bytes, true);
  }
  if (result == CUDA_SUCCESS) return result;
  read_mostly_works_.store(false, std::memory_order_relaxed);
  EndReadMostly(address, bytes);
  return Evict(mover, address, bytes);
}

bool DriverHints::DiscardWorks() {
  return real().cuMemDiscardBatchAsync != nullptr && !Settings().Disabled(kDisableDiscard);
}

CUresult DriverHints::Discard(unsigned mover, uint64_t address, uint64_t bytes) {
  if (!DiscardWorks()) return CUDA_ERROR_NOT_SUPPORTED;
  WithContext current(context_);
  Relaxed relaxed;
  CUdeviceptr start = address;
  size_t size = bytes;
  const CUstream stream = evict_streams_[mover];
  const CUresult asked = real().cuMemDiscardBatchAsync(&start, &size, 1, 0, stream);
  const CUresult done = real().cuStreamSynchronize(stream);
  return asked != CUDA_SUCCESS ? asked : done;
}

CUresult DriverHints::EndReadMostly(uint64_t address, uint64_t bytes) {
  WithContext current(context_);
  Relaxed relaxed;
  return Advise(address, bytes, false);
}

CUresult DriverHints::Fetch(unsigned stream, uint64_t address, uint64_t bytes, CUevent done) {
  WithContext current(context_);
  Relaxed relaxed;
  const CUresult result = Settings().Disabled(kDisablePrefetch)
                              ? CUDA_SUCCESS
                              : Prefetch(address, bytes, true, fetch_streams_[stream]);
  if (result == CUDA_SUCCESS && done != nullptr) {
    real().cuEventRecord(done, fetch_streams_[stream]);
  }
  return result;
}

CUevent DriverHints::NewEvent(unsigned flags) {
  WithContext current(context_);
  Relaxed relaxed;
  CUevent event = nullptr;
  real().cuEventCreate(&event, flags);
  return event;
}

uint64_t DriverHints::NowNs() {
  if (real().atpSimNow != nullptr) return real().atpSimNow();
  const auto now = std::chrono::steady_clock::now().time_since_epoch();
  return static_cast<uint64_t>(std::chrono::duration_cast<std::chrono::nanoseconds>(now).count());
}

void DriverHints::SetClock() {
  if (clock_ == nullptr) clock_ = NewEvent();
  clock_ns_ = NowNs();
  Record(clock_, clock_stream_, false);
}

// Elapsed times are floating-point milliseconds: they stay exact to a microsecond for some seconds.
uint64_t DriverHints::DoneAtNs(CUevent done) {
  constexpr uint64_t kExactNs = 2'000'000'000;
  const bool stale = clock_ == nullptr || NowNs() > clock_ns_ + kExactNs;
  const double seconds = stale ? -1 : Elapsed(clock_, done);
  if (stale) SetClock();
  return seconds > 0 ? clock_ns_ + static_cast<uint64_t>(seconds * 1e9) : 0;
}

CUresult DriverHints::Record(CUevent event, CUstream stream, bool per_thread) {
  WithContext current(context_);
  const auto record = per_thread && real().cuEventRecord_ptsz != nullptr ? real().cuEventRecord_ptsz
                                                                         : real().cuEventRecord;
  return record(event, stream);
}

bool DriverHints::Synchronize(CUevent event) {
  WithContext current(context_);
  return real().cuEventSynchronize(event) == CUDA_SUCCESS;
}

CUresult DriverHints::StreamWait(CUstream stream, bool per_thread, CUevent event) {
  WithContext current(context_);
  const auto wait = per_thread && real().cuStreamWaitEvent_ptsz != nullptr
                        ? real().cuStreamWaitEvent_ptsz
                        : real().cuStreamWaitEvent;
  return wait(stream, event, 0);
}

bool DriverHints::Done(CUevent event) {
  Relaxed relaxed;
  return real().cuEventQuery(event) == CUDA_SUCCESS;
}

double DriverHints::Elapsed(CUevent begin, CUevent end) {
  float milliseconds = -1e3f;
  if (real().cuEventElapsedTime_v2 != nullptr) {
    if (real().cuEventElapsedTime_v2(&milliseconds, begin, end) != CUDA_SUCCESS) return -1;
  } else if (real().cuEventElapsedTime == nullptr ||
             real().cuEventElapsedTime(&milliseconds, begin, end) != CUDA_SUCCESS) {
    return -1;
  }
  return milliseconds * 1e-3;
}

ThreadCalls DriverHints::Threads() {
  ThreadCalls calls;
  calls.enter = [context = context_] {
    real().cuCtxSetCurrent(context);
    CUstreamCaptureMode mode = CU_STREAM_CAPTURE_MODE_RELAXED;
    if (real().cuThreadExchangeStreamCaptureMode != nullptr) {
      real().cuThreadExchangeStreamCaptureMode(&mode);
    }
  };
  calls.event_synchronize = [](CUevent event) { real().cuEventSynchronize(event); };
  return calls;
}

LaneCalls DriverHints::Lanes() {
  return {real().atpSimLane, real().atpSimNow, real().atpSimWaitAny};
}

}  // namespace atp::shim
