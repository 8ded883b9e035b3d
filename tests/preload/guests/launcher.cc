// SPDX-License-Identifier: Apache-2.0
// A preload library as checkers have one beside their launcher (compute-sanitizer and others): it
// names a library for the driver to inject, and stands in front of dlopen and execve, to be in
// every process that the program starts.
#include <dlfcn.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <string>

#define HOOK_EXPORT extern "C" __attribute__((visibility("default")))

namespace {

template <typename F>
F Next(const char* name) {
  return reinterpret_cast<F>(dlsym(RTLD_NEXT, name));
}

__attribute__((constructor)) void AtStart() {
  Dl_info info;
  if (dladdr(reinterpret_cast<void*>(&AtStart), &info) == 0) return;
  std::string path = info.dli_fname;
  path = path.substr(0, path.rfind('/')) + "/libinjection.so";
  setenv("CUDA_INJECTION64_PATH", path.c_str(), 1);
}

}  // namespace

HOOK_EXPORT void* dlopen(const char* path, int flags) {
  return Next<void* (*)(const char*, int)>("dlopen")(path, flags);
}

HOOK_EXPORT int execve(const char* path, char* const* arguments, char* const* variables) {
  return Next<decltype(&execve)>("execve")(path, arguments, variables);
}
