// SPDX-License-Identifier: Apache-2.0
// Uses memory in every way that the driver API has, right and wrong, and prints each answer as
// "case: answer". What it prints must not depend on whether a preload library is there. Addresses
// and handles are not printed, only relations between them.
#include <cuda.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include <thread>
#include <vector>

namespace {

constexpr size_t kMiB = 1u << 20;

void Say(const char* name, CUresult result) {
  const char* text = "?";
  cuGetErrorName(result, &text);
  printf("%s: %s\n", name, text);
}
void Say(const char* name, const char* what, unsigned long long value) {
  printf("%s: %s %llu\n", name, what, value);
}

CUdeviceptr Allocate(size_t bytes) {
  CUdeviceptr address = 0;
  const CUresult result = cuMemAlloc(&address, bytes);
  if (result != CUDA_SUCCESS) Say("allocation", result);
  return address;
}

void Frees() {
  for (size_t bytes : {size_t{100}, size_t{300} * 1024, 3 * kMiB, 20 * kMiB}) {
    const CUdeviceptr address = Allocate(bytes);
    Say("free of an interior pointer", cuMemFree(address + 256));
    std::thread([&] {
      CUcontext context;
      cuDevicePrimaryCtxRetain(&context, 0);
      cuCtxSetCurrent(context);
      Say("free from another thread", cuMemFree(address));
      cuDevicePrimaryCtxRelease(0);
    }).join();
    Say("double free", cuMemFree(address));
  }
  Say("free of null", cuMemFree(0));
  Say("free of nonsense", cuMemFree(0x123456789000));
  Say("allocation of nothing", cuMemAlloc(nullptr, 0));
  CUdeviceptr address;
  Say("allocation of zero bytes", cuMemAlloc(&address, 0));
  Say("allocation of far too much", cuMemAlloc(&address, size_t{1} << 50));
}

void Ranges() {
  for (size_t bytes : {size_t{100}, size_t{300} * 1024, 3 * kMiB + 17, 20 * kMiB}) {
    const CUdeviceptr address = Allocate(bytes);
    CUdeviceptr base = 0;
    size_t size = 0;
    Say("range", cuMemGetAddressRange(&base, &size, address + bytes / 2));
    Say("range", "starts where the allocation does", base == address);
    Say("range", "has bytes", size);
    CUdeviceptr start = 0;
    size_t attribute_size = 0;
    CUpointer_attribute attributes[] = {CU_POINTER_ATTRIBUTE_RANGE_START_ADDR,
                                        CU_POINTER_ATTRIBUTE_RANGE_SIZE};
    void* values[] = {&start, &attribute_size};
    Say("attributes", cuPointerGetAttributes(2, attributes, values, address + 8));
    Say("attributes", "start where the allocation does", start == address);
    Say("attributes", "have bytes", attribute_size);
    Say("attribute", cuPointerGetAttribute(&start, CU_POINTER_ATTRIBUTE_RANGE_START_ADDR, address));
    Say("attribute", "starts where the allocation does", start == address);
    unsigned type = 0;
    Say("type", cuPointerGetAttribute(&type, CU_POINTER_ATTRIBUTE_MEMORY_TYPE, address));
    Say("type", "is", type);
    CUcontext owner = nullptr, current = nullptr;
    cuCtxGetCurrent(&current);
    Say("owner", cuPointerGetAttribute(&owner, CU_POINTER_ATTRIBUTE_CONTEXT, address));
    Say("owner", "is the current context", owner == current);
    int ordinal = -1;
    Say("ordinal", cuPointerGetAttribute(&ordinal, CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL, address));
    Say("ordinal", "is", static_cast<unsigned long long>(ordinal));
    Say("free", cuMemFree(address));
  }
}

void Contents() {
  const CUdeviceptr address = Allocate(6 * kMiB);
  std::vector<unsigned> host(6 * kMiB / 4, 5);
  Say("set", cuMemsetD32(address, 3, host.size()));
  Say("set 2D", cuMemsetD2D8(address, 4096, 9, 100, 10));
  Say("copy within", cuMemcpyDtoD(address + 3 * kMiB, address, kMiB));
  Say("copy of either kind", cuMemcpy(address + 5 * kMiB, address + 3 * kMiB, 4096));
  Say("copy out", cuMemcpyDtoH(host.data(), address, 6 * kMiB));
  unsigned long long sum = 0;
  for (unsigned value : host) sum += value;
  Say("contents", "add up to", sum);
  Say("copy past the end", cuMemcpyDtoH(host.data(), address + 5 * kMiB + 4096, 8 * kMiB));
  Say("free", cuMemFree(address));
  size_t pitch = 0;
  CUdeviceptr pitched = 0, unused = 0;
  Say("pitched", cuMemAllocPitch(&pitched, &pitch, 1000, 3000, 4));
  Say("pitched", "rows hold the width", pitch >= 1000 && pitch % 256 == 0);
  Say("pitched with elements of 5 bytes", cuMemAllocPitch(&unused, &pitch, 1000, 3000, 5));
  Say("free", cuMemFree(pitched));
}

void StreamOrdered() {
  CUstream stream;
  cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING);
  CUdeviceptr in_order = 0;
  Say("allocation in order", cuMemAllocAsync(&in_order, 3 * kMiB, stream));
  Say("plain free of it", cuMemFree(in_order));
  Say("wait", cuStreamSynchronize(stream));
  cuStreamDestroy(stream);
}

