// SPDX-License-Identifier: Apache-2.0
// What the hooks cost: nanoseconds per launch, allocation and free, with and without the preload
// library, against a driver that does nothing, or with --real against the one that is installed
// (few allocations, and launches in bursts that its queue holds). One run measures all: the program
// runs itself once plain, and with the library once for each case. Figures are the best of several
// rounds, because other processes only ever add time. --json prints one object on stdout; without
// it, a table.
#include <cuda.h>
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <nlohmann/json.hpp>
#include <string>
#include <thread>
#include <vector>

namespace {

using Json = nlohmann::ordered_json;

struct Driver {
  decltype(&cuInit) init;
  decltype(&cuDevicePrimaryCtxRetain) retain;
  decltype(&cuCtxSetCurrent) set_current;
  decltype(&cuCtxSynchronize) synchronize;
  decltype(&cuModuleLoadData) load;
  decltype(&cuModuleGetFunction) get_function;
  decltype(&cuMemAlloc) alloc;
  decltype(&cuMemFree) free;
  decltype(&cuLaunchKernel) launch;
  decltype(&cuGetProcAddress) get_proc_address;
};

template <typename F>
void Load(void* handle, const char* name, F* function) {
  *function = reinterpret_cast<F>(dlsym(handle, name));
  if (*function == nullptr) {
    fprintf(stderr, "hook_overhead: the driver beside me has no %s\n", name);
    exit(1);
  }
}

Driver Open(bool real) {
  void* handle = dlopen("libcuda.so.1", RTLD_NOW);
  if (handle == nullptr) {
    fprintf(stderr, "hook_overhead: %s\n", dlerror());
    exit(1);
  }
  Driver driver;
  Load(handle, "cuInit", &driver.init);
  Load(handle, "cuDevicePrimaryCtxRetain", &driver.retain);
  Load(handle, "cuCtxSetCurrent", &driver.set_current);
  Load(handle, "cuCtxSynchronize", &driver.synchronize);
  Load(handle, "cuMemAlloc_v2", &driver.alloc);
  Load(handle, "cuMemFree_v2", &driver.free);
  Load(handle, "cuLaunchKernel", &driver.launch);
  Load(handle, "cuGetProcAddress_v2", &driver.get_proc_address);
  CUcontext context = nullptr;
  if (driver.init(0) != CUDA_SUCCESS || driver.retain(&context, 0) != CUDA_SUCCESS ||
      driver.set_current(context) != CUDA_SUCCESS) {
    fprintf(stderr, "hook_overhead: the driver has no device\n");
    exit(1);
  }
  if (real) {
    Load(handle, "cuModuleLoadData", &driver.load);
    Load(handle, "cuModuleGetFunction", &driver.get_function);
  }
  return driver;
}

// Best nanoseconds per call over `rounds` of `calls`.
template <typename Body>
double Best(int rounds, int calls, Body body) {
  double best = 1e30;
  for (int round = 0; round < rounds; ++round) {
    const auto begin = std::chrono::steady_clock::now();
    for (int call = 0; call < calls; ++call) body(call);
    const std::chrono::duration<double, std::nano> took = std::chrono::steady_clock::now() - begin;
    best = std::min(best, took.count() / calls);
  }
  return best;
}

CUdeviceptr Allocate(const Driver& driver, size_t bytes) {
  CUdeviceptr address = 0;
  if (driver.alloc(&address, bytes) != CUDA_SUCCESS) {
    fprintf(stderr, "hook_overhead: an allocation of %zu bytes was refused\n", bytes);
    exit(1);
  }
  return address;
}

CUfunction KernelOfWords(size_t words) { return reinterpret_cast<CUfunction>(words); }

uint64_t Shuffle(uint64_t x) {  // xorshift
  x ^= x << 13;
  x ^= x >> 7;
  return x ^ x << 17;
}

// Launches of eight pointers out of eight tensors: which ones, and in which order, is one of many
// choices, so that launches may differ for whoever looks at what they touch.
class Arguments {
 public:
  static constexpr size_t kCount = 8;
  static constexpr uint64_t kChoices = 1 << 16;
  Arguments(const Driver& driver, size_t bytes) : driver_(driver) {
    for (CUdeviceptr& address : memory_) address = Allocate(driver, bytes);
  }
  ~Arguments() {
    for (CUdeviceptr address : memory_) driver_.free(address);
  }
  Arguments(const Arguments&) = delete;
  Arguments& operator=(const Arguments&) = delete;
  // As in programs, arguments have just been written when they are handed over.
  void Launch(uint64_t choice, CUstream stream) {
    const uint64_t random = (choice % kChoices + 1) * 0x9E3779B97F4A7C15u >> 32;
    void* arguments[kCount];
    for (size_t i = 0; i < kCount; ++i) arguments[i] = &memory_[(random >> 3 * i) % kCount];
    driver_.launch(KernelOfWords(kCount), 1, 1, 1, 32, 1, 1, 0, stream, arguments, nullptr);
  }
  CUdeviceptr operator[](size_t i) const { return memory_[i % kCount]; }

