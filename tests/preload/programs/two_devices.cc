// SPDX-License-Identifier: Apache-2.0
// One host thread feeds two devices by calls that do not wait on device memory: blocking sets and
// copies within a device. Only if they do not wait here either do the devices work at the same
// time. "busy" prints the milliseconds until both are done;
// "results" shows what they computed, and goes on with frees and early reuse, which do wait.
// "peers": each device reads and writes memory of the other.
//   two_devices PTX busy|results|peers
#include <cuda.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <fstream>
#include <sstream>
#include <vector>

namespace {

constexpr size_t kBytes = 4u << 20;
constexpr unsigned kCount = kBytes / 4;

void Check(CUresult result, const char* what) {
  if (result == CUDA_SUCCESS) return;
  printf("FAIL %s: %d\n", what, static_cast<int>(result));
  exit(1);
}
#define CHECK(call) Check(call, #call)

struct Device {
  CUcontext context;
  CUfunction bump;
  CUdeviceptr from, to;

  Device(int ordinal, const std::string& ptx) {
    CUmodule module;
    CHECK(cuDevicePrimaryCtxRetain(&context, ordinal));
    CHECK(cuCtxSetCurrent(context));
    CHECK(cuModuleLoadData(&module, ptx.c_str()));
    CHECK(cuModuleGetFunction(&bump, module, "Bump"));
    CHECK(cuMemAlloc(&from, kBytes));
    CHECK(cuMemAlloc(&to, kBytes));
    CHECK(cuMemsetD8(from, 0, kBytes));
    CHECK(cuMemsetD8(to, 0, kBytes));
    CHECK(cuCtxSynchronize());
  }
  void Bump(CUdeviceptr memory) const {
    unsigned count = kCount;
    void* arguments[] = {&memory, &count};
    CHECK(cuLaunchKernel(bump, kCount / 256, 1, 1, 256, 1, 1, 0, nullptr, arguments, nullptr));
  }
  void Step(int step) const {
    CHECK(cuCtxSetCurrent(context));
    for (int i = 0; i < 4; ++i) Bump(from);
    CHECK(cuMemcpyDtoD(to, from, kBytes));
    CHECK(cuMemsetD32(from, static_cast<unsigned>(step), kCount));
    CHECK(cuMemcpy(from, to, kBytes / 2));
    CHECK(cuMemsetD2D8(to, 4096, 7, 100, 64));
  }
  // Memory that a kernel is still writing is freed, and what is allocated next is not disturbed.
  unsigned long long ReuseEarly() const {
    CHECK(cuCtxSetCurrent(context));
    unsigned long long sum = 0;
    for (int i = 0; i < 4; ++i) {
      CUdeviceptr first, second;
      CHECK(cuMemAlloc(&first, kBytes));
      CHECK(cuMemsetD32(first, 1, kCount));
      for (int k = 0; k < 4; ++k) Bump(first);
      CHECK(cuMemFree(first));
      CHECK(cuMemAlloc(&second, kBytes));
      CHECK(cuMemsetD32(second, 100, kCount));
      std::vector<unsigned> host(kCount);
      CHECK(cuMemcpyDtoH(host.data(), second, kBytes));
      for (unsigned value : host) sum += value;
      CHECK(cuMemFree(second));
    }
    return sum;
  }
  unsigned long long Sum() const {
    CHECK(cuCtxSetCurrent(context));
    std::vector<unsigned> host(kCount);
    unsigned long long sum = 0;
    for (CUdeviceptr memory : {from, to}) {
      CHECK(cuMemcpyDtoH(host.data(), memory, kBytes));
      for (unsigned value : host) sum = sum * 31 + value;
    }
    return sum;
  }
};

void Peers(const Device (&devices)[2]) {
  for (int i = 0; i < 2; ++i) {
    int can = 0;
    CHECK(cuDeviceCanAccessPeer(&can, i, 1 - i));
    printf("peer access: %d\n", can);
    CHECK(cuCtxSetCurrent(devices[i].context));
    CHECK(cuCtxEnablePeerAccess(devices[1 - i].context, 0));
    CHECK(cuMemsetD32(devices[i].from, static_cast<unsigned>(10 * (i + 1)), kCount));
    CHECK(cuCtxSynchronize());
  }
  for (int round = 0; round < 4; ++round) {
    for (int i = 0; i < 2; ++i) {
      const Device &own = devices[i], &other = devices[1 - i];
      CHECK(cuCtxSetCurrent(own.context));
      own.Bump(other.from);
      CHECK(cuMemcpyDtoD(own.to, other.from, kBytes / 4));
      CHECK(cuMemcpyPeer(own.to + kBytes / 4, own.context, other.from, other.context, kBytes / 4));
      CHECK(cuMemcpyPeerAsync(own.to + kBytes / 2, own.context, other.from, other.context,
                              kBytes / 4, nullptr));
      CHECK(cuMemcpy(own.to + kBytes / 4 * 3, other.from, kBytes / 4));
      CHECK(cuCtxSynchronize());
    }
  }
  CUdeviceptr pointers[2] = {devices[0].from, devices[1].from};
  for (CUdeviceptr pointer : pointers) {
    int ordinal = -1;
    CHECK(cuPointerGetAttribute(&ordinal, CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL, pointer));
    printf("memory of device %d\n", ordinal);
  }
  CHECK(cuCtxSetCurrent(devices[0].context));
  CHECK(cuCtxDisablePeerAccess(devices[1].context));
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 3) return 2;
  std::stringstream ptx;
  ptx << std::ifstream(argv[1]).rdbuf();
  CHECK(cuInit(0));
  const Device devices[] = {Device(0, ptx.str()), Device(1, ptx.str())};
  if (strcmp(argv[2], "peers") == 0) {
    Peers(devices);
    for (const Device& device : devices) printf("sum %llu\n", device.Sum());
    return 0;
  }
  CUevent begin, end;
  CHECK(cuCtxSetCurrent(devices[0].context));
  CHECK(cuEventCreate(&begin, 0));
  CHECK(cuEventCreate(&end, 0));
  CHECK(cuEventRecord(begin, nullptr));
  for (int step = 0; step < 6; ++step) {
    for (const Device& device : devices) device.Step(step);
  }
  for (const Device& device : devices) {
    CHECK(cuCtxSetCurrent(device.context));
    CHECK(cuCtxSynchronize());
  }
  // Both devices are done by now: what is recorded here is the time of all of it.
  CHECK(cuCtxSetCurrent(devices[0].context));
  CHECK(cuEventRecord(end, nullptr));
  CHECK(cuEventSynchronize(end));
  if (strcmp(argv[2], "busy") == 0) {
    float ms = 0;
    CHECK(cuEventElapsedTime(&ms, begin, end));
    printf("%.4f\n", static_cast<double>(ms));
    return 0;
  }
  for (const Device& device : devices) printf("sum %llu\n", device.Sum());
  for (const Device& device : devices) printf("reused %llu\n", device.ReuseEarly());
  return 0;
}
