// SPDX-License-Identifier: Apache-2.0
// Uses stream-ordered memory and pools in every way, right and wrong, and prints each answer as
// "case: answer". What it prints must not depend on whether a preload library is there.
#include <cuda.h>
#include <stdio.h>
#include <string.h>

#include <set>
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

CUstream NewStream() {
  CUstream stream;
  cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING);
  return stream;
}

CUdeviceptr Allocate(size_t bytes, CUstream stream) {
  CUdeviceptr address = 0;
  const CUresult result = cuMemAllocAsync(&address, bytes, stream);
  if (result != CUDA_SUCCESS) Say("allocation", result);
  return address;
}

CUmemoryPool DefaultPool() {
  CUmemoryPool pool;
  cuDeviceGetDefaultMemPool(&pool, 0);
  return pool;
}

unsigned long long Number(CUmemoryPool pool, CUmemPool_attribute attribute) {
  cuuint64_t value = ~0ull;
  const CUresult result = cuMemPoolGetAttribute(pool, attribute, &value);
  if (result != CUDA_SUCCESS) Say("attribute", result);
  return value;
}

bool Holds(CUdeviceptr address, size_t bytes, unsigned char value) {
  std::vector<unsigned char> host(bytes);
  cuMemcpyDtoH(host.data(), address, bytes);
  for (unsigned char byte : host) {
    if (byte != value) return false;
  }
  return true;
}

void Frees() {
  const CUstream stream = NewStream();
  for (size_t bytes : {size_t{100}, 700 * 1024 + size_t{1}, 3 * kMiB, 20 * kMiB}) {
    const CUdeviceptr address = Allocate(bytes, stream);
    Say("set", cuMemsetD8Async(address, 7, bytes, stream));
    Say("interior free", cuMemFreeAsync(address + 256, stream));
    Say("free", cuMemFreeAsync(address, stream));
    Say("double free", cuMemFreeAsync(address, stream));
    Say("wait", cuStreamSynchronize(stream));
    Say("double free after it", cuMemFreeAsync(address, stream));
    Say("plain free after it", cuMemFree(address));
    const CUdeviceptr other = Allocate(bytes, stream);
    Say("set", cuMemsetD8Async(other, 8, bytes, stream));
    Say("plain free", cuMemFree(other));
    Say("free after it", cuMemFreeAsync(other, stream));
  }
  Say("free of null", cuMemFreeAsync(0, stream));
  Say("free of nonsense", cuMemFreeAsync(0x123456789000, stream));
  CUdeviceptr address;
  Say("allocation of nothing", cuMemAllocAsync(&address, 0, stream));
  Say("allocation to nowhere", cuMemAllocAsync(nullptr, 100, stream));
  Say("allocation of far too much", cuMemAllocAsync(&address, size_t{1} << 50, stream));
  Say("allocation from no pool", cuMemAllocFromPoolAsync(&address, 100, nullptr, stream));
}

// Memory that a stream still uses is nobody else's, even when it is freed.
void Order() {
  const CUstream a = NewStream(), b = NewStream();
  constexpr size_t kBytes = 4 * kMiB;
  const CUdeviceptr result = Allocate(kBytes, a);
  bool good = true;
  for (unsigned char round = 1; round <= 20; ++round) {
    const CUdeviceptr first = Allocate(kBytes, a);
    cuMemsetD8Async(first, round, kBytes, a);
    cuMemcpyDtoDAsync(result, first, kBytes, a);
    cuMemFreeAsync(first, a);
    const CUdeviceptr second = Allocate(kBytes, b);
    cuMemsetD8Async(second, 0xEE, kBytes, b);
    cuMemFreeAsync(second, b);
    const CUdeviceptr third = Allocate(kBytes, a);
    cuMemsetD8Async(third, 0xDD, kBytes, a);
    cuMemFreeAsync(third, a);
    cuStreamSynchronize(a);
    good = good && Holds(result, kBytes, round);
  }
  Say("every round", "read what it wrote", good);
  cuStreamSynchronize(b);
  cuMemFree(result);
}

void Streams() {
  CUstream stream = NewStream();
  const CUdeviceptr first = Allocate(4 * kMiB, stream);
  cuMemsetD8Async(first, 1, 4 * kMiB, stream);
  Say("free", cuMemFreeAsync(first, stream));
  Say("destroy", cuStreamDestroy(stream));
  stream = NewStream();
  const CUdeviceptr second = Allocate(4 * kMiB, stream);
  cuMemsetD8Async(second, 2, 4 * kMiB, stream);
  cuStreamSynchronize(stream);
  Say("memory of the next stream", "holds what it wrote", Holds(second, 4 * kMiB, 2));
  Say("free in the default stream", cuMemFreeAsync(second, nullptr));
  const CUdeviceptr third = Allocate(4 * kMiB, CU_STREAM_PER_THREAD);
  cuMemsetD8Async(third, 3, 4 * kMiB, CU_STREAM_PER_THREAD);
  cuStreamSynchronize(CU_STREAM_PER_THREAD);
  Say("memory of the thread's stream", "holds what it wrote", Holds(third, 4 * kMiB, 3));
  Say("free", cuMemFreeAsync(third, CU_STREAM_PER_THREAD));
  cuCtxSynchronize();
}

