// SPDX-License-Identifier: Apache-2.0
// Asks the CUDA runtime of the simulated machine for every function of the driver, in both ways
// and with every flag, and prints the answers.
#include <initializer_list>

#include "tests/preload/lookup/answers.h"

using atp::lookup::Print;
using atp::lookup::Request;

namespace {

using EntryPoint = int (*)(const char*, void**, unsigned long long, int*);
using EntryPointByVersion = int (*)(const char*, void**, unsigned, unsigned long long, int*);

void Ask(EntryPoint get, EntryPointByVersion by_version, const Request& request) {
  for (int flags : {0, 1, 2}) {  // default, legacy, per-thread default stream
    void* function = nullptr;
    int status = -1;
    int result = get(request.name, &function, static_cast<unsigned>(flags), &status);
    Print("entry point", request, flags, result, status, function);
    for (int version : {request.version - 1, request.version, request.version + 1}) {
      function = nullptr;
      result = by_version(request.name, &function, static_cast<unsigned>(version),
                          static_cast<unsigned>(flags), &status);
      Print("by version", {request.name, version}, flags, result, status, function);
    }
  }
}

}  // namespace

int main() {
  void* runtime = dlopen("libcudart.so.13", RTLD_NOW);
  if (runtime == nullptr) return fprintf(stderr, "%s\n", dlerror()), 1;
  const auto get = reinterpret_cast<EntryPoint>(dlsym(runtime, "cudaGetDriverEntryPoint"));
  const auto by_version =
      reinterpret_cast<EntryPointByVersion>(dlsym(runtime, "cudaGetDriverEntryPointByVersion"));
  for (const Request& request : atp::lookup::kTable) Ask(get, by_version, request);
  Ask(get, by_version, {"cuNoSuchThing", 13000});
  return 0;
}
