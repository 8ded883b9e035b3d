// SPDX-License-Identifier: Apache-2.0
// cuda.h with every ABI symbol declared under its own name. Without __CUDA_API_VERSION_INTERNAL the
// header renames the symbols by macro (cuMemAlloc means cuMemAlloc_v2) and hides the older forms;
// the shim is compiled with it, so that what one reads is what one calls.
#pragma once

#ifndef __CUDA_API_VERSION_INTERNAL
#error "compile the shim with -D__CUDA_API_VERSION_INTERNAL -D__CUDA_API_VERSION_INTERNAL_ODR"
#endif

#include <cuda.h>  // IWYU pragma: export
