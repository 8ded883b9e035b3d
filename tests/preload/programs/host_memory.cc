// SPDX-License-Identifier: Apache-2.0
// Asks for blocks of memory until there are enough or it is refused, fills each with a value of its
// own, and reads them all back: host_memory [plain|async|range] BLOCKS MIB [wait]. Says what it
// holds; with "wait" it goes on at the end of its input, so that others can hold theirs meanwhile.
#include <cuda.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <vector>

namespace {

const char* Name(CUresult result) {
  const char* text = "?";
  cuGetErrorName(result, &text);
  return text;
}

CUresult InRange(CUdeviceptr* address, size_t bytes) {
  CUmemAllocationProp prop{};
  prop.type = CU_MEM_ALLOCATION_TYPE_PINNED;
  prop.location.type = CU_MEM_LOCATION_TYPE_DEVICE;
  CUmemAccessDesc access{};
  access.location = prop.location;
  access.flags = CU_MEM_ACCESS_FLAGS_PROT_READWRITE;
  CUmemGenericAllocationHandle handle = 0;
  CUresult result = cuMemCreate(&handle, bytes, &prop, 0);
  if (result != CUDA_SUCCESS) return result;
  result = cuMemAddressReserve(address, bytes, 0, 0, 0);
  if (result == CUDA_SUCCESS) result = cuMemMap(*address, bytes, 0, handle, 0);
  return result == CUDA_SUCCESS ? cuMemSetAccess(*address, bytes, &access, 1) : result;
}

CUresult Allocate(const char* way, CUdeviceptr* address, size_t bytes) {
  if (strcmp(way, "async") == 0) return cuMemAllocAsync(address, bytes, nullptr);
  if (strcmp(way, "range") == 0) return InRange(address, bytes);
  return cuMemAlloc(address, bytes);
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 4) return 2;
  const size_t count = strtoul(argv[2], nullptr, 10), bytes = strtoul(argv[3], nullptr, 10) << 20;
  CUcontext context;
  if (cuInit(0) != CUDA_SUCCESS || cuDevicePrimaryCtxRetain(&context, 0) != CUDA_SUCCESS ||
      cuCtxSetCurrent(context) != CUDA_SUCCESS) {
    return 2;
  }
  std::vector<CUdeviceptr> blocks;
  CUresult result = CUDA_SUCCESS;
  while (blocks.size() < count) {
    CUdeviceptr address = 0;
    result = Allocate(argv[1], &address, bytes);
    if (result != CUDA_SUCCESS) break;
    blocks.push_back(address);
  }
  printf("holds %zu MiB, %s\n", blocks.size() * (bytes >> 20), Name(result));
  fflush(stdout);
  for (char byte; argc > 4 && read(STDIN_FILENO, &byte, 1) > 0;) {
  }
  std::vector<unsigned> read_back(bytes / 4);
  for (int pass = 0; pass < 2; ++pass) {
    for (size_t b = 0; b < blocks.size(); ++b) {
      const auto value = static_cast<unsigned>(b + 1 + 100 * static_cast<size_t>(pass));
      if (cuMemsetD32(blocks[b], value, bytes / 4) != CUDA_SUCCESS) break;
    }
    for (size_t b = 0; b < blocks.size(); ++b) {
      const auto value = static_cast<unsigned>(b + 1 + 100 * static_cast<size_t>(pass));
      result = cuMemcpyDtoH(read_back.data(), blocks[b], bytes);
      if (result != CUDA_SUCCESS || read_back.front() != value || read_back.back() != value) {
        printf("block %zu is lost: %s\n", b, Name(result));
        return 1;
      }
    }
  }
  result = cuCtxSynchronize();
  printf("context %s\n", Name(result));
  return result == CUDA_SUCCESS ? 0 : 1;
}
