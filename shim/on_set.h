// SPDX-License-Identifier: Apache-2.0
// Bodies of the set hooks. A set of device memory returns before it is done; of managed memory it
// would wait. So a blocking set of memory of ours goes out as its asynchronous twin on the default
// stream that it would have used.
#pragma once

#include "shim/observation.h"
#include "shim/placement.h"
#include "shim/resolve.h"
#include "shim/settings.h"

namespace atp::shim {

// The asynchronous function of the same element size and default stream. Width = bytes of an
// element.
template <HookId id>
struct SetTwin;
#define ATP_SET_TWIN(symbol, asynchronous, bytes)      \
  template <>                                          \
  struct SetTwin<HookId::symbol> {                     \
    static constexpr uint64_t kWidth = bytes;          \
    static auto Real() { return real().asynchronous; } \
  };
ATP_SET_TWIN(cuMemsetD8_v2, cuMemsetD8Async, 1)
ATP_SET_TWIN(cuMemsetD8_v2_ptds, cuMemsetD8Async_ptsz, 1)
ATP_SET_TWIN(cuMemsetD8Async, cuMemsetD8Async, 1)
ATP_SET_TWIN(cuMemsetD8Async_ptsz, cuMemsetD8Async_ptsz, 1)
ATP_SET_TWIN(cuMemsetD16_v2, cuMemsetD16Async, 2)
ATP_SET_TWIN(cuMemsetD16_v2_ptds, cuMemsetD16Async_ptsz, 2)
ATP_SET_TWIN(cuMemsetD16Async, cuMemsetD16Async, 2)
ATP_SET_TWIN(cuMemsetD16Async_ptsz, cuMemsetD16Async_ptsz, 2)
ATP_SET_TWIN(cuMemsetD32_v2, cuMemsetD32Async, 4)
ATP_SET_TWIN(cuMemsetD32_v2_ptds, cuMemsetD32Async_ptsz, 4)
ATP_SET_TWIN(cuMemsetD32Async, cuMemsetD32Async, 4)
ATP_SET_TWIN(cuMemsetD32Async_ptsz, cuMemsetD32Async_ptsz, 4)
ATP_SET_TWIN(cuMemsetD2D8_v2, cuMemsetD2D8Async, 1)
ATP_SET_TWIN(cuMemsetD2D8_v2_ptds, cuMemsetD2D8Async_ptsz, 1)
ATP_SET_TWIN(cuMemsetD2D8Async, cuMemsetD2D8Async, 1)
ATP_SET_TWIN(cuMemsetD2D8Async_ptsz, cuMemsetD2D8Async_ptsz, 1)
ATP_SET_TWIN(cuMemsetD2D16_v2, cuMemsetD2D16Async, 2)
ATP_SET_TWIN(cuMemsetD2D16_v2_ptds, cuMemsetD2D16Async_ptsz, 2)
ATP_SET_TWIN(cuMemsetD2D16Async, cuMemsetD2D16Async, 2)
ATP_SET_TWIN(cuMemsetD2D16Async_ptsz, cuMemsetD2D16Async_ptsz, 2)
ATP_SET_TWIN(cuMemsetD2D32_v2, cuMemsetD2D32Async, 4)
ATP_SET_TWIN(cuMemsetD2D32_v2_ptds, cuMemsetD2D32Async_ptsz, 4)
ATP_SET_TWIN(cuMemsetD2D32Async, cuMemsetD2D32Async, 4)
ATP_SET_TWIN(cuMemsetD2D32Async_ptsz, cuMemsetD2D32Async_ptsz, 4)
#undef ATP_SET_TWIN

// Bytes from the first to the last byte of a pitched rectangle.
inline uint64_t PitchedExtent(uint64_t pitch, uint64_t width, uint64_t height) {
  return height == 0 ? 0 : pitch * (height - 1) + width;
}

template <HookId id, typename Call>
CUresult ObserveSet(CUdeviceptr address, uint64_t bytes, CUstream stream, Call call) {
  if (!Watching()) return call();
  Observation observation(static_cast<uint64_t>(id), "memset", stream, Row<id>::kPerThread);
  observation.Mix(bytes);
  observation.Touch(address, bytes, false, true);
  return observation.Submit(false, call);
}

inline bool WantsTwin(CUdeviceptr address) {
  return g_tracker.Find(address) != nullptr && !Settings().Disabled(kDisableAsyncTwins);
}

template <HookId id, typename Value>
CUresult OnSet(CUdeviceptr address, Value value, size_t count) {
  return ObserveSet<id>(address, count * SetTwin<id>::kWidth, nullptr, [&] {
    if (!WantsTwin(address)) return Row<id>::Real()(address, value, count);
    return SetTwin<id>::Real()(address, value, count, nullptr);
  });
}

template <HookId id, typename Value>
CUresult OnSetAsync(CUdeviceptr address, Value value, size_t count, CUstream stream) {
  return ObserveSet<id>(address, count * SetTwin<id>::kWidth, stream,
                        [&] { return Row<id>::Real()(address, value, count, stream); });
}

template <HookId id, typename Value>
CUresult OnSet2D(CUdeviceptr address, size_t pitch, Value value, size_t width, size_t height) {
  const uint64_t bytes = PitchedExtent(pitch, width * SetTwin<id>::kWidth, height);
  return ObserveSet<id>(address, bytes, nullptr, [&] {
    const auto twin = SetTwin<id>::Real();
    if (!WantsTwin(address) || twin == nullptr) {
      return Row<id>::Real()(address, pitch, value, width, height);
    }
    return twin(address, pitch, value, width, height, nullptr);
  });
}

template <HookId id, typename Value>
CUresult OnSet2DAsync(CUdeviceptr address, size_t pitch, Value value, size_t width, size_t height,
                      CUstream stream) {
  const uint64_t bytes = PitchedExtent(pitch, width * SetTwin<id>::kWidth, height);
  return ObserveSet<id>(address, bytes, stream, [&] {
    return Row<id>::Real()(address, pitch, value, width, height, stream);
  });
}

}  // namespace atp::shim
