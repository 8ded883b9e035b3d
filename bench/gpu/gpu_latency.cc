// SPDX-License-Identifier: Apache-2.0
// What a prefetch to the host in one thread does to other threads: the time that a launch takes to
// submit, and an mmap with its munmap, while nothing moves and while 256 MiB (less on a small card)
// of managed memory go to the host again and again. Then what a launch and an allocation with its
// free cost. For a real driver; on the simulated machine it runs, and its times mean nothing.
#include <cuda.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>

#include <algorithm>
#include <atomic>
#include <initializer_list>
#include <thread>
#include <vector>

#include "bench/gpu/gpu.h"

namespace {

constexpr char kNothing[] =
    ".version 7.0\n.target sm_52\n.address_size 64\n.visible .entry Nothing() { ret; }\n";

Json Describe(std::vector<double> us) {
  std::sort(us.begin(), us.end());
  if (us.empty()) return "unknown";
  const auto at = [&](double part) {
    return us[std::min(us.size() - 1, static_cast<size_t>(part * static_cast<double>(us.size())))];
  };
  return {{"count", us.size()}, {"p50_us", at(0.5)}, {"p99_us", at(0.99)}, {"most_us", us.back()}};
}

struct LaunchingGpu : Gpu {
  CUfunction nothing;

  LaunchingGpu() {
    CUmodule module;
    CHECK(cuModuleLoadData(&module, kNothing));
    CHECK(cuModuleGetFunction(&nothing, module, "Nothing"));
  }
  void Launch() const {
    CHECK(cuLaunchKernel(nothing, 1, 1, 1, 1, 1, 1, 0, stream, nullptr, nullptr));
  }
};

// Sends memory to the device, then to the host, until told to stop; `leaving` says when it leaves.
void MoveOn(const Gpu& gpu, size_t bytes, std::atomic<bool>* leaving, std::atomic<bool>* stop) {
  CUdeviceptr address;
  CUstream stream;
  CHECK(cuCtxSetCurrent(gpu.context));
  CHECK(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
  CHECK(cuMemAllocManaged(&address, bytes, CU_MEM_ATTACH_GLOBAL));
  while (!stop->load()) {
    Prefetch(address, bytes, true, stream);
    CHECK(cuMemsetD8Async(address, 1, bytes, stream));
    CHECK(cuStreamSynchronize(stream));
    leaving->store(true);
    Prefetch(address, bytes, false, stream);
    CHECK(cuStreamSynchronize(stream));
    leaving->store(false);
  }
  CHECK(cuMemFree(address));
  CHECK(cuStreamDestroy(stream));
}

// `when`: only while this is set; null: always.
Json Measure(const LaunchingGpu& gpu, int samples, const std::atomic<bool>* when) {
  std::vector<double> launch, map;
  const double until = NowUs() + 20e6;  // memory that moves too fast to be met gives fewer samples
  while (static_cast<int>(launch.size()) < samples && NowUs() < until) {
    if (when != nullptr && !when->load()) {
      std::this_thread::yield();
      continue;
    }
    double begin = NowUs();
    gpu.Launch();
    launch.push_back(NowUs() - begin);
    begin = NowUs();
    void* page = mmap(nullptr, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (page != MAP_FAILED) munmap(page, 4096);
    map.push_back(NowUs() - begin);
    if (launch.size() % 64 == 0) CHECK(cuStreamSynchronize(gpu.stream));
  }
  CHECK(cuStreamSynchronize(gpu.stream));
  return {{"launch", Describe(launch)}, {"mmap_munmap", Describe(map)}};
}

double AllocFreeUs(int rounds) {
  std::vector<double> us;
  for (int i = 0; i < rounds; ++i) {
    CUdeviceptr address;
    const double begin = NowUs();
    CHECK(cuMemAlloc(&address, size_t{4} << 20));
    CHECK(cuMemFree(address));
    us.push_back(NowUs() - begin);
  }
  return Middle(us);
}

Json Run(int samples) {
  const LaunchingGpu gpu;
  size_t free = 0, total = 0;
  CHECK(cuMemGetInfo(&free, &total));
  const size_t bytes = std::min(size_t{256} << 20, free / 4 / (2u << 20) * (2u << 20));
  Json result = {{"moved_bytes", bytes}, {"quiet", Measure(gpu, samples, nullptr)}};
  std::atomic<bool> leaving{false}, stop{false};
  std::thread mover([&] { MoveOn(gpu, bytes, &leaving, &stop); });
  result["while_memory_leaves"] = Measure(gpu, samples, &leaving);
  stop = true;
  mover.join();
  result["alloc_free_us"] = AllocFreeUs(std::max(10, samples / 20));
  return result;
}

}  // namespace

int main(int argc, char** argv) {
  bool json = false;
  int samples = 20000;
  for (int i = 1; i < argc; ++i) {
    if (strcmp(argv[i], "--json") == 0) {
      json = true;
    } else if (strcmp(argv[i], "--quick") == 0) {
      samples = 200;
    } else {
      const bool help = strcmp(argv[i], "--help") == 0;
      fprintf(
          help ? stdout : stderr,
          "usage: gpu_latency [--json] [--quick]\nLatency of launches and of mmap while memory "
          "is prefetched to the host.\nExit codes: 0 measured, 1 the driver failed, 2 usage.\n");
      return help ? 0 : 2;
    }
  }
  const Json result = Run(samples);
  printf("%s\n", result.dump(json ? -1 : 2).c_str());
  return 0;
}
