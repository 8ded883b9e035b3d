// SPDX-License-Identifier: Apache-2.0
#include "shim/populate.h"

#include <mutex>

#include "shim/capture.h"
#include "shim/lifecycle.h"
#include "shim/managed.h"
#include "shim/own_calls.h"
#include "shim/settings.h"

namespace atp::shim {
namespace {

// One stream a context, never destroyed: the context takes it along. A prefetch on a stream of our
// own keeps the program's streams as they are.
struct PopulateStream {
  CUcontext context;
  CUstream stream;
};
constexpr int kMaxStreams = 64;
PopulateStream streams[kMaxStreams];
int stream_count = 0;
std::mutex mutex;

CUstream StreamOf(CUcontext context) {
  std::lock_guard lock(mutex);
  for (int i = 0; i < stream_count; ++i) {
    if (streams[i].context == context) return streams[i].stream;
  }
  CUstream stream = nullptr;
  if (stream_count == kMaxStreams || real().cuStreamCreate == nullptr ||
      real().cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING) != CUDA_SUCCESS) {
    return nullptr;
  }
  streams[stream_count++] = {context, stream};
  return stream;
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
  for (int i = 0; i < stream_count; ++i) {
    if (streams[i].context == context) streams[i--] = streams[--stream_count];
  }
}

}  // namespace atp::shim
