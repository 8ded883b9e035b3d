// SPDX-License-Identifier: Apache-2.0
// A process that uses the driver in the ways in which processes come and go: guest WAY. Prints what
// it sees; opens the driver itself.
#include <cuda.h>
#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <initializer_list>
#include <set>
#include <string>
#include <thread>
#include <vector>

namespace {

template <typename F>
F Find(const char* symbol) {
  void* handle = dlopen("libcuda.so.1", RTLD_NOW);
  void* function = handle != nullptr ? dlsym(handle, symbol) : nullptr;
  if (function == nullptr) {
    printf("no %s\n", symbol);
    exit(3);
  }
  return reinterpret_cast<F>(function);
}

// Allocates, frees and asks; true when all of it works.
bool Use() {
  const auto init = Find<decltype(&cuInit)>("cuInit");
  const auto retain = Find<decltype(&cuDevicePrimaryCtxRetain)>("cuDevicePrimaryCtxRetain");
  const auto set_current = Find<decltype(&cuCtxSetCurrent)>("cuCtxSetCurrent");
  const auto allocate = Find<decltype(&cuMemAlloc)>("cuMemAlloc_v2");
  const auto release = Find<decltype(&cuMemFree)>("cuMemFree_v2");
  CUcontext context;
  if (init(0) != 0 || retain(&context, 0) != 0 || set_current(context) != 0) return false;
  for (size_t bytes : {size_t{100}, size_t{3} << 20, size_t{40} << 20}) {
    CUdeviceptr address = 0;
    if (allocate(&address, bytes) != 0 || release(address) != 0) return false;
  }
  return true;
}

void WaitAndPrint(const char* what, pid_t child) {
  int status = 0;
  waitpid(child, &status, 0);
  printf("%s: exit %d signal %d\n", what, WIFEXITED(status) ? WEXITSTATUS(status) : -1,
         WIFSIGNALED(status) ? WTERMSIG(status) : 0);
}

template <typename Body>
void InChild(const char* what, Body body) {
  fflush(stdout);
  const pid_t child = fork();
  if (child == 0) _exit(body() ? 0 : 1);
  WaitAndPrint(what, child);
}

// A call that takes none of the driver's locks, so that only ours could hang it.
bool AskInForkedChild() {
  size_t free = 0, total = 0;
  return Find<decltype(&cuMemGetInfo)>("cuMemGetInfo_v2")(&free, &total) == 0 && total > 0;
}

void ForkBeforeUse() {
  InChild("child uses", Use);
  printf("parent uses: %d\n", Use());
}
void ForkAfterLookups() {
  Find<decltype(&cuGetProcAddress)>("cuGetProcAddress_v2");
  void* function = nullptr;
  CUdriverProcAddressQueryResult status;
  Find<decltype(&cuGetProcAddress)>("cuGetProcAddress_v2")("cuLaunchKernel", &function, 13000, 0,
                                                           &status);
  InChild("child uses", Use);
  printf("parent uses: %d\n", Use());
}
// Memory of the parent's, freed in a child, which cannot have it.
void ForkAfterUse() {
  printf("parent uses: %d\n", Use());
  InChild("child asks", AskInForkedChild);
  CUdeviceptr address = 0;
  Find<decltype(&cuMemAlloc)>("cuMemAlloc_v2")(&address, 3u << 20);
  const auto release = Find<decltype(&cuMemFree)>("cuMemFree_v2");
  InChild("child frees", [&] { return release(address) == CUDA_SUCCESS; });
  printf("parent frees: %d\n", release(address));
  printf("parent uses: %d\n", Use());
}
void ForkWhileInside() {
  printf("parent uses: %d\n", Use());
  std::atomic<bool> stop{false};
  std::thread busy([&] {
    while (!stop.load()) Use();
  });
  for (int i = 0; i < 20; ++i) InChild("child asks", AskInForkedChild);
  stop = true;
  busy.join();
}
void ExecAfterUse(char* self) {
  Use();
  fflush(stdout);
  const pid_t child = vfork();
  if (child == 0) {
    execl(self, self, "use", nullptr);
    _exit(9);
  }
  WaitAndPrint("vforked child", child);
  fflush(stdout);
  execl(self, self, "use", nullptr);
}
void ManyThreads() {
  std::atomic<int> good{0};
  std::vector<std::thread> threads;
  for (int i = 0; i < 32; ++i) threads.emplace_back([&] { good += Use(); });
  for (std::thread& thread : threads) thread.join();
  printf("threads that could use it: %d\n", good.load());
}
void ThreadsThatDie() {
  for (int i = 0; i < 10; ++i) {
    pthread_t thread;
    pthread_create(
        &thread, nullptr,
        [](void*) -> void* {
          Use();
          pthread_exit(nullptr);
        },
        nullptr);
    pthread_join(thread, nullptr);
  }
  printf("after the threads: %d\n", Use());
}
void ExitInThread() {
  Use();
  printf("exits\n");
  fflush(stdout);
  std::thread([] { exit(4); }).join();
}
// A library of the program that opens, uses and closes the driver, again and again.
void CloseTheDriver() {
  for (int i = 0; i < 3; ++i) {
    void* handle = dlopen("libcuda.so.1", RTLD_NOW);
    printf("uses: %d\n", Use());
    while (handle != nullptr && dlclose(handle) == 0 && i != 2) {
      handle = dlopen("libcuda.so.1", RTLD_NOW | RTLD_NOLOAD);
      if (handle != nullptr) dlclose(handle);
      break;
    }
  }
}
// As daemon(3) does it: the grandchild lives on without a terminal and uses the device then.
void Daemonised() {
  int ends[2];
  if (pipe(ends) != 0) exit(5);
  fflush(stdout);
  const pid_t child = fork();
  if (child == 0) {
    setsid();
    if (fork() == 0) {
      const char answer = Use() ? 'y' : 'n';
      if (write(ends[1], &answer, 1) != 1) _exit(6);
      exit(0);
    }
    _exit(0);
  }
  WaitAndPrint("child", child);
  close(ends[1]);
  char answer = '?';
  if (read(ends[0], &answer, 1) != 1) answer = '-';
  printf("the daemon uses: %c\n", answer);
}
// What is loaded into this process: the shim, and which C++ libraries.
void Loaded() {
  FILE* maps = fopen("/proc/self/maps", "r");
  char line[1024];
  bool shim = false;
  std::set<std::string> libraries;
  while (maps != nullptr && fgets(line, sizeof line, maps) != nullptr) {
    shim |= strstr(line, "libatpshim") != nullptr;
    if (strstr(line, "libstdc++") != nullptr) libraries.insert(strchr(line, '/'));
  }
  fprintf(stderr, "the shim is %s\n", shim ? "loaded" : "not loaded");
  for (const std::string& library : libraries) printf("%s", library.c_str());
}
// Workers that a launcher starts after it has asked what there is, but before it used a device.
void Workers() {
  Find<decltype(&cuInit)>("cuInit")(0);
  int count = 0;
  Find<decltype(&cuDeviceGetCount)>("cuDeviceGetCount")(&count);
  printf("devices: %d\n", count);
  for (int i = 0; i < 4; ++i) {
    InChild("worker", [] {
      size_t bytes = 0;
      return Find<decltype(&cuDeviceTotalMem)>("cuDeviceTotalMem_v2")(&bytes, 0) == 0 && bytes > 0;
    });
  }
  printf("parent uses: %d\n", Use());
}
// Destructors of the program's statics run after handlers that were registered later, ours among
// them.
struct UsesAtEnd {
  ~UsesAtEnd() { printf("at the end: %d\n", Use()); }
};
void StaticDestructor() {
  static UsesAtEnd at_end;
  printf("uses: %d\n", Use());
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 2) return 2;
  const struct {
    const char* name;
    void (*run)();
  } kWays[] = {{"fork-before", ForkBeforeUse},
               {"fork-after-lookups", ForkAfterLookups},
               {"fork-after", ForkAfterUse},
               {"fork-inside", ForkWhileInside},
               {"threads", ManyThreads},
               {"dying-threads", ThreadsThatDie},
               {"exit-in-thread", ExitInThread},
               {"static-destructor", StaticDestructor},
               {"dlclose", CloseTheDriver},
               {"daemon", Daemonised},
               {"loaded", Loaded},
               {"workers", Workers}};
  for (const auto& way : kWays) {
    if (strcmp(argv[1], way.name) == 0) way.run();
  }
  if (strcmp(argv[1], "use") == 0) printf("uses: %d\n", Use());
  if (strcmp(argv[1], "exec") == 0) ExecAfterUse(argv[0]);
  if (strcmp(argv[1], "at-once") == 0) {
    printf("uses: %d\n", Use());
    fflush(stdout);
    _exit(0);
  }
  return 0;
}
