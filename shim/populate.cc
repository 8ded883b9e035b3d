// SPDX-License-Identifier: Apache-2.0
#include "shim/populate.h"

#include <atomic>
#include <mutex>

#include "shim/capture.h"
#include "shim/lifecycle.h"
#include "shim/managed.h"
#include "shim/own_calls.h"
#include "shim/settings.h"

namespace atp::shim {
namespace {

// One stream a context, never destroyed: the context takes it along. A prefetch on a stream of our
// own keeps the program's streams as they are. Written under the lock, read without: an entry is
// complete before its context is published.
struct PopulateStream {
  std::atomic<CUcontext> context{nullptr};
  CUstream stream = nullptr;
};
constexpr int kMaxStreams = 64;
const CUcontext kGone = reinterpret_cast<CUcontext>(1);  // an entry that may be used again
PopulateStream streams[kMaxStreams];
std::mutex mutex;

CUstream Known(CUcontext context) {
  for (const PopulateStream& entry : streams) {
    const CUcontext known = entry.context.load(std::memory_order_acquire);
    if (known == context) return entry.stream;
    if (known == nullptr) break;
  }
  return nullptr;
}

CUstream StreamOf(CUcontext context) {
  if (const CUstream known = Known(context)) return known;
  std::lock_guard lock(mutex);
  if (const CUstream known = Known(context)) return known;
  for (PopulateStream& entry : streams) {
    const CUcontext other = entry.context.load(std::memory_order_relaxed);
    if (other != nullptr && other != kGone) continue;
    CUstream stream = nullptr;
    if (real().cuStreamCreate == nullptr ||
        real().cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING) != CUDA_SUCCESS) {
      return nullptr;
    }
    entry.stream = stream;
    entry.context.store(context, std::memory_order_release);
    return stream;
  }
  return nullptr;
}

CUresult Prefetch(uint64_t address, uint64_t bytes, int device, CUstream stream) {
  if (real().cuMemPrefetchAsync_v2 != nullptr) {
    const CUmemLocation location = {CU_MEM_LOCATION_TYPE_DEVICE, {device}};
    return real().cuMemPrefetchAsync_v2(address, bytes, location, 0, stream);
  }
  if (real().cuMemPrefetchAsync == nullptr) return CUDA_ERROR_NOT_SUPPORTED;
  return real().cuMemPrefetchAsync(address, bytes, device, stream);
}

}  // namespace

void Populate(Device& device, const Allocation& allocation) {
  if (Settings().Disabled(kDisablePopulate) || Watching() || CaptureOpen()) return;
  if (allocation.mapped_bytes >= device.budget / 8) return;
  const CUstream stream = StreamOf(allocation.context);
  if (stream == nullptr) return;
  const CUresult result =
      Prefetch(allocation.address, allocation.mapped_bytes, allocation.device, stream);
  if (result != CUDA_SUCCESS) Trouble("populating new memory");
}

void Discard(uint64_t address, uint64_t bytes, CUcontext context) {
  if (Settings().Disabled(kDisableDiscard) || real().cuMemDiscardBatchAsync == nullptr) return;
  WithContext current(context);
  Relaxed relaxed;
  const CUstream stream = StreamOf(context);
  if (stream == nullptr) return;
  CUdeviceptr start = address;
  size_t size = bytes;
  if (real().cuMemDiscardBatchAsync(&start, &size, 1, 0, stream) == CUDA_SUCCESS) {
    real().cuStreamSynchronize(stream);
  }
}

void ForgetPopulateStream(CUcontext context) {
  std::lock_guard lock(mutex);
  for (PopulateStream& entry : streams) {
    if (entry.context.load(std::memory_order_relaxed) == context) {
      entry.context.store(kGone, std::memory_order_release);
    }
  }
}

}  // namespace atp::shim
