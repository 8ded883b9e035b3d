// SPDX-License-Identifier: Apache-2.0
// What the programs that measure a real driver share: a call that fails ends them. Host code.
#pragma once

#include <cuda.h>
#include <stdio.h>
#include <stdlib.h>

#include <algorithm>
#include <chrono>
#include <nlohmann/json.hpp>
#include <vector>

using Json = nlohmann::ordered_json;

inline const char* NameOf(CUresult result) {
  const char* name = "?";
  cuGetErrorName(result, &name);
  return name;
}

inline void Check(CUresult result, const char* what) {
  if (result == CUDA_SUCCESS) return;
  fprintf(stderr, "%s: %s\n", what, NameOf(result));
  exit(1);
}
#define CHECK(call) Check(call, #call)

inline double NowUs() {
  return std::chrono::duration<double, std::micro>(
             std::chrono::steady_clock::now().time_since_epoch())
      .count();
}

inline double Middle(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  return values[values.size() / 2];
}

// The first device's primary context, current in this thread, and a stream of it.
struct Gpu {
  CUcontext context;
  CUstream stream;
  int device = 0;

  Gpu() {
    CHECK(cuInit(0));
    CHECK(cuDevicePrimaryCtxRetain(&context, device));
    CHECK(cuCtxSetCurrent(context));
    CHECK(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
  }
};

inline void Prefetch(CUdeviceptr address, size_t bytes, bool to_device, CUstream stream) {
  CUmemLocation location = {};
  location.type = to_device ? CU_MEM_LOCATION_TYPE_DEVICE : CU_MEM_LOCATION_TYPE_HOST;
  CHECK(cuMemPrefetchAsync(address, bytes, location, 0, stream));
}