void Many() {
  const CUstream stream = NewStream();
  std::vector<CUdeviceptr> all;
  for (size_t i = 0; i < 300; ++i) {
    const size_t bytes = 20000 + i * 100;
    all.push_back(Allocate(bytes, stream));
    cuMemsetD8Async(all.back(), static_cast<unsigned char>(i), bytes, stream);
  }
  cuStreamSynchronize(stream);
  bool good = true;
  for (size_t i = 0; i < all.size(); ++i) {
    good = good && Holds(all[i], 20000 + i * 100, static_cast<unsigned char>(i));
  }
  Say("small pieces", "hold what was written", good);
  Say("small pieces", "are at addresses", std::set<CUdeviceptr>(all.begin(), all.end()).size());
  for (CUdeviceptr address : all) good = good && cuMemFreeAsync(address, stream) == CUDA_SUCCESS;
  Say("frees", "work", good);
  cuStreamSynchronize(stream);
}

void Numbers() {
  const CUstream stream = NewStream();
  const CUmemoryPool pool = DefaultPool();
  Say("used", "at first", Number(pool, CU_MEMPOOL_ATTR_USED_MEM_CURRENT));
  const CUdeviceptr address = Allocate(8 * kMiB, stream);
  Say("used", "is", Number(pool, CU_MEMPOOL_ATTR_USED_MEM_CURRENT));
  Say("reserved", "covers it", Number(pool, CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT) >= 8 * kMiB);
  const CUdeviceptr other = Allocate(4 * kMiB, stream);
  cuMemFreeAsync(other, stream);
  Say("high", "is", Number(pool, CU_MEMPOOL_ATTR_USED_MEM_HIGH));
  cuuint64_t zero = 0;
  Say("set back", cuMemPoolSetAttribute(pool, CU_MEMPOOL_ATTR_USED_MEM_HIGH, &zero));
  Say("high", "is", Number(pool, CU_MEMPOOL_ATTR_USED_MEM_HIGH));
  CUdeviceptr base = 0;
  size_t size = 0;
  Say("range", cuMemGetAddressRange(&base, &size, address + 5000));
  Say("range", "starts with it", base == address);
  Say("range", "has bytes", size);
  CUmemoryPool owner = nullptr;
  Say("pool of it", cuPointerGetAttribute(&owner, CU_POINTER_ATTRIBUTE_MEMPOOL_HANDLE, address));
  Say("pool of it", "is the default one", owner == pool);
  cuMemFreeAsync(address, stream);
  cuStreamSynchronize(stream);
  Say("used", "at the end", Number(pool, CU_MEMPOOL_ATTR_USED_MEM_CURRENT));
  Say("trim", cuMemPoolTrimTo(pool, 0));
  Say("reserved", "at the end", Number(pool, CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT));
}

void Own() {
  const CUstream stream = NewStream();
  CUmemPoolProps props = {};
  props.allocType = CU_MEM_ALLOCATION_TYPE_PINNED;
  props.location = {CU_MEM_LOCATION_TYPE_DEVICE, {0}};
  props.maxSize = 16 * kMiB;
  CUmemoryPool pool;
  Say("create", cuMemPoolCreate(&pool, &props));
  CUdeviceptr first = 0, second = 0;
  Say("allocation", cuMemAllocFromPoolAsync(&first, 8 * kMiB, pool, stream));
  Say("allocation above the limit", cuMemAllocFromPoolAsync(&second, 12 * kMiB, pool, stream));
  cuMemsetD8Async(first, 9, 8 * kMiB, stream);
  cuStreamSynchronize(stream);
  Say("destroy", cuMemPoolDestroy(pool));
  Say("memory of a pool that is gone", "holds what was written", Holds(first, 8 * kMiB, 9));
  Say("free", cuMemFreeAsync(first, stream));
  Say("wait", cuStreamSynchronize(stream));
  Say("destroy once more", cuMemPoolDestroy(pool));
}

void Captured() {
  const CUstream stream = NewStream(), other = NewStream();
  CUgraph graph = nullptr;
  CUgraphExec runnable = nullptr;
  const CUdeviceptr before = Allocate(4 * kMiB, stream);
  Say("begin", cuStreamBeginCapture(stream, CU_STREAM_CAPTURE_MODE_RELAXED));
  const CUdeviceptr inside = Allocate(4 * kMiB, stream);
  const CUdeviceptr beside = Allocate(4 * kMiB, other);
  cuMemsetD8Async(inside, 5, 4 * kMiB, stream);
  cuMemcpyDtoDAsync(before, inside, 4 * kMiB, stream);
  Say("free of the recorded one", cuMemFreeAsync(inside, stream));
  Say("end", cuStreamEndCapture(stream, &graph));
  Say("instantiate", cuGraphInstantiate(&runnable, graph, 0));
  Say("launch", cuGraphLaunch(runnable, stream));
  Say("wait", cuStreamSynchronize(stream));
  Say("memory", "holds what the graph wrote", Holds(before, 4 * kMiB, 5));
  Say("free", cuMemFreeAsync(before, stream));
  Say("free of the one beside", cuMemFreeAsync(beside, other));
  cuCtxSynchronize();
}

}  // namespace

int main(int argc, char** argv) {
  CUcontext context;
  if (cuInit(0) != CUDA_SUCCESS || cuDevicePrimaryCtxRetain(&context, 0) != CUDA_SUCCESS ||
      cuCtxSetCurrent(context) != CUDA_SUCCESS) {
    return 1;
  }
  const struct {
    const char* name;
    void (*run)();
  } kCases[] = {{"frees", Frees}, {"order", Order},     {"streams", Streams},  {"many", Many},
                {"own", Own},     {"numbers", Numbers}, {"captured", Captured}};
  for (const auto& one : kCases) {
    if (argc == 2 && strcmp(argv[1], one.name) == 0) one.run();
  }
  return 0;
}
