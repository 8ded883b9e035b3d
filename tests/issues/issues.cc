// SPDX-License-Identifier: Apache-2.0
// What programs did whose users reported a fault: issues CASE. Prints what the program sees.
#include <cuda.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <thread>
#include <vector>

namespace {

constexpr size_t kMiB = 1u << 20;

void Say(const char* what, CUresult result) {
  const char* name = "?";
  cuGetErrorName(result, &name);
  printf("%s: %s\n", what, name);
}

bool Use(int device, unsigned char value) {
  CUcontext context;
  CUdeviceptr address = 0;
  unsigned char byte = 0;
  return cuInit(0) == CUDA_SUCCESS && cuDevicePrimaryCtxRetain(&context, device) == CUDA_SUCCESS &&
         cuCtxSetCurrent(context) == CUDA_SUCCESS &&
         cuMemAlloc(&address, 4 * kMiB) == CUDA_SUCCESS &&
         cuMemsetD8(address, value, 4 * kMiB) == CUDA_SUCCESS &&
         cuMemcpyDtoH(&byte, address + 4 * kMiB - 1, 1) == CUDA_SUCCESS && byte == value &&
         cuMemFree(address) == CUDA_SUCCESS;
}

size_t Free() {
  size_t free = 0, total = 0;
  cuMemGetInfo(&free, &total);
  return free;
}

// Whatever is refused (ATP_SIM_FAULT), tried again, freed twice or never was: the numbers close.
void Accounts() {
  const size_t before = Free();
  std::vector<CUdeviceptr> plain, ordered;
  for (int round = 0; round < 2; ++round) {
    for (size_t bytes : {size_t{100}, 300 * kMiB / 1024, 3 * kMiB, 20 * kMiB}) {
      CUdeviceptr address = 0;
      size_t pitch = 0;
      if (cuMemAlloc(&address, bytes) == CUDA_SUCCESS) plain.push_back(address);
      if (cuMemAllocPitch(&address, &pitch, 1000, bytes / 500 + 1, 4) == CUDA_SUCCESS) {
        plain.push_back(address);
      }
      if (cuMemAllocAsync(&address, bytes, nullptr) == CUDA_SUCCESS) ordered.push_back(address);
    }
  }
  CUmemAllocationProp prop = {};
  prop.type = CU_MEM_ALLOCATION_TYPE_PINNED;
  prop.location = {CU_MEM_LOCATION_TYPE_DEVICE, {0}};
  for (int round = 0; round < 2; ++round) {
    CUdeviceptr range = 0;
    CUmemGenericAllocationHandle handle = 0;
    if (cuMemAddressReserve(&range, 8 * kMiB, 0, 0, 0) != CUDA_SUCCESS) continue;
    if (cuMemCreate(&handle, 4 * kMiB, &prop, 0) == CUDA_SUCCESS) {
      const bool mapped = cuMemMap(range, 4 * kMiB, 0, handle, 0) == CUDA_SUCCESS;
      cuMemRelease(handle);
      while (mapped && cuMemUnmap(range, 4 * kMiB) != CUDA_SUCCESS) {
      }
    }
    while (cuMemAddressFree(range, 8 * kMiB) != CUDA_SUCCESS) {
    }
  }
  cuMemFree(0x123456789000);
  for (CUdeviceptr address : plain) {
    while (cuMemFree(address) != CUDA_SUCCESS) {
    }
    if (cuMemFree(address) == CUDA_SUCCESS) printf("freed twice\n");
  }
  for (CUdeviceptr address : ordered) {
    while (cuMemFreeAsync(address, nullptr) != CUDA_SUCCESS) {
    }
  }
  cuCtxSynchronize();
  CUmemoryPool pool;
  cuDeviceGetDefaultMemPool(&pool, 0);
  cuMemPoolTrimTo(pool, 0);
  const size_t after = Free();
  if (after != before) printf("free was %zu and is %zu\n", before, after);
  printf("the numbers close: %d\n", after == before && plain.size() > 10 && ordered.size() > 5);
}

// A launcher looks around and starts a worker for each device.
void Workers() {
  int count = 0;
  cuInit(0);
  cuDeviceGetCount(&count);
  printf("devices: %d\n", count);
  fflush(stdout);
  for (int device = 0; device < count; ++device) {
    const pid_t child = fork();
    if (child == 0) {
      setenv("WORKER", "1", 1);
      char number[16];
      snprintf(number, sizeof number, "%d", device);
      execl("/proc/self/exe", "issues", "worker", number, nullptr);
      _exit(9);
    }
    int status = 0;
    waitpid(child, &status, 0);
    printf("worker %d: exit %d signal %d\n", device, WEXITSTATUS(status),
           WIFSIGNALED(status) ? WTERMSIG(status) : 0);
  }
}

void Visible() {
  int count = 0;
  cuDeviceGetCount(&count);
  printf("devices: %d\n", count);
  for (int device = 0; device < count; ++device) {
    char bus[32] = "";
    size_t total = 0;
    cuDeviceGetPCIBusId(bus, sizeof bus, device);
    cuDeviceTotalMem(&total, device);
    const bool works = Use(device, static_cast<unsigned char>(device + 1));
    printf("%s: %zu bytes, free %zu, used: %d\n", bus, total, Free(), works);
  }
}

void Together() {
  std::atomic<int> good{0};
  std::vector<std::thread> threads;
  for (int i = 0; i < 32; ++i) {
    threads.emplace_back([&, i] { good += Use(0, static_cast<unsigned char>(i + 1)); });
  }
  for (std::thread& thread : threads) thread.join();
  printf("threads that could use it: %d\n", good.load());
}

// Handles for other devices: whether there are any is the driver's answer, and memory stays usable.
void Handles() {
  const auto ask = [](const char* what, CUdeviceptr address) {
    int file = -1;
    Say(what, cuMemGetHandleForAddressRange(&file, address, 2 * kMiB,
                                            CU_MEM_RANGE_HANDLE_TYPE_DMA_BUF_FD, 0));
    if (file >= 0) close(file);
    unsigned value = 0;
    cuMemsetD32(address, 7, kMiB / 2);
    cuMemcpyDtoH(&value, address + 2 * kMiB - 4, 4);
    printf("%s holds %u\n", what, value);
  };
  CUdeviceptr plain = 0, range = 0;
  cuMemAlloc(&plain, 4 * kMiB);
  ask("plain memory", plain);
  CUmemAllocationProp prop = {};
  prop.type = CU_MEM_ALLOCATION_TYPE_PINNED;
  prop.location = {CU_MEM_LOCATION_TYPE_DEVICE, {0}};
  CUmemGenericAllocationHandle handle = 0;
  CUmemAccessDesc access = {prop.location, CU_MEM_ACCESS_FLAGS_PROT_READWRITE};
  cuMemAddressReserve(&range, 8 * kMiB, 0, 0, 0);
  cuMemCreate(&handle, 4 * kMiB, &prop, 0);
  cuMemMap(range, 4 * kMiB, 0, handle, 0);
  cuMemSetAccess(range, 4 * kMiB, &access, 1);
  ask("a range", range);
  Say("unmap", cuMemUnmap(range, 4 * kMiB));
  Say("release", cuMemRelease(handle));
  Say("free of the range", cuMemAddressFree(range, 8 * kMiB));
  Say("free", cuMemFree(plain));
}

// A framework that takes nearly all there is at once, and uses little of it.
void Preallocation() {
  size_t free = 0, total = 0;
  cuMemGetInfo(&free, &total);
  CUdeviceptr all = 0;
  const size_t bytes = total / 10 * 9;
  Say("nine tenths of all", cuMemAlloc(&all, bytes));
  Say("set", cuMemsetD8(all + bytes / 2, 5, 8 * kMiB));
  unsigned char byte = 0;
  Say("copy", cuMemcpyDtoH(&byte, all + bytes / 2 + 8 * kMiB - 1, 1));
  printf("it holds %d, free fell by it: %d\n", byte, free - Free() == bytes);
  Say("free", cuMemFree(all));
  printf("free came back: %d\n", Free() == free);
}

// A stream that writes and awaits values in memory.
void Values() {
  CUstream stream;
  cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING);
  for (size_t bytes : {size_t{64}, 4 * kMiB}) {
    CUdeviceptr address = 0;
    unsigned value = 0;
    cuMemAlloc(&address, bytes);
    cuMemsetD8(address, 0, bytes);
    Say("write", cuStreamWriteValue32(stream, address + bytes - 4, 7, 0));
    Say("wait", cuStreamWaitValue32(stream, address + bytes - 4, 7, CU_STREAM_WAIT_VALUE_GEQ));
    CUstreamBatchMemOpParams both[2] = {};
    for (int i = 0; i < 2; ++i) {
      both[i].writeValue.operation = CU_STREAM_MEM_OP_WRITE_VALUE_64;
      both[i].writeValue.address = address + static_cast<size_t>(i) * 8;
      both[i].writeValue.value64 = static_cast<cuuint64_t>(i) + 1;
    }
    Say("batch", cuStreamBatchMemOp(stream, 2, both, 0));
    Say("end", cuStreamSynchronize(stream));
    cuMemcpyDtoH(&value, address + bytes - 4, 4);
    printf("value %u\n", value);
    Say("free", cuMemFree(address));
  }
  cuStreamDestroy(stream);
}

