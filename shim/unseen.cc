// SPDX-License-Identifier: Apache-2.0
#include "shim/unseen.h"

#include <string.h>

#include <atomic>
#include <cstddef>

namespace atp::shim {
namespace {

constexpr const char* kUnseen[] = {
    // Launches of CUDA 2, and over several devices at once (gone since CUDA 13).
    "cuLaunch", "cuLaunchGrid", "cuLaunchGridAsync", "cuLaunchCooperativeKernelMultiDevice",
    // 32-bit memory of CUDA 2.
    "cuMemAlloc", "cuMemAllocPitch", "cuMemFree", "cuMemcpyHtoD", "cuMemcpyDtoH", "cuMemcpyDtoD",
    "cuMemcpyHtoDAsync", "cuMemcpyDtoHAsync", "cuMemcpyDtoDAsync", "cuMemcpy2D", "cuMemcpy2DAsync",
    "cuMemcpy2DUnaligned", "cuMemcpy3D", "cuMemcpy3DAsync", "cuMemcpyAtoD", "cuMemcpyDtoA",
    "cuMemsetD8", "cuMemsetD16", "cuMemsetD32", "cuMemsetD2D8", "cuMemsetD2D16", "cuMemsetD2D32",
    // Copies in batches of boxes, and decompression.
    "cuMemcpy3DBatchAsync", "cuMemcpy3DBatchAsync_ptsz", "cuMemcpy3DBatchAsync_v2",
    "cuMemcpy3DBatchAsync_v2_ptsz", "cuMemBatchDecompressAsync", "cuMemBatchDecompressAsync_ptsz",
    // Textures over plain memory: kernels read through a handle that names no address.
    "cuTexObjectCreate", "cuTexRefSetAddress", "cuTexRefSetAddress_v2", "cuTexRefSetAddress2D",
    "cuTexRefSetAddress2D_v2", "cuTexRefSetAddress2D_v3"};
constexpr size_t kCount = sizeof kUnseen / sizeof kUnseen[0];
constinit std::atomic<bool> looked_up[kCount] = {};

size_t IndexOf(const char* symbol) {
  size_t i = 0;
  while (i < kCount && strcmp(kUnseen[i], symbol) != 0) ++i;
  return i;
}

}  // namespace

bool IsUnseen(const char* symbol) { return IndexOf(symbol) < kCount; }

void NoteUnseenLookup(const char* symbol) {
  const size_t index = IndexOf(symbol);
  if (index < kCount) looked_up[index].store(true, std::memory_order_relaxed);
}

void ForEachUnseenLookup(void (*visit)(const char*, void*), void* context) {
  for (size_t i = 0; i < kCount; ++i) {
    if (looked_up[i].load(std::memory_order_relaxed)) visit(kUnseen[i], context);
  }
}

}  // namespace atp::shim
