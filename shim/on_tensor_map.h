// SPDX-License-Identifier: Apache-2.0
// Bodies of the hooks that make tensor maps: the driver makes them; what they stand for is
// remembered.
#pragma once

#include "shim/resolve.h"
#include "shim/tensor_maps.h"

namespace atp::shim {

template <HookId id, typename... More>
CUresult OnTensorMapEncode(CUtensorMap* map, CUtensorMapDataType type, cuuint32_t rank,
                           void* address, const cuuint64_t* dimensions, const cuuint64_t* strides,
                           More... more) {
  const CUresult result = Row<id>::Real()(map, type, rank, address, dimensions, strides, more...);
  if (result == CUDA_SUCCESS) {
    NoteTensorMap(
        *map, {reinterpret_cast<uintptr_t>(address), TensorBytes(type, rank, dimensions, strides)});
  }
  return result;
}

template <HookId id>
CUresult OnTensorMapReplaceAddress(CUtensorMap* map, void* address) {
  TensorExtent extent;
  const bool known = map != nullptr && FindTensorMap(map, &extent);
  const CUresult result = Row<id>::Real()(map, address);
  if (result == CUDA_SUCCESS && known) {
    NoteTensorMap(*map, {reinterpret_cast<uintptr_t>(address), extent.bytes});
  }
  return result;
}

}  // namespace atp::shim
