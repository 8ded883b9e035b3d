// SPDX-License-Identifier: Apache-2.0
// Tensor maps (Hopper and newer): a kernel gets 128 bytes that hide base and extent of the tensor
// that its copy engine reads or writes. They are made by the driver, and there we see both; by
// their content they are known again when they come as a kernel's argument. What they hold
// otherwise is not looked at. Any thread.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>

#include "shim/cuda_abi.h"

namespace atp::shim {

struct TensorExtent {
  uint64_t address = 0;
  uint64_t bytes = 0;  // from the first to the last byte
};

// From the first to the last byte of a tensor whose dimension 0 is contiguous.
uint64_t TensorBytes(CUtensorMapDataType type, uint32_t rank, const cuuint64_t* dimensions,
                     const cuuint64_t* strides);

void NoteTensorMap(const CUtensorMap& map, const TensorExtent& extent);
// False: not made in this process, or long ago.
bool FindTensorMap(const void* map, TensorExtent* extent);

extern std::atomic<bool> g_tensor_maps;  // one has been made

// Calls visit(extent) for each known map in a piece of a parameter buffer that starts at `offset`
// of it.
template <typename Visit>
void VisitTensorMaps(const void* piece, size_t offset, size_t bytes, Visit visit) {
  constexpr size_t kAlignment = 64;
  if (!g_tensor_maps.load(std::memory_order_relaxed)) return;
  for (size_t at = (kAlignment - offset % kAlignment) % kAlignment;
       at + sizeof(CUtensorMap) <= bytes; at += kAlignment) {
    TensorExtent extent;
    if (FindTensorMap(static_cast<const char*>(piece) + at, &extent)) visit(extent);
  }
}

}  // namespace atp::shim
