// SPDX-License-Identifier: Apache-2.0
// Launches until memory moves ahead of the launches, and then ends in the middle of it: ends PTX
// WAY
#include <cuda.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <barrier>
#include <filesystem>
#include <fstream>
#include <set>
#include <sstream>
#include <string>
#include <thread>
#include <vector>

namespace {

constexpr size_t kBytes = 1u << 20;
constexpr unsigned kCount = kBytes / 4;

void Check(CUresult result, const char* what) {
  if (result == CUDA_SUCCESS) return;
  printf("FAIL %s: %d\n", what, static_cast<int>(result));
  exit(1);
}
#define CHECK(call) Check(call, #call)

struct Layers {
  CUcontext context = nullptr;
  CUstream stream = nullptr;
  CUfunction bump = nullptr;
  std::vector<CUdeviceptr> memory;

  explicit Layers(const char* ptx_file, bool own_context) {
    std::stringstream ptx;
    ptx << std::ifstream(ptx_file).rdbuf();
    CUmodule module;
    if (own_context) {
      CHECK(cuCtxCreate(&context, nullptr, 0, 0));
    } else {
      CHECK(cuDevicePrimaryCtxRetain(&context, 0));
      CHECK(cuCtxSetCurrent(context));
    }
    CHECK(cuModuleLoadData(&module, ptx.str().c_str()));
    CHECK(cuModuleGetFunction(&bump, module, "Bump"));
    CHECK(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
    memory.resize(12);
    for (CUdeviceptr& layer : memory) {
      CHECK(cuMemAlloc(&layer, kBytes));
      CHECK(cuMemsetD32Async(layer, 0, kCount, stream));
    }
  }
  void Passes(int count, bool wait) {
    for (int pass = 0; pass < count; ++pass) {
      for (CUdeviceptr& layer : memory) {
        unsigned n = kCount;
        void* arguments[] = {&layer, &n};
        CHECK(cuLaunchKernel(bump, kCount / 256, 1, 1, 256, 1, 1, 0, stream, arguments, nullptr));
      }
      if (wait) CHECK(cuStreamSynchronize(stream));
    }
  }
  unsigned First() {
    unsigned value = 0;
    CHECK(cuMemcpyDtoH(&value, memory[0], 4));
    return value;
  }
};

// One thread launches, so that memory moves, while another records a graph, in the mode in which a
// call of any thread that might wait spoils the recording. In between they wait.
void CaptureMeanwhile(Layers* layers) {
  constexpr int kTimes = 40;
  std::barrier step(2);
  int good = 0;
  std::thread recorder([&] {
    CHECK(cuCtxSetCurrent(layers->context));
    CUstream stream;
    CHECK(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
    for (int i = 0; i < kTimes; ++i) {
      CUgraph graph = nullptr;
      size_t nodes = 0;
      CHECK(cuStreamBeginCapture(stream, CU_STREAM_CAPTURE_MODE_GLOBAL));
      step.arrive_and_wait();
      CHECK(cuMemsetD32Async(layers->memory[0], 0, 1, stream));
      CHECK(cuMemcpyDtoDAsync(layers->memory[1], layers->memory[0], 4, stream));
      step.arrive_and_wait();
      CHECK(cuStreamEndCapture(stream, &graph));
      CHECK(cuGraphGetNodes(graph, nullptr, &nodes));
      good += nodes == 2;
      CHECK(cuGraphDestroy(graph));
      step.arrive_and_wait();
      step.arrive_and_wait();
    }
  });
  for (int i = 0; i < kTimes; ++i) {
    step.arrive_and_wait();
    layers->Passes(2, false);
    step.arrive_and_wait();
    step.arrive_and_wait();
    CHECK(cuStreamSynchronize(layers->stream));
    step.arrive_and_wait();
  }
  recorder.join();
  printf("recordings with their own nodes: %d\n", good);
}

// While memory moves and the program neither takes nor gives any, as much is free as before.
void FreeMeanwhile(Layers* layers) {
  const auto free = [] {
    size_t bytes = 0, total = 0;
    CHECK(cuMemGetInfo(&bytes, &total));
    return bytes;
  };
  const size_t before = free();
  int changes = 0;
  for (int pass = 0; pass < 20; ++pass) {
    layers->Passes(1, pass % 4 == 3);
    changes += free() != before;
  }
  printf("other numbers of free bytes: %d\n", changes);
}

// Children that are forked while memory moves, and while another thread launches, end as programs
// do: with handlers and destructors. Their parent goes on.
void ForkMeanwhile(Layers* layers) {
  std::atomic<bool> over{false};
  std::thread launcher([&] {
    CHECK(cuCtxSetCurrent(layers->context));
    while (!over) layers->Passes(1, true);
  });
  int ended = 0;
  for (int i = 0; i < 20; ++i) {
    const pid_t child = fork();
    if (child == 0) exit(6);
    int status = 0;
    waitpid(child, &status, 0);
    ended += WIFEXITED(status) && WEXITSTATUS(status) == 6;
  }
  over = true;
  launcher.join();
  printf("children that ended well: %d\n", ended);
}

// Of threads that the program has not started: those of its start have its name.
void PrintThreadNames() {
  std::set<std::string> names;
  for (const auto& task : std::filesystem::directory_iterator("/proc/self/task")) {
    std::string name;
    std::getline(std::ifstream(task.path() / "comm"), name);
    if (name != "ends") names.insert(name);
  }
  for (const std::string& name : names) printf("thread %s\n", name.c_str());
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 3) return 2;
  const auto is = [&](const char* way) { return strcmp(argv[2], way) == 0; };
  setvbuf(stdout, nullptr, _IOLBF, 0);
  CHECK(cuInit(0));
  Layers layers(argv[1], is("destroy"));
  layers.Passes(4, true);
  layers.Passes(1, false);  // and nobody waits for it
  if (is("captures")) {
    CaptureMeanwhile(&layers);
    return 0;
  }
  if (is("free")) {
    FreeMeanwhile(&layers);
    return 0;
  }
  if (is("fork")) {
    ForkMeanwhile(&layers);
    return 0;
  }
  if (is("names")) {
    layers.Passes(1, true);
    PrintThreadNames();
    return 0;
  }
  if (is("exit")) exit(3);
  if (is("quick")) quick_exit(7);
  if (is("at-once")) _exit(4);
  if (is("killed")) abort();
  if (is("thread")) std::thread([] { exit(5); }).join();
  if (is("destroy")) CHECK(cuCtxDestroy(layers.context));
  if (is("reset")) CHECK(cuDevicePrimaryCtxReset(0));
  if (is("release")) CHECK(cuDevicePrimaryCtxRelease(0));
  if (is("frees")) {
    for (CUdeviceptr layer : layers.memory) CHECK(cuMemFree(layer));
  }
  if (is("stream")) CHECK(cuStreamDestroy(layers.stream));
  // And once more, from the beginning.
  Layers again(argv[1], is("destroy"));
  again.Passes(4, true);
  printf("first value: %u\n", again.First());
  return 0;
}
