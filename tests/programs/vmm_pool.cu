// SPDX-License-Identifier: Apache-2.0
// A growing array on virtual memory management: one reserved range, physical pieces mapped as it
// grows, one piece mapped twice. The driver functions are asked for at run time, as allocators of
// frameworks do.
#include <cuda.h>

#include "tests/programs/program.h"

using namespace program;  // NOLINT

__global__ void Fill(unsigned* values, size_t begin, size_t end) {
  COUNT_LAUNCH();
  const size_t i = begin + size_t(blockIdx.x) * blockDim.x + threadIdx.x;
  if (i < end) values[i] = unsigned(i) * 7 + 3;
}

template <typename F>
F Driver(const char* name) {
  void* pointer = nullptr;
  cudaDriverEntryPointQueryResult found;
  CUDA_OK(cudaGetDriverEntryPointByVersion(name, &pointer, 12000, cudaEnableDefault, &found));
  EXPECT(found == cudaDriverEntryPointSuccess);
  return reinterpret_cast<F>(pointer);
}

#define DRIVER_OK(call) EXPECT((call) == CUDA_SUCCESS)

int main() {
  CUDA_OK(cudaFree(nullptr));
  const auto granularity_of =
      Driver<decltype(&cuMemGetAllocationGranularity)>("cuMemGetAllocationGranularity");
  const auto reserve = Driver<decltype(&cuMemAddressReserve)>("cuMemAddressReserve");
  const auto release_range = Driver<decltype(&cuMemAddressFree)>("cuMemAddressFree");
  const auto create = Driver<decltype(&cuMemCreate)>("cuMemCreate");
  const auto release = Driver<decltype(&cuMemRelease)>("cuMemRelease");
  const auto map = Driver<decltype(&cuMemMap)>("cuMemMap");
  const auto unmap = Driver<decltype(&cuMemUnmap)>("cuMemUnmap");
  const auto set_access = Driver<decltype(&cuMemSetAccess)>("cuMemSetAccess");

  CUmemAllocationProp prop = {};
  prop.type = CU_MEM_ALLOCATION_TYPE_PINNED;
  prop.location = {CU_MEM_LOCATION_TYPE_DEVICE, 0};
  size_t piece = 0;
  DRIVER_OK(granularity_of(&piece, &prop, CU_MEM_ALLOC_GRANULARITY_MINIMUM));
  const int pieces = 3;
  const size_t per_piece = piece / sizeof(unsigned);
  CUdeviceptr range = 0;
  DRIVER_OK(reserve(&range, (pieces + 1) * piece, 0, 0, 0));
  CUmemAccessDesc access = {prop.location, CU_MEM_ACCESS_FLAGS_PROT_READWRITE};
  std::vector<CUmemGenericAllocationHandle> handles(pieces);
  auto* values = reinterpret_cast<unsigned*>(range);
  for (int p = 0; p < pieces; ++p) {
    DRIVER_OK(create(&handles[p], piece, &prop, 0));
    Footprint() += piece;
    DRIVER_OK(map(range + p * piece, piece, 0, handles[p], 0));
    DRIVER_OK(set_access(range + p * piece, piece, &access, 1));
    Fill<<<Blocks(per_piece, 256), 256>>>(values, p * per_piece, (p + 1) * per_piece);
  }
  // The first piece once more, behind the others.
  DRIVER_OK(map(range + pieces * piece, piece, 0, handles[0], 0));
  DRIVER_OK(set_access(range + pieces * piece, piece, &access, 1));
  std::vector<unsigned> result((pieces + 1) * per_piece);
  CUDA_OK(
      cudaMemcpy(result.data(), values, result.size() * sizeof(unsigned), cudaMemcpyDeviceToHost));
  for (size_t i = 0; i < result.size(); ++i) {
    EXPECT(result[i] == unsigned(i % (pieces * per_piece)) * 7 + 3);
  }
  DRIVER_OK(unmap(range, (pieces + 1) * piece));
  for (auto handle : handles) DRIVER_OK(release(handle));
  DRIVER_OK(release_range(range, (pieces + 1) * piece));
  return Finish(result, pieces);
}
