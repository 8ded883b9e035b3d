// SPDX-License-Identifier: Apache-2.0
// A driver that only remembers who called what. It answers one device, and success to everything;
// outputs that the runtime needs are filled in. With FAKE_DRIVER_ECHO in the environment it also
// writes each call to stderr.
#include "tests/sim/runtime/fake_driver.h"

#include <cuda.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>

namespace {

std::string& Lookups() {
  static auto* text = new std::string;
  return *text;
}

std::string& Calls() {
  static auto* text = new std::string;
  return *text;
}

std::string fail_symbol;
int fail_result = 0;

CUresult Log(const char* symbol) {
  const char* name = symbol + 2;
  if (!Calls().empty()) Calls() += ' ';
  Calls() += name;
  if (std::getenv("FAKE_DRIVER_ECHO")) std::fprintf(stderr, "%s\n", name);
  if (fail_symbol != name) return CUDA_SUCCESS;
  fail_symbol.clear();
  return static_cast<CUresult>(fail_result);
}

// A function for every row of the table. The caller passes parameters that it does not look at.
#define LOOKUP(symbol, version, flags)                  \
  CUresult Logged_##symbol##_##version##_##flags() {    \
    return Log(flags == 2 ? #symbol "_ptsz" : #symbol); \
  }
#include "sim/runtime/driver_lookups.def"
#undef LOOKUP

struct Row {
  const char* symbol;
  int version;
  cuuint64_t flags;
  void* function;
};

#define LOOKUP(symbol, version, flags) \
  {#symbol, version, flags, reinterpret_cast<void*>(Logged_##symbol##_##version##_##flags)},
const Row kRows[] = {
#include "sim/runtime/driver_lookups.def"
};
#undef LOOKUP

char handle[64];  // addresses in here stand for objects

CUresult DriverGetVersion(int* version) {
  const char* wanted = std::getenv("FAKE_DRIVER_VERSION");
  *version = wanted ? std::atoi(wanted) : 13000;
  return Log("cuDriverGetVersion");
}
CUresult DeviceGetCount(int* count) {
  *count = 1;
  return Log("cuDeviceGetCount");
}
CUresult DeviceGetName(char* name, int bytes, CUdevice) {
  std::snprintf(name, bytes, "fake");
  return Log("cuDeviceGetName");
}
CUresult DeviceGetAttribute(int* value, CUdevice_attribute attribute, CUdevice) {
  *value = attribute;
  return Log("cuDeviceGetAttribute");
}
CUresult CtxGetCurrent(CUcontext* context) {
  *context = nullptr;
  return Log("cuCtxGetCurrent");
}
CUresult PrimaryRetain(CUcontext* context, CUdevice) {
  *context = reinterpret_cast<CUcontext>(handle);
  return Log("cuDevicePrimaryCtxRetain");
}
// Never answered, here as in the simulated driver.
CUresult GetExportTable(const void**, const CUuuid*) {
  Log("cuGetExportTable");
  return CUDA_ERROR_NOT_SUPPORTED;
}
CUresult LibraryLoadData(CUlibrary* library, const void*, void*, void*, unsigned, void*, void*,
                         unsigned) {
  *library = reinterpret_cast<CUlibrary>(handle + 1);
  return Log("cuLibraryLoadData");
}
CUresult LibraryGetKernel(CUkernel* kernel, CUlibrary, const char* name) {
  if (std::strcmp(name, "missing") == 0) return CUDA_ERROR_NOT_FOUND;
  *kernel = reinterpret_cast<CUkernel>(handle + 2);
  return Log("cuLibraryGetKernel");
}
CUresult LibraryGetGlobal(CUdeviceptr* address, size_t* bytes, CUlibrary, const char*) {
  *address = 0x1000;
  *bytes = 16;
  return Log("cuLibraryGetGlobal");
}
CUresult LibraryGetManaged(CUdeviceptr* address, size_t* bytes, CUlibrary, const char*) {
  *address = 0x2000;
  *bytes = 4;
  return Log("cuLibraryGetManaged");
}

// Every array is 8 by 4 floats.
CUresult Array3DGetDescriptor(CUDA_ARRAY3D_DESCRIPTOR* description, CUarray) {
  *description = {8, 4, 0, CU_AD_FORMAT_FLOAT, 1, 0};
  return Log("cuArray3DGetDescriptor");
}

struct Special {
  const char* symbol;
  void* function;
};
const Special kSpecial[] = {
    {"cuDriverGetVersion", reinterpret_cast<void*>(DriverGetVersion)},
    {"cuDeviceGetCount", reinterpret_cast<void*>(DeviceGetCount)},
    {"cuDeviceGetName", reinterpret_cast<void*>(DeviceGetName)},
    {"cuDeviceGetAttribute", reinterpret_cast<void*>(DeviceGetAttribute)},
    {"cuCtxGetCurrent", reinterpret_cast<void*>(CtxGetCurrent)},
    {"cuDevicePrimaryCtxRetain", reinterpret_cast<void*>(PrimaryRetain)},
    {"cuGetExportTable", reinterpret_cast<void*>(GetExportTable)},
    {"cuArray3DGetDescriptor", reinterpret_cast<void*>(Array3DGetDescriptor)},
    {"cuLibraryLoadData", reinterpret_cast<void*>(LibraryLoadData)},
    {"cuLibraryGetKernel", reinterpret_cast<void*>(LibraryGetKernel)},
    {"cuLibraryGetGlobal", reinterpret_cast<void*>(LibraryGetGlobal)},
    {"cuLibraryGetManaged", reinterpret_cast<void*>(LibraryGetManaged)},
};

CUresult Get12000(const char* symbol, void** pointer, int version, cuuint64_t flags,
                  CUdriverProcAddressQueryResult* status);

CUresult Find(const char* via, const char* symbol, void** pointer, int version, cuuint64_t flags) {
  Lookups() += std::string(via) + " " + symbol + " " + std::to_string(version) + " " +
               std::to_string(flags) + "\n";
  *pointer = nullptr;
  if (std::strcmp(symbol, "cuGetProcAddress") == 0 && version == 12000) {
    *pointer = reinterpret_cast<void*>(Get12000);
  }
  for (const Special& special : kSpecial) {
    if (std::strcmp(symbol, special.symbol) == 0) *pointer = special.function;
  }
  for (const Row& row : kRows) {
    if (*pointer) break;
    const bool same = std::strcmp(row.symbol, symbol) == 0;
    if (same && row.version == version && row.flags == flags) *pointer = row.function;
  }
  return *pointer ? CUDA_SUCCESS : CUDA_ERROR_NOT_FOUND;
}

CUresult Get12000(const char* symbol, void** pointer, int version, cuuint64_t flags,
                  CUdriverProcAddressQueryResult* status) {
  const CUresult result = Find("12000", symbol, pointer, version, flags);
  if (status) {
    *status =
        result == CUDA_SUCCESS ? CU_GET_PROC_ADDRESS_SUCCESS : CU_GET_PROC_ADDRESS_SYMBOL_NOT_FOUND;
  }
  return result;
}

}  // namespace

extern "C" {

#undef cuGetProcAddress_v2
__attribute__((visibility("default"))) CUresult cuGetProcAddress_v2(
    const char* symbol, void** pointer, int version, cuuint64_t flags,
    CUdriverProcAddressQueryResult* status) {
  if (status) *status = CU_GET_PROC_ADDRESS_SUCCESS;
  return Find("dlsym", symbol, pointer, version, flags);
}

const char* FakeLookups() { return Lookups().c_str(); }
const char* FakeCalls() { return Calls().c_str(); }
void FakeForget() { Calls().clear(); }
void FakeFailNext(const char* symbol, int result) {
  fail_symbol = symbol;
  fail_result = result;
}

}  // extern "C"