// The same name stands for functions with other arguments from 13.0 on.
void Versions() {
  CUdeviceptr managed = 0;
  cuMemAllocManaged(&managed, 4 * kMiB, CU_MEM_ATTACH_GLOBAL);
  const auto find = [](const char* name, int version) {
    void* function = nullptr;
    CUdriverProcAddressQueryResult status;
    cuGetProcAddress(name, &function, version, 0, &status);
    return function;
  };
  using PrefetchOld = CUresult (*)(CUdeviceptr, size_t, CUdevice, CUstream);
  using PrefetchNew = CUresult (*)(CUdeviceptr, size_t, CUmemLocation, unsigned, CUstream);
  using AdviseOld = CUresult (*)(CUdeviceptr, size_t, CUmem_advise, CUdevice);
  using AdviseNew = CUresult (*)(CUdeviceptr, size_t, CUmem_advise, CUmemLocation);
  const CUmemLocation device = {CU_MEM_LOCATION_TYPE_DEVICE, {0}};
  Say("prefetch of 8.0", reinterpret_cast<PrefetchOld>(find("cuMemPrefetchAsync", 12010))(
                             managed, 4 * kMiB, 0, nullptr));
  Say("prefetch of 12.2", reinterpret_cast<PrefetchNew>(find("cuMemPrefetchAsync", 12020))(
                              managed, 4 * kMiB, device, 0, nullptr));
  Say("advise of 8.0", reinterpret_cast<AdviseOld>(find("cuMemAdvise", 12010))(
                           managed, 4 * kMiB, CU_MEM_ADVISE_SET_READ_MOSTLY, 0));
  Say("advise of 12.2", reinterpret_cast<AdviseNew>(find("cuMemAdvise", 12020))(
                            managed, 4 * kMiB, CU_MEM_ADVISE_UNSET_READ_MOSTLY, device));
  Say("wait", cuCtxSynchronize());
  Say("free", cuMemFree(managed));
}

}  // namespace

int main(int argc, char** argv) {
  if (argc == 3 && strcmp(argv[1], "worker") == 0) return Use(atoi(argv[2]), 9) ? 0 : 1;
  if (argc != 2) return 2;
  const struct {
    const char* name;
    void (*run)();
    bool needs_context;
  } kCases[] = {{"accounts", Accounts, true}, {"workers", Workers, false},
                {"visible", Visible, false},  {"together", Together, false},
                {"handles", Handles, true},   {"preallocation", Preallocation, true},
                {"values", Values, true},     {"versions", Versions, true}};
  for (const auto& one : kCases) {
    if (strcmp(argv[1], one.name) != 0) continue;
    CUcontext context;
    cuInit(0);
    if (one.needs_context && (cuDevicePrimaryCtxRetain(&context, 0) != CUDA_SUCCESS ||
                              cuCtxSetCurrent(context) != CUDA_SUCCESS)) {
      return 1;
    }
    one.run();
    return 0;
  }
  return 2;
}
