// SPDX-License-Identifier: Apache-2.0
// cuda.h as the driver itself sees it: every exported symbol under its own name, old versions
// included. Included by every file of this folder that names a CUDA type; programs never see it.
#pragma once

#ifndef __CUDA_API_VERSION_INTERNAL
#define __CUDA_API_VERSION_INTERNAL
#endif
#include <cuda.h>
#include <cudaProfiler.h>

// What a program can call. Everything else in the library is hidden.
#define ATP_API extern "C" __attribute__((visibility("default"))) CUresult CUDAAPI
