// SPDX-License-Identifier: Apache-2.0
// Bodies of the hooks on loading code: the driver first; of what it took, the text is remembered.
#pragma once

#include "shim/code_identity.h"
#include "shim/kernel_images.h"
#include "shim/resolve.h"

namespace atp::shim {

// cuModuleLoadData, Ex, FatBinary and cuLibraryLoadData.
template <HookId id, typename Handle, typename... Options>
CUresult OnLoadData(Handle* handle, const void* image, Options... options) {
  const CUresult result = Row<id>::Real()(handle, image, options...);
  if (result == CUDA_SUCCESS) {
    const uint64_t code = HashOfImage(image);
    RememberImage(image, code);
    RememberCode(*handle, code);
  }
  return result;
}

// cuModuleLoad and cuLibraryLoadFromFile.
template <HookId id, typename Handle, typename... Options>
CUresult OnLoadFile(Handle* handle, const char* path, Options... options) {
  const CUresult result = Row<id>::Real()(handle, path, options...);
  if (result == CUDA_SUCCESS) {
    const uint64_t code = HashOfImageFile(path);
    RememberImageFile(path, code);
    RememberCode(*handle, code);
  }
  return result;
}

}  // namespace atp::shim
