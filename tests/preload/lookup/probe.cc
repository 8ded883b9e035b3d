// SPDX-License-Identifier: Apache-2.0
// A library that looks the driver's functions up in every way that programs do and prints each
// answer, so that runs with and without the preload library can be compared. Its dlsym is the
// default version or, with PROBE_OLD_DLSYM, the one that libraries built on older systems import.
#include <stdint.h>

#include <initializer_list>

#include "tests/preload/lookup/answers.h"

#ifdef PROBE_OLD_DLSYM
__asm__(".symver dlsym, dlsym@GLIBC_2.2.5");
#endif

using atp::lookup::Print;
using atp::lookup::Request;

namespace {

const char* const kSymbols[] = {
#define EXPORT(symbol) #symbol,
#define ROW(name, version, flags, symbol)
#include TABLE_FILE
#undef EXPORT
#undef ROW
    "cuNewThing", "cuMemAlloc_v3", "cuNoSuchThing", "cudaMalloc", "cublasCreate", "curl_easy_init",
};

// Beside the table.
const Request kMore[] = {
    {"", 0},
    {"cuNewThing", 14000},
    {"cuNoSuchThing", 13000},
    {"cuMemAlloc", 14000},
    {"cuMemAlloc", 99999},
};
template <typename Body>
void ForEachRequest(Body body) {
  for (const Request& request : atp::lookup::kTable) body(request);
  for (const Request& request : kMore) body(request);
}

using GetProcAddress = int (*)(const char*, void**, int, uint64_t);
using GetProcAddressV2 = int (*)(const char*, void**, int, uint64_t, int*);

void AskAll(const char* way, GetProcAddressV2 ask) {
  ForEachRequest([&](const Request& request) {
    for (int version : {request.version - 1, request.version, request.version + 1, 13000}) {
      for (int flags : {0, 1, 2}) {
        void* function = nullptr;
        int status = -1;
        const int result =
            ask(request.name, &function, version, static_cast<uint64_t>(flags), &status);
        Print(way, {request.name, version}, flags, result, status, function);
      }
    }
  });
}

void AskAllV1(const char* way, GetProcAddress ask) {
  ForEachRequest([&](const Request& request) {
    for (int flags : {0, 1, 2}) {
      void* function = nullptr;
      const int result =
          ask(request.name, &function, request.version, static_cast<uint64_t>(flags));
      Print(way, request, flags, result, -1, function);
    }
  });
}

// As the runtime does it: one dlsym, everything else from the driver's own resolver, then from the
// resolver that it gave.
void ByResolver(void* handle) {
  const auto ask = reinterpret_cast<GetProcAddressV2>(dlsym(handle, "cuGetProcAddress_v2"));
  AskAll("resolver v2", ask);
  void* own = nullptr;
  ask("cuGetProcAddress", &own, 12000, 0, nullptr);
  AskAll("resolver of resolver", reinterpret_cast<GetProcAddressV2>(own));
  ask("cuGetProcAddress", &own, 11030, 0, nullptr);
  AskAllV1("resolver v1 of resolver", reinterpret_cast<GetProcAddress>(own));
  AskAllV1("resolver v1", reinterpret_cast<GetProcAddress>(dlsym(handle, "cuGetProcAddress")));
}

void BySymbol(const char* way, void* handle) {
  for (const char* symbol : kSymbols) {
    dlerror();
    void* function = dlsym(handle, symbol);
    const bool complained = dlerror() != nullptr;
    Print(way, {symbol, 0}, 0, complained, -1, function);
  }
}

}  // namespace

// `initialise`: the driver is initialised, and has been called, before anything else is asked.
extern "C" __attribute__((visibility("default"))) int Probe(const char* driver, bool initialise) {
  BySymbol("default before", RTLD_DEFAULT);
  void* handle = dlopen(driver, RTLD_NOW);
  if (handle == nullptr) {
    fprintf(stderr, "%s\n", dlerror());
    return 1;
  }
  if (initialise) {
    reinterpret_cast<int (*)(unsigned)>(dlsym(handle, "cuInit"))(0);
    reinterpret_cast<int (*)()>(dlsym(handle, "cuCtxSynchronize"))();  // a hook, with us
  }
  ByResolver(handle);
  BySymbol("handle", handle);
  BySymbol("default", RTLD_DEFAULT);
  BySymbol("main", dlopen(nullptr, RTLD_NOW));
  return 0;
}
