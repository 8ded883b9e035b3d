// SPDX-License-Identifier: Apache-2.0
// Large memory on which streams write and await values, used otherwise in every way, right and
// wrong: turned WAY. What it prints does not depend on where memory lies.
#include <cuda.h>
#include <stdio.h>
#include <string.h>

#include <initializer_list>
#include <thread>
#include <vector>

namespace {

constexpr size_t kMiB = size_t{1} << 20;
constexpr size_t kBytes = 5 * kMiB;  // not a whole number of the driver's blocks

void Say(const char* what, CUresult result) {
  const char* name = "?";
  cuGetErrorName(result, &name);
  printf("%s: %s\n", what, name);
}

size_t Free() {
  size_t free = 0, total = 0;
  cuMemGetInfo(&free, &total);
  return free;
}

CUdeviceptr Allocate(size_t bytes = kBytes) {
  CUdeviceptr address = 0;
  Say("allocation", cuMemAlloc(&address, bytes));
  return address;
}

CUstream NewStream() {
  CUstream stream = nullptr;
  cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING);
  return stream;
}

// Nothing but an operation on a value tells that memory is managed; from here on it is not.
void Turn(CUdeviceptr address, CUstream stream) {
  Say("write", cuStreamWriteValue32(stream, address + kBytes - 4, 77, 0));
  Say("wait", cuStreamWaitValue32(stream, address + kBytes - 4, 77, CU_STREAM_WAIT_VALUE_EQ));
}

void Use() {
  const CUstream stream = NewStream();
  const CUdeviceptr address = Allocate(), other = Allocate();
  std::vector<unsigned char> bytes(kBytes), back(kBytes);
  for (size_t i = 0; i < kBytes; ++i) bytes[i] = static_cast<unsigned char>(i * 31 >> 3);
  cuMemcpyHtoD(address, bytes.data(), kBytes);
  Turn(address, stream);
  Say("copy", cuMemcpyDtoDAsync(other, address, kBytes, stream));
  Say("end", cuStreamSynchronize(stream));
  cuMemcpyDtoH(back.data(), other, kBytes);
  const unsigned written = 77;
  memcpy(&bytes[kBytes - 4], &written, 4);
  printf("bytes are as they were, and the value is there: %d\n", bytes == back);

  CUdeviceptr base = 0;
  size_t size = 0;
  unsigned type = 0, managed = 1;
  Say("range", cuMemGetAddressRange(&base, &size, address + kBytes - 1));
  printf("begins there: %d, bytes: %zu\n", base == address, size);
  Say("behind it", cuMemGetAddressRange(&base, &size, address + 64 * kMiB));
  cuPointerGetAttribute(&type, CU_POINTER_ATTRIBUTE_MEMORY_TYPE, address);
  cuPointerGetAttribute(&managed, CU_POINTER_ATTRIBUTE_IS_MANAGED, address);
  cuPointerGetAttribute(&size, CU_POINTER_ATTRIBUTE_RANGE_SIZE, address + 7);
  printf("of a device: %d, managed: %u, bytes: %zu\n", type == CU_MEMORYTYPE_DEVICE, managed, size);
  for (CUdeviceptr each : {address, other}) Say("free", cuMemFree(each));
}

void Frees() {
  const CUstream stream = NewStream();
  const size_t before = Free();
  const CUdeviceptr address = Allocate(), in_order = Allocate(), elsewhere = Allocate();
  for (CUdeviceptr each : {address, in_order, elsewhere}) Turn(each, stream);
  Say("free of the middle", cuMemFree(address + kMiB));
  Say("free", cuMemFree(address));
  Say("free again", cuMemFree(address));
  Say("free in order", cuMemFreeAsync(in_order, stream));
  Say("end", cuStreamSynchronize(stream));
  Say("free again", cuMemFree(in_order));
  CUcontext context = nullptr;
  cuCtxGetCurrent(&context);
  std::thread([&] {
    cuCtxSetCurrent(context);
    Say("free in a thread", cuMemFree(elsewhere));
  }).join();
  printf("all came back: %d\n", Free() >= before);
}

void Many() {
  const CUstream stream = NewStream();
  const size_t before = Free();
  std::vector<CUdeviceptr> all;
  for (int i = 0; i < 8; ++i) {
    all.push_back(Allocate());
    cuMemsetD8(all.back(), static_cast<unsigned char>(i), kBytes);
    CUstreamBatchMemOpParams both[2] = {};
    for (size_t k = 0; k < 2; ++k) {
      both[k].writeValue.operation = CU_STREAM_MEM_OP_WRITE_VALUE_64;
      both[k].writeValue.address = all[all.size() / 2] + 8 * k;
      both[k].writeValue.value64 = k + 5;
    }
    Say("batch", cuStreamBatchMemOp(stream, 2, both, 0));
  }
  Say("end", cuStreamSynchronize(stream));
  for (size_t i = 0; i < all.size(); ++i) {
    unsigned char first = 0, last = 0;
    cuMemcpyDtoH(&first, all[i], 1);
    cuMemcpyDtoH(&last, all[i] + kBytes - 1, 1);
    printf("%zu holds %d and %d\n", i, first, last);
    Say("free", cuMemFree(all[i]));
  }
  printf("all came back: %d\n", Free() >= before);
}

void Context() {
  CUcontext first = nullptr, own = nullptr;
  cuCtxGetCurrent(&first);
  const size_t before = Free();
  CUctxCreateParams parameters = {};
  Say("context", cuCtxCreate(&own, &parameters, 0, 0));
  const CUdeviceptr address = Allocate();
  Turn(address, NewStream());
  Say("end of the context", cuCtxDestroy(own));
  cuCtxSetCurrent(first);
  Say("free after it", cuMemFree(address));
  printf("all came back: %d\n", Free() >= before);
}

// The stream waits for this thread, and the thread must not wait for the stream.
void Waiting() {
  const CUstream waits = NewStream(), writes = NewStream();
  CUdeviceptr flag = 0;
  cuMemAlloc(&flag, 64);  // small, and so plain
  cuMemsetD8(flag, 0, 64);
  const CUdeviceptr address = Allocate();
  Say("wait", cuStreamWaitValue32(waits, flag, 1, CU_STREAM_WAIT_VALUE_GEQ));
  const CUresult refused = cuStreamWriteValue32(writes, address, 1, 0);
  Say("write", refused);
  Say("write of the flag", cuStreamWriteValue32(writes, flag, 1, 0));
  for (CUstream stream : {waits, writes}) Say("end", cuStreamSynchronize(stream));
  for (CUdeviceptr each : {flag, address}) Say("free", cuMemFree(each));
}

}  // namespace

int main(int argc, char** argv) {
  CUcontext context;
  if (argc != 2 || cuInit(0) != CUDA_SUCCESS ||
      cuDevicePrimaryCtxRetain(&context, 0) != CUDA_SUCCESS ||
      cuCtxSetCurrent(context) != CUDA_SUCCESS) {
    return 1;
  }
  const struct {
    const char* name;
    void (*run)();
  } kWays[] = {
      {"use", Use}, {"frees", Frees}, {"many", Many}, {"context", Context}, {"waiting", Waiting}};
  for (const auto& way : kWays) {
    if (strcmp(argv[1], way.name) == 0) way.run();
  }
  return 0;
}
