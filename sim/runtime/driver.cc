// SPDX-License-Identifier: Apache-2.0
#include "sim/runtime/driver.h"

#include <dlfcn.h>

#include <cstdio>
#include <mutex>

namespace atp::simrt {
namespace {

constexpr int kOldestDriver = 13000;  // this runtime implements the CUDA 13.0 interface

enum Slot : unsigned {
#define LOOKUP(symbol, version, flags) kSlot_##symbol##_##version##_##flags,
#include "sim/runtime/driver_lookups.def"
#undef LOOKUP
  kSlots
};

struct Request {
  const char* symbol;
  int version;
  cuuint64_t flags;
};

constexpr Request kRequests[] = {
#define LOOKUP(symbol, version, flags) {#symbol, version, flags},
#include "sim/runtime/driver_lookups.def"
#undef LOOKUP
};

template <typename F>
struct Missing;
template <typename... Args>
struct Missing<CUresult (*)(Args...)> {
  static CUresult Answer(Args...) { return CUDA_ERROR_NOT_SUPPORTED; }
};

template <typename F>
void Assign(F* member, void* pointer) {
  *member = pointer ? reinterpret_cast<F>(pointer) : &Missing<F>::Answer;
}

struct Loaded {
  cudaError_t status = cudaErrorInsufficientDriver;
  Driver driver = {};
};

void FillCalls(void* const* slots, Driver* driver) {
#define CALL(name, version)                                            \
  Assign(&driver->legacy.name, slots[kSlot_cu##name##_##version##_0]); \
  driver->per_thread.name = driver->legacy.name;
#define STREAM_CALL(name, version, per_thread_version)                 \
  Assign(&driver->legacy.name, slots[kSlot_cu##name##_##version##_0]); \
  Assign(&driver->per_thread.name, slots[kSlot_cu##name##_##per_thread_version##_2]);
#include "sim/runtime/driver_calls.def"
#undef CALL
#undef STREAM_CALL
}

void LookUpAll(PFN_cuGetProcAddress_v12000 first, void** slots) {
  void* ignored = nullptr;
  first("", &ignored, 0, 0, nullptr);
  PFN_cuGetProcAddress_v12000 get = first;
  for (unsigned i = 0; i < kSlots; ++i) {
    const Request& r = kRequests[i];
    if (get(r.symbol, &slots[i], r.version, r.flags, nullptr) != CUDA_SUCCESS) slots[i] = nullptr;
    if (i == kSlot_cuGetProcAddress_12000_0 && slots[i]) {
      get = reinterpret_cast<PFN_cuGetProcAddress_v12000>(slots[i]);
    }
  }
}

void Load(Loaded* loaded) {
  void* library = dlopen("libcuda.so.1", RTLD_NOW);
  if (!library) {
    std::fprintf(stderr,
                 "simulated CUDA runtime: no driver: %s; put the folder of the simulated "
                 "libcuda.so.1 (lib/sim) into LD_LIBRARY_PATH\n",
                 dlerror());
    return;
  }
  auto first = reinterpret_cast<PFN_cuGetProcAddress_v12000>(dlsym(library, "cuGetProcAddress_v2"));
  if (!first) {
    std::fprintf(
        stderr,
        "simulated CUDA runtime: the driver has no cuGetProcAddress_v2 (older than CUDA 12)\n");
    return;
  }
  static void* slots[kSlots];
  LookUpAll(first, slots);
  FillCalls(slots, &loaded->driver);
  loaded->driver.get = first;
  if (slots[kSlot_cuGetProcAddress_12000_0]) {
    loaded->driver.get =
        reinterpret_cast<PFN_cuGetProcAddress_v12000>(slots[kSlot_cuGetProcAddress_12000_0]);
  }
  int version = 0;
  const CUresult result = loaded->driver.legacy.DriverGetVersion(&version);
  if (result == CUDA_SUCCESS && version >= kOldestDriver) {
    loaded->status = cudaSuccess;
    return;
  }
  std::fprintf(stderr, "simulated CUDA runtime: the driver is of version %d, %d is needed\n",
               version, kOldestDriver);
}

}  // namespace

cudaError_t LoadDriver(const Driver** driver) {
  static Loaded* const loaded = [] {
    auto* fresh = new Loaded;
    Load(fresh);
    return fresh;
  }();
  *driver = &loaded->driver;
  return loaded->status;
}

}  // namespace atp::simrt
