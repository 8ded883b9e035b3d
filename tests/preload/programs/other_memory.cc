// SPDX-License-Identifier: Apache-2.0
// Memory of other kinds beside what cuMemAlloc gives, and memory that is used again early:
//   other_memory PTX WAY
// What it prints does not depend on where memory lies.
#include <cuda.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <initializer_list>
#include <numeric>
#include <string>
#include <vector>

namespace {

constexpr size_t kMiB = size_t{1} << 20;
constexpr size_t kBytes = 4 * kMiB;
const char* ptx = "";
const char* self = "";

void Say(const char* what, CUresult result) {
  const char* name = "?";
  cuGetErrorName(result, &name);
  printf("%s: %s\n", what, name);
}

void Check(CUresult result, const char* what) {
  if (result == CUDA_SUCCESS) return;
  Say(what, result);
  exit(1);
}
#define CHECK(call) Check(call, #call)

CUdeviceptr Allocate(size_t bytes = kBytes) {
  CUdeviceptr address = 0;
  CHECK(cuMemAlloc(&address, bytes));
  return address;
}

// Adds one to each of the numbers, in a stream.
void Bump(CUdeviceptr address, size_t bytes, CUstream stream) {
  static CUfunction bump = [] {
    CUmodule module;
    CUfunction function;
    CHECK(cuModuleLoad(&module, ptx));
    CHECK(cuModuleGetFunction(&function, module, "Bump"));
    return function;
  }();
  unsigned count = static_cast<unsigned>(bytes / 4);
  void* parameters[] = {&address, &count};
  CHECK(cuLaunchKernel(bump, (count + 255) / 256, 1, 1, 256, 1, 1, 0, stream, parameters, nullptr));
}

unsigned long long Sum(CUdeviceptr address, size_t bytes = kBytes) {
  std::vector<unsigned> values(bytes / 4);
  CHECK(cuMemcpyDtoH(values.data(), address, bytes));
  return std::accumulate(values.begin(), values.end(), 0ull);
}

void Arrays() {
  CUarray array = nullptr;
  const CUDA_ARRAY_DESCRIPTOR description = {1024, 512, CU_AD_FORMAT_UNSIGNED_INT32, 1};
  Say("array", cuArrayCreate(&array, &description));
  const CUdeviceptr from = Allocate(2 * kMiB), to = Allocate(2 * kMiB);
  CHECK(cuMemsetD32(from, 3, kMiB / 2));
  CUDA_MEMCPY2D copy = {};
  copy.srcMemoryType = CU_MEMORYTYPE_DEVICE;
  copy.srcDevice = from;
  copy.srcPitch = 4096;
  copy.dstMemoryType = CU_MEMORYTYPE_ARRAY;
  copy.dstArray = array;
  copy.WidthInBytes = 4096;
  copy.Height = 512;
  Say("copy into it", cuMemcpy2D(&copy));
  CUDA_MEMCPY2D back = {};
  back.srcMemoryType = CU_MEMORYTYPE_ARRAY;
  back.srcArray = array;
  back.dstMemoryType = CU_MEMORYTYPE_DEVICE;
  back.dstDevice = to;
  back.dstPitch = 4096;
  back.WidthInBytes = 4096;
  back.Height = 512;
  Say("copy out of it", cuMemcpy2DAsync(&back, nullptr));
  printf("sum %llu\n", Sum(to, 2 * kMiB));
  Say("end of the array", cuArrayDestroy(array));
  for (CUdeviceptr address : {from, to}) Say("free", cuMemFree(address));
}

void Host() {
  void* allocated = nullptr;
  Say("host memory", cuMemHostAlloc(&allocated, kBytes, CU_MEMHOSTALLOC_DEVICEMAP));
  void* registered = aligned_alloc(4096, kBytes);
  Say("registered", cuMemHostRegister(registered, kBytes, CU_MEMHOSTREGISTER_DEVICEMAP));
  const CUdeviceptr own = Allocate();
  for (void* memory : {allocated, registered}) {
    memset(memory, 0, kBytes);
    CUdeviceptr mapped = 0;
    unsigned type = 0;
    Say("its address", cuMemHostGetDevicePointer(&mapped, memory, 0));
    Say("type", cuPointerGetAttribute(&type, CU_POINTER_ATTRIBUTE_MEMORY_TYPE, mapped));
    Bump(mapped, kBytes, nullptr);
    CHECK(cuMemcpyDtoD(own, mapped, kBytes));
    CHECK(cuCtxSynchronize());
    printf("type %u, sum %llu, first %u\n", type, Sum(own), *static_cast<unsigned*>(memory));
    Say("free as if of a device", cuMemFree(mapped));
  }
  Say("unregistered", cuMemHostUnregister(registered));
  Say("free on the host", cuMemFreeHost(allocated));
  Say("free", cuMemFree(own));
  free(registered);
}

// In the process that was given a handle.
void Import(const char* text) {
  CUipcMemHandle handle;
  for (size_t i = 0; i < sizeof handle; ++i) {
    unsigned byte = 0;
    sscanf(text + 2 * i, "%2x", &byte);
    reinterpret_cast<unsigned char*>(&handle)[i] = static_cast<unsigned char>(byte);
  }
  CUdeviceptr theirs = 0;
  const size_t bytes = kMiB / 8;
  Say("import", cuIpcOpenMemHandle(&theirs, handle, CU_IPC_MEM_LAZY_ENABLE_PEER_ACCESS));
  printf("sum %llu\n", Sum(theirs, bytes));
  const CUdeviceptr own = Allocate();
  CHECK(cuMemcpyDtoD(own, theirs, bytes));
  Bump(theirs, bytes, nullptr);
  CHECK(cuCtxSynchronize());
  Say("free of what is another's", cuMemFree(theirs));
  Say("close", cuIpcCloseMemHandle(theirs));
  Say("close again", cuIpcCloseMemHandle(theirs));
  Say("free", cuMemFree(own));
}

void Imported() {
  const CUdeviceptr small = Allocate(kMiB / 8);  // small, and so plain
  CHECK(cuMemsetD32(small, 5, kMiB / 32));
  CUipcMemHandle handle;
  Say("export", cuIpcGetMemHandle(&handle, small));
  std::string text = "import";
  for (size_t i = 0; i < sizeof handle; ++i) {
    char byte[3];
    snprintf(byte, sizeof byte, "%02x", reinterpret_cast<const unsigned char*>(&handle)[i]);
    text += byte;
  }
  fflush(stdout);
  const pid_t child = vfork();
  if (child == 0) {
    execl(self, self, ptx, text.c_str(), nullptr);
    _exit(9);
  }
  int status = 0;
  waitpid(child, &status, 0);
  printf("child: %d, sum %llu\n", status, Sum(small, kMiB / 8));
  Say("free", cuMemFree(small));
}

// Managed memory of the program's own: what it asks for happens, and nothing else.
void Managed() {
  CUdeviceptr address = 0;
  unsigned managed = 0;
  Say("managed", cuMemAllocManaged(&address, kBytes, CU_MEM_ATTACH_GLOBAL));
  memset(reinterpret_cast<void*>(address), 0, kBytes);
  CUmemLocation device = {};
  device.type = CU_MEM_LOCATION_TYPE_DEVICE;
  Say("advice", cuMemAdvise(address, kBytes, CU_MEM_ADVISE_SET_READ_MOSTLY, device));
  Say("prefetch", cuMemPrefetchAsync(address, kBytes, device, 0, nullptr));
  Bump(address, kBytes, nullptr);
  CHECK(cuCtxSynchronize());
  int advised = 0;
  Say("question", cuMemRangeGetAttribute(&advised, sizeof advised,
                                         CU_MEM_RANGE_ATTRIBUTE_READ_MOSTLY, address, kBytes));
  cuPointerGetAttribute(&managed, CU_POINTER_ATTRIBUTE_IS_MANAGED, address);
  printf("advised %d, managed %u, sum %llu\n", advised, managed, Sum(address));
  Say("free", cuMemFree(address));
  Say("free again", cuMemFree(address));
}

// Memory goes while a stream still works on it, and comes back at once to another one.
void Early() {
  CUstream one, two;
  CHECK(cuStreamCreate(&one, CU_STREAM_NON_BLOCKING));
  CHECK(cuStreamCreate(&two, CU_STREAM_NON_BLOCKING));
  for (const size_t bytes : {64 * kMiB / 1024, 3 * kMiB / 4, kBytes}) {
    unsigned long long sum = 0;
    for (int round = 0; round < 8; ++round) {
      const CUdeviceptr first = Allocate(bytes);
      CHECK(cuMemsetD32Async(first, 1000, bytes / 4, one));
      for (int i = 0; i < 20; ++i) Bump(first, bytes, one);
      CHECK(cuMemFree(first));
      const CUdeviceptr second = Allocate(bytes);
      CHECK(cuMemsetD32Async(second, 7, bytes / 4, two));
      Bump(second, bytes, two);
      CHECK(cuStreamSynchronize(two));
      CHECK(cuStreamSynchronize(one));
      sum += Sum(second, bytes);
      CHECK(cuMemFree(second));
    }
    printf("%zu bytes, sum %llu\n", bytes, sum);
  }
}

}  // namespace

int main(int argc, char** argv) {
  CUcontext context;
  if (argc != 3 || cuInit(0) != CUDA_SUCCESS ||
      cuDevicePrimaryCtxRetain(&context, 0) != CUDA_SUCCESS ||
      cuCtxSetCurrent(context) != CUDA_SUCCESS) {
    return 1;
  }
  self = argv[0];
  ptx = argv[1];
  const std::string way = argv[2];
  if (way == "arrays") Arrays();
  if (way == "host") Host();
  if (way == "imported") Imported();
  if (way.rfind("import", 0) == 0 && way != "imported") Import(argv[2] + strlen("import"));
  if (way == "managed") Managed();
  if (way == "early") Early();
  return 0;
}