// A plain allocation may be freed in stream order (NVIDIA, "Using the CUDA Stream-Ordered Memory
// Allocator": the memory goes with the stream's next synchronisation).
void PlainFreedInOrder() {
  CUstream stream;
  cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING);
  const CUdeviceptr plain = Allocate(3 * kMiB);
  Say("set in order", cuMemsetD8Async(plain, 1, 3 * kMiB, stream));
  Say("free in order", cuMemFreeAsync(plain, stream));
  Say("and once more", cuMemFree(plain));
  Say("wait", cuStreamSynchronize(stream));
  cuStreamDestroy(stream);
}

void Captured() {
  CUstream stream;
  CUgraph graph = nullptr;
  CUgraphExec runnable = nullptr;
  cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING);
  const CUdeviceptr memory = Allocate(4 * kMiB);
  Say("begin", cuStreamBeginCapture(stream, CU_STREAM_CAPTURE_MODE_RELAXED));
  const CUdeviceptr during = Allocate(4 * kMiB);
  Say("set", cuMemsetD8Async(memory, 1, 4 * kMiB, stream));
  Say("copy", cuMemcpyDtoDAsync(during, memory, kMiB, stream));
  Say("end", cuStreamEndCapture(stream, &graph));
  size_t nodes = 0;
  Say("nodes", cuGraphGetNodes(graph, nullptr, &nodes));
  Say("nodes", "are", nodes);
  Say("instantiate", cuGraphInstantiate(&runnable, graph, 0));
  Say("launch", cuGraphLaunch(runnable, stream));
  Say("wait", cuStreamSynchronize(stream));
  unsigned char byte = 0;
  cuMemcpyDtoH(&byte, during + kMiB - 1, 1);
  Say("captured copy", "brought", byte);
  Say("free", cuMemFree(during));
  Say("free", cuMemFree(memory));
  Say("end without begin", cuStreamEndCapture(stream, &graph));
  cuGraphExecDestroy(runnable);
  cuStreamDestroy(stream);
}

void Numbers() {
  size_t free_before, free_after, total, device_total;
  cuMemGetInfo(&free_before, &total);
  cuDeviceTotalMem(&device_total, 0);
  Say("total", "is the device's", total == device_total);
  const CUdeviceptr address = Allocate(16 * kMiB);
  cuMemGetInfo(&free_after, &total);
  Say("free", "fell by what was allocated", free_before - free_after);
  cuMemFree(address);
  cuMemGetInfo(&free_after, &total);
  Say("free", "came back", free_before == free_after);
  CUdeviceptr all[200] = {};
  bool shrinks = true;
  size_t last = free_after;
  for (CUdeviceptr& one : all) {
    if (cuMemAlloc(&one, 2 * kMiB) != CUDA_SUCCESS) break;
    cuMemGetInfo(&free_after, &total);
    shrinks = shrinks && free_after <= last;
    last = free_after;
  }
  Say("free", "never grows while we allocate", shrinks);
  for (CUdeviceptr one : all) {
    if (one != 0) cuMemFree(one);
  }
}

void Contexts() {
  CUcontext own, before;
  cuCtxGetCurrent(&before);
  Say("create", cuCtxCreate(&own, nullptr, 0, 0));
  const CUdeviceptr address = Allocate(4 * kMiB);
  Say("set", cuMemsetD8(address, 1, 4 * kMiB));
  Say("destroy", cuCtxDestroy(own));
  cuCtxSetCurrent(before);
  Say("free after the context is gone", cuMemFree(address));
  const CUdeviceptr in_primary = Allocate(4 * kMiB);
  Say("reset", cuDevicePrimaryCtxReset(0));
  (void)in_primary;
  CUcontext again;
  cuDevicePrimaryCtxRetain(&again, 0);
  cuCtxSetCurrent(again);
  const CUdeviceptr fresh = Allocate(4 * kMiB);
  Say("free of fresh memory", cuMemFree(fresh));
}

void WithoutContext() {
  CUdeviceptr address;
  CUcontext current;
  cuCtxGetCurrent(&current);
  cuCtxSetCurrent(nullptr);
  Say("allocation without a context", cuMemAlloc(&address, 4 * kMiB));
  cuCtxSetCurrent(current);
}

}  // namespace

int main(int argc, char** argv) {
  CUdeviceptr address;
  CUcontext context;
  Say("allocation before cuInit", cuMemAlloc(&address, 4 * kMiB));
  if (cuInit(0) != CUDA_SUCCESS || cuDevicePrimaryCtxRetain(&context, 0) != CUDA_SUCCESS ||
      cuCtxSetCurrent(context) != CUDA_SUCCESS) {
    printf("no device\n");
    return 1;
  }
  const struct {
    const char* name;
    void (*run)();
  } kCases[] = {{"frees", Frees},         {"ranges", Ranges},           {"contents", Contents},
                {"order", StreamOrdered}, {"plain", PlainFreedInOrder}, {"capture", Captured},
                {"numbers", Numbers},     {"bare", WithoutContext},     {"contexts", Contexts}};
  for (const auto& one : kCases) {
    if (argc == 2 && strcmp(argv[1], one.name) == 0) one.run();
  }
  return 0;
}
