// SPDX-License-Identifier: Apache-2.0
// The same twelve launches again and again on 24 MiB, then an end: steps PTX STEPS END
// END: return; _exit; kill (of itself); wait: prints "ready", waits for the end of its standard
// input, then returns; fork: as return, after a child that has not used the device has ended.
#include <cuda.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include <fstream>
#include <sstream>
#include <string>
#include <vector>

namespace {

constexpr size_t kBytes = 2u << 20;
constexpr unsigned kCount = kBytes / 4;

void Check(CUresult result, const char* what) {
  if (result == CUDA_SUCCESS) return;
  printf("FAIL %s: %d\n", what, static_cast<int>(result));
  exit(1);
}
#define CHECK(call) Check(call, #call)

void Run(const char* ptx_file, int steps) {
  std::stringstream ptx;
  ptx << std::ifstream(ptx_file).rdbuf();
  CUcontext context;
  CUmodule module;
  CUfunction bump;
  CHECK(cuDevicePrimaryCtxRetain(&context, 0));
  CHECK(cuCtxSetCurrent(context));
  CHECK(cuModuleLoadData(&module, ptx.str().c_str()));
  CHECK(cuModuleGetFunction(&bump, module, "Bump"));
  std::vector<CUdeviceptr> layers(12);
  for (CUdeviceptr& layer : layers) CHECK(cuMemAlloc(&layer, kBytes));
  for (int step = 0; step < steps; ++step) {
    for (CUdeviceptr& layer : layers) {
      unsigned n = kCount;
      void* arguments[] = {&layer, &n};
      CHECK(cuLaunchKernel(bump, kCount / 256, 1, 1, 256, 1, 1, 0, nullptr, arguments, nullptr));
    }
    CHECK(cuCtxSynchronize());
  }
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 4) return 3;
  const std::string end = argv[3];
  CHECK(cuInit(0));
  if (end == "fork") {
    const pid_t child = fork();
    if (child == 0) return 0;
    waitpid(child, nullptr, 0);
  }
  Run(argv[1], atoi(argv[2]));
  if (end == "wait") {
    puts("ready");
    fflush(stdout);
    while (getchar() != EOF) continue;
  }
  if (end == "_exit") _exit(0);
  if (end == "kill") raise(SIGKILL);
  return 0;
}