 private:
  const Driver& driver_;
  CUdeviceptr memory_[kCount];
};

// A round is short enough that some of them are not disturbed, however busy the machine is.
double MeasureLaunchWithoutPeriod(const Driver& driver, int rounds) {
  Arguments arguments(driver, 1u << 20);
  uint64_t random = 1;
  return Best(5 * rounds, 2000, [&](int) { arguments.Launch(random = Shuffle(random), nullptr); });
}

// A period of 64 launches: two use memory that does not fit beside the rest, so that there is a
// plan, and it moves them in turn. The other launches are timed, which have nothing to wait for.
double MeasurePlannedLaunch(const Driver& driver, int rounds) {
  constexpr int kPeriod = 64, kMoving = 2;
  Arguments arguments(driver, 1u << 20);
  CUdeviceptr moving[kMoving];
  for (CUdeviceptr& address : moving) address = Allocate(driver, 4u << 20);
  double best = 1e30;
  for (int round = 0; round < 50 * rounds; ++round) {
    for (CUdeviceptr& address : moving) {
      void* parameter[] = {&address};
      driver.launch(KernelOfWords(1), 1, 1, 1, 32, 1, 1, 0, nullptr, parameter, nullptr);
    }
    best = std::min(best, Best(1, kPeriod - kMoving, [&](int call) {
                      arguments.Launch(static_cast<uint64_t>(call), nullptr);
                    }));
  }
  for (CUdeviceptr address : moving) driver.free(address);
  return best;
}

// The same period, but threads launch in turns, each on a stream of its own: what the middle one of
// the launches at which nothing moves takes its thread, two readings of the clock included.
double MeasurePlannedThreads(const Driver& driver, int rounds, unsigned count) {
  constexpr uint64_t kPeriod = 64, kMoving = 2;
  Arguments arguments(driver, 1u << 20);
  CUdeviceptr moving[kMoving];
  for (CUdeviceptr& address : moving) address = Allocate(driver, 4u << 20);
  const uint64_t turns = 50 * static_cast<uint64_t>(rounds) * kPeriod;
  std::vector<std::vector<double>> ns(count);
  std::atomic<uint64_t> turn{0};
  std::vector<std::thread> threads;
  for (unsigned t = 0; t < count; ++t) {
    threads.emplace_back([&, t] {
      const auto stream = reinterpret_cast<CUstream>(uintptr_t{0x10} + t);
      for (uint64_t mine = t; mine < turns; mine += count) {
        while (turn.load(std::memory_order_acquire) != mine) std::this_thread::yield();
        const uint64_t at = mine % kPeriod;
        const double took = Best(1, 1, [&](int) {
          if (at >= kMoving) return arguments.Launch(at, stream);
          void* parameter[] = {&moving[at]};
          driver.launch(KernelOfWords(1), 1, 1, 1, 32, 1, 1, 0, stream, parameter, nullptr);
        });
        if (at >= kMoving) ns[t].push_back(took);
        turn.store(mine + 1, std::memory_order_release);
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  for (CUdeviceptr address : moving) driver.free(address);
  std::vector<double> all;
  for (const std::vector<double>& of : ns) all.insert(all.end(), of.begin(), of.end());
  std::sort(all.begin(), all.end());
  return all[all.size() / 2];
}

// 4 KiB of arguments, all of them pointers.
double MeasureLargeLaunch(const Driver& driver, int rounds) {
  constexpr size_t kWords = 512;
  Arguments arguments(driver, 1u << 20);
  CUdeviceptr structure[kWords];
  for (size_t i = 0; i < kWords; ++i) structure[i] = arguments[i];
  void* parameters[] = {structure};
  return Best(rounds, 500, [&](int) {
    driver.launch(KernelOfWords(kWords), 1, 1, 1, 32, 1, 1, 0, nullptr, parameters, nullptr);
  });
}

// Threads launch at the same time, each on a stream of its own: what one of them pays a launch on
// average, in the middle one of several runs. (In the best one they did not run at the same time.)
double MeasureThreads(const Driver& driver, int rounds) {
  constexpr int kThreads = 2, kCalls = 20000;
  Arguments arguments(driver, 1u << 20);
  std::vector<double> runs;
  for (int round = 0; round < rounds; ++round) {
    std::array<double, kThreads> ns;
    std::vector<std::thread> threads;
    std::atomic<int> ready{0};
    for (int t = 0; t < kThreads; ++t) {
      threads.emplace_back([&, t] {
        const auto stream = reinterpret_cast<CUstream>(uintptr_t{0x10} + static_cast<uintptr_t>(t));
        uint64_t random = static_cast<uint64_t>(t) + 1;
        ++ready;
        while (ready < kThreads) std::this_thread::yield();
        ns[t] = Best(1, kCalls, [&](int) { arguments.Launch(random = Shuffle(random), stream); });
      });
    }
    for (std::thread& thread : threads) thread.join();
    runs.push_back(*std::max_element(ns.begin(), ns.end()));
  }
  std::sort(runs.begin(), runs.end());
  return runs[runs.size() / 2];
}

// A kernel that does nothing, with eight parameters. Only what a burst takes of the thread counts.
double MeasureRealLaunch(const Driver& driver, int rounds) {
  constexpr const char kPtx[] =
      ".version 6.0\n.target sm_50\n.address_size 64\n.visible .entry Nothing(.param .u64 a, "
      ".param .u64 b, .param .u64 c, .param .u64 d, .param .u64 e, .param .u64 f, .param .u64 g, "
      ".param .u64 h)\n{\n ret;\n}\n";
  constexpr int kBurst = 64;
  CUmodule module = nullptr;
  CUfunction function = nullptr;
  if (driver.load(&module, kPtx) != CUDA_SUCCESS ||
      driver.get_function(&function, module, "Nothing") != CUDA_SUCCESS) {
    fprintf(stderr, "hook_overhead: the driver does not load an empty kernel\n");
    exit(1);
  }
  CUdeviceptr memory[8];
  void* parameters[8];
  for (int i = 0; i < 8; ++i) {
    memory[i] = Allocate(driver, 4u << 20);
    parameters[i] = &memory[i];
  }
  double best = 1e30;
  for (int round = 0; round < 10 * rounds; ++round) {
    driver.synchronize();
    best = std::min(best, Best(1, kBurst, [&](int call) {
                      driver.launch(function, 1 + static_cast<unsigned>(call) % 16, 1, 1, 32, 1, 1,
                                    0, nullptr, parameters, nullptr);
                    }));
  }
  driver.synchronize();
  for (CUdeviceptr address : memory) driver.free(address);
  return best;
}

double MeasureAllocFree(const Driver& driver, size_t live, size_t bytes, int rounds, int calls) {
  std::vector<CUdeviceptr> held(live);
  for (CUdeviceptr& address : held) address = Allocate(driver, bytes);
  const double ns = Best(rounds, calls, [&](int call) {
    // An old one goes and a new one comes, spread over all that live.
    CUdeviceptr& address = held[static_cast<size_t>(call) * 7919 % live];
    driver.free(address);
    address = Allocate(driver, bytes);
  });
  for (CUdeviceptr address : held) driver.free(address);
  return ns;
}

double MeasureLookup(const Driver& driver, int rounds) {
  return Best(rounds, 1000, [&](int) {
    void* function;
    CUdriverProcAddressQueryResult status;
    driver.get_proc_address("cuLaunchKernel", &function, 13000, 0, &status);
  });
}

// One process's measurements, printed as JSON for the parent.
int Measure(bool launches_only, int rounds) {
  const Driver driver = Open(false);
  Json figures;
  // 4 MiB more than the budget that Compare gives.
  const CUdeviceptr ballast = Allocate(driver, 8u << 20);
  figures["launch_no_period"] = MeasureLaunchWithoutPeriod(driver, rounds);
  figures["launch_threads"] = MeasureThreads(driver, rounds);
  if (launches_only) figures["launch_4k"] = MeasureLargeLaunch(driver, 5 * rounds);
  driver.free(ballast);
  figures["launch"] = MeasurePlannedLaunch(driver, rounds);
  figures["launch_turns_2"] = MeasurePlannedThreads(driver, rounds, 2);
  figures["launch_turns_4"] = MeasurePlannedThreads(driver, rounds, 4);
  if (!launches_only) {
    figures["lookup"] = MeasureLookup(driver, rounds);
    for (size_t live : {20000, 200000}) {
      figures["large"][std::to_string(live)] =
          MeasureAllocFree(driver, live, 2u << 20, rounds, 1000);
      figures["small"][std::to_string(live)] =
          MeasureAllocFree(driver, live, 64u << 10, rounds, 1000);
    }
  }
  printf("%s\n", figures.dump().c_str());
  return 0;
}

// The same on the installed driver.
int MeasureReal(int rounds) {
  const Driver driver = Open(true);
  Json figures;
  figures["launch"] = MeasureRealLaunch(driver, rounds);
  figures["lookup"] = MeasureLookup(driver, rounds);
  figures["large"] = MeasureAllocFree(driver, 8, 2u << 20, rounds, 50);
  figures["small"] = MeasureAllocFree(driver, 8, 64u << 10, rounds, 50);
  printf("%s\n", figures.dump().c_str());
  return 0;
}

std::string Directory() {
  char path[4096];
  const ssize_t length = readlink("/proc/self/exe", path, sizeof path - 1);
  path[std::max<ssize_t>(length, 0)] = '\0';
  std::string directory(path);
  return directory.substr(0, directory.rfind('/'));
}

constexpr const char* kReal = "--measure-real";

// Runs this program again with `environment` added, and reads its figures.
Json RunSelf(const std::string& shim,
             const std::vector<std::pair<std::string, std::string>>& environment, const char* mode,
             int rounds) {
  int ends[2];
  if (pipe(ends) != 0) exit(1);
  const pid_t child = fork();
  if (child == 0) {
    dup2(ends[1], STDOUT_FILENO);
    close(ends[0]);
    if (strcmp(mode, kReal) != 0) setenv("LD_LIBRARY_PATH", (Directory() + "/noop").c_str(), 1);
    unsetenv("LD_PRELOAD");
    if (!shim.empty()) setenv("LD_PRELOAD", shim.c_str(), 1);
    for (const auto& [name, value] : environment) setenv(name.c_str(), value.c_str(), 1);
    execl("/proc/self/exe", "hook_overhead", mode, std::to_string(rounds).c_str(), nullptr);
    _exit(127);
  }
  close(ends[1]);
  std::string text;
  char buffer[4096];
  for (ssize_t got; (got = read(ends[0], buffer, sizeof buffer)) > 0;)
    text.append(buffer, static_cast<size_t>(got));
  close(ends[0]);
  int status = 0;
  waitpid(child, &status, 0);
  if (!WIFEXITED(status) || WEXITSTATUS(status) != 0) {
    fprintf(stderr, "hook_overhead: the measuring process failed (status 0x%x)\n", status);
    exit(1);
  }
  return Json::parse(text);
}

Json Compare(const std::string& shim, int rounds) {
  const Json none = RunSelf("", {}, "--measure", rounds);
  const Json none_launch = RunSelf("", {}, "--measure-launches", rounds);
  const Json fits = RunSelf(shim, {}, "--measure", rounds);
  // 24 MiB are in use while launches are timed; of the budget below 20 are for managed memory.
  const Json over =
      RunSelf(shim, {{"ATP_BUDGET", "24MiB"}, {"ATP_LOG", "error"}}, "--measure-launches", rounds);
  Json result;
  const auto launches = [&](const char* name) {
    return Json{{"none", none[name]}, {"fits", fits[name]}, {"oversubscribed", over[name]}};
  };
  result["launch_ns"] = launches("launch");
  result["launch_no_period_ns"] = launches("launch_no_period");
  result["launch_threads_ns"] = launches("launch_threads");
  result["launch_turns_2_ns"] = launches("launch_turns_2");
  result["launch_turns_4_ns"] = launches("launch_turns_4");
  result["launch_4k_ns"] = {{"none", none_launch["launch_4k"]},
                            {"oversubscribed", over["launch_4k"]}};
  result["lookup_ns"] = {{"none", none["lookup"]}, {"shim", fits["lookup"]}};
  for (const char* live : {"20000", "200000"}) {
    result["alloc_free_ns"]["live"][live] = {{"none", none["large"][live]},
                                             {"shim", fits["large"][live]}};
    result["small_alloc_free_ns"]["live"][live] = {{"none", none["small"][live]},
                                                   {"shim", fits["small"][live]}};
  }
  return result;
}

Json CompareReal(const std::string& shim, int rounds) {
  const Json none = RunSelf("", {}, kReal, rounds);
  const Json fits = RunSelf(shim, {}, kReal, rounds);
  const Json over = RunSelf(shim, {{"ATP_BUDGET", "24MiB"}, {"ATP_LOG", "error"}}, kReal, rounds);
  Json result;
  result["launch_ns"] = {
      {"none", none["launch"]}, {"fits", fits["launch"]}, {"oversubscribed", over["launch"]}};
  result["lookup_ns"] = {{"none", none["lookup"]}, {"shim", fits["lookup"]}};
  result["alloc_free_ns"] = {{"none", none["large"]}, {"shim", fits["large"]}};
  result["small_alloc_free_ns"] = {{"none", none["small"]}, {"shim", fits["small"]}};
  return result;
}

void PrintTable(const Json& r) {
  printf("%-34s %12s %12s %16s\n", "nanoseconds", "without", "with, fits", "oversubscribed");
  const std::pair<const char*, const char*> launches[] = {
      {"launch_ns", "launch, 8 arguments"},
      {"launch_no_period_ns", "launch, 8 arguments, no period"},
      {"launch_threads_ns", "launch, no period, 2 threads"},
      {"launch_turns_2_ns", "launch, 2 threads in turns"},
      {"launch_turns_4_ns", "launch, 4 threads in turns"}};
  for (const auto& [key, words] : launches) {
    printf("%-34s %12.1f %12.1f %16.1f\n", words, r[key]["none"].get<double>(),
           r[key]["fits"].get<double>(), r[key]["oversubscribed"].get<double>());
  }
  printf("%-34s %12.1f %12s %16.1f\n", "launch, 4 KiB of arguments",
         r["launch_4k_ns"]["none"].get<double>(), "",
         r["launch_4k_ns"]["oversubscribed"].get<double>());
  printf("%-34s %12.1f %12.1f\n", "look-up", r["lookup_ns"]["none"].get<double>(),
         r["lookup_ns"]["shim"].get<double>());
  for (const char* live : {"20000", "200000"}) {
    printf("%-34s %12.1f %12.1f\n", (std::string("alloc + free, 2 MiB, live ") + live).c_str(),
           r["alloc_free_ns"]["live"][live]["none"].get<double>(),
           r["alloc_free_ns"]["live"][live]["shim"].get<double>());
    printf("%-34s %12.1f %12.1f\n", (std::string("alloc + free, 64 KiB, live ") + live).c_str(),
           r["small_alloc_free_ns"]["live"][live]["none"].get<double>(),
           r["small_alloc_free_ns"]["live"][live]["shim"].get<double>());
  }
}

}  // namespace

int main(int argc, char** argv) {
  bool json = false, real = false;
  int rounds = 40;
  std::string shim = Directory() + "/../../lib/libatpshim.so";
  for (int i = 1; i < argc; ++i) {
    const std::string argument = argv[i];
    if (argument == "--measure" || argument == "--measure-launches") {
      return Measure(argument == "--measure-launches", i + 1 < argc ? atoi(argv[i + 1]) : 1);
    }
    if (argument == kReal) return MeasureReal(i + 1 < argc ? atoi(argv[i + 1]) : 1);
    if (argument == "--json") {
      json = true;
    } else if (argument == "--real") {
      real = json = true;
    } else if (argument == "--quick") {
      rounds = 2;
    } else if (argument == "--shim" && i + 1 < argc) {
      shim = argv[++i];
    } else {
      const bool help = argument == "--help";
      fprintf(help ? stdout : stderr,
              "usage: hook_overhead [--json] [--quick] [--real] [--shim FILE]\n"
              "Nanoseconds that the preload library adds to launches, allocations, frees and "
              "look-ups.\n--real: on the installed driver, as JSON.\n"
              "Exit codes: 0 measured, 1 something failed, 2 usage.\n");
      return help ? 0 : 2;
    }
  }
  if (access(shim.c_str(), R_OK) != 0) {
    fprintf(stderr, "hook_overhead: no preload library at %s (give one with --shim)\n",
            shim.c_str());
    return 1;
  }
  const Json result = real ? CompareReal(shim, rounds) : Compare(shim, rounds);
  if (json) {
    printf("%s\n", result.dump().c_str());
  } else {
    PrintTable(result);
  }
  return 0;
}
