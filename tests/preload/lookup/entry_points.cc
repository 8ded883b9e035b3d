// SPDX-License-Identifier: Apache-2.0
// Asks the CUDA runtime of the simulated machine for every function of the driver, in both ways
// and with every flag, and prints
//   way  name  version  flags  result  status  object:symbol
#include <dlfcn.h>
#include <stdio.h>
#include <string.h>

#include <initializer_list>

namespace {

struct Request {
  const char* name;
  unsigned version;
};
const Request kRequests[] = {
#define EXPORT(symbol)
#define ROW(name, version, flags, symbol) {#name, version},
#include TABLE_FILE
#undef EXPORT
#undef ROW
    {"cuNoSuchThing", 13000},
};

void Print(const char* way, const Request& request, unsigned long long flags, int result,
           int status, void* function) {
  Dl_info info = {};
  const char* object = "-";
  const char* symbol = "-";
  if (function != nullptr && dladdr(function, &info) != 0) {
    const char* slash = strrchr(info.dli_fname, '/');
    object = slash != nullptr ? slash + 1 : info.dli_fname;
    if (info.dli_sname != nullptr) symbol = info.dli_sname;
  }
  printf("%s\t%s\t%u\t%llu\t%d\t%d\t%s:%s\n", way, request.name, request.version, flags, result,
         status, object, symbol);
}

}  // namespace

int main() {
  void* runtime = dlopen("libcudart.so.13", RTLD_NOW);
  if (runtime == nullptr) return fprintf(stderr, "%s\n", dlerror()), 1;
  const auto get = reinterpret_cast<int (*)(const char*, void**, unsigned long long, int*)>(
      dlsym(runtime, "cudaGetDriverEntryPoint"));
  const auto by_version =
      reinterpret_cast<int (*)(const char*, void**, unsigned, unsigned long long, int*)>(
          dlsym(runtime, "cudaGetDriverEntryPointByVersion"));
  for (const Request& request : kRequests) {
    for (unsigned long long flags : {0, 1, 2}) {  // default, legacy, per-thread default stream
      void* function = nullptr;
      int status = -1;
      int result = get(request.name, &function, flags, &status);
      Print("entry point", request, flags, result, status, function);
      for (unsigned version : {request.version - 1, request.version, request.version + 1}) {
        function = nullptr;
        result = by_version(request.name, &function, version, flags, &status);
        Print("by version", {request.name, version}, flags, result, status, function);
      }
    }
  }
  return 0;
}
