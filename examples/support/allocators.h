// SPDX-License-Identifier: Apache-2.0
// Allocators that ask the driver for memory as frameworks do, under one interface:
//   plain       one cudaMalloc for each tensor
//   caching     PyTorch's native cache: segments of 2 MiB for what is at most 1 MiB, of 20 MiB for
//               what is below 10 MiB, of their own for the rest; kept for good
//               (c10/cuda/CUDACachingAllocator.cpp, its constants and rules)
//   expandable  the same with expandable segments: one reserved range for each size class, mapped
//               piece by piece (PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True)
//   async       the driver's stream-ordered pool, on the default stream
//   arena       one allocation for everything (the BFC allocator of TensorFlow and JAX)
// All are for one stream: a block that comes back is used again at once.
#pragma once

#include <cuda.h>

#include <algorithm>
#include <memory>
#include <string>
#include <vector>

#include "examples/support/block_pool.h"
#include "examples/support/device.h"
#include "examples/support/options.h"

namespace example {

class Allocator {
 public:
  virtual ~Allocator() = default;
  void* Allocate(size_t bytes) {
    live_ += bytes;
    peak_ = std::max(peak_, live_);
    return Take(bytes);
  }
  void Free(void* pointer, size_t bytes) {
    live_ -= bytes;
    Give(pointer);
  }
  size_t peak() const { return peak_; }  // the largest sum of what was in use

 private:
  virtual void* Take(size_t bytes) = 0;
  virtual void Give(void* pointer) = 0;
  size_t live_ = 0, peak_ = 0;
};

class PlainAllocator : public Allocator {
  void* Take(size_t bytes) override {
    void* pointer = nullptr;
    CHECK_CUDA(cudaMalloc(&pointer, bytes));
    return pointer;
  }
  void Give(void* pointer) override { CHECK_CUDA(cudaFree(pointer)); }
};

class AsyncAllocator : public Allocator {
 public:
  AsyncAllocator() {  // memory is kept between steps, as PyTorch's asynchronous backend asks for
    cudaMemPool_t pool;
    uint64_t keep = UINT64_MAX;
    CHECK_CUDA(cudaDeviceGetDefaultMemPool(&pool, 0));
    CHECK_CUDA(cudaMemPoolSetAttribute(pool, cudaMemPoolAttrReleaseThreshold, &keep));
  }

 private:
  void* Take(size_t bytes) override {
    void* pointer = nullptr;
    CHECK_CUDA(cudaMallocAsync(&pointer, bytes, nullptr));
    return pointer;
  }
  void Give(void* pointer) override { CHECK_CUDA(cudaFreeAsync(pointer, nullptr)); }
};

// Small and large requests live apart; Grow adds memory to one of the two.
class PooledAllocator : public Allocator {
  void* Take(size_t bytes) override {
    const bool large = bytes > kSmall;
    BlockPool& pool = large ? large_ : small_;
    uint64_t address = pool.Take(bytes);
    if (address == 0) {
      Grow(large, &pool, pool.Rounded(bytes));
      address = pool.Take(bytes);
    }
    return reinterpret_cast<void*>(address);
  }
  void Give(void* pointer) override {
    const auto address = reinterpret_cast<uint64_t>(pointer);
    if (!small_.Give(address)) large_.Give(address);
  }

 protected:
  static constexpr size_t kMiB = 1u << 20, kSmall = kMiB;
  virtual void Grow(bool large, BlockPool* pool, size_t bytes) = 0;
  BlockPool small_{{512, 512}}, large_{{512, kSmall + 1}};
};

class CachingAllocator : public PooledAllocator {
 private:
  void Grow(bool large, BlockPool* pool, size_t bytes) override {
    constexpr size_t kRound = 2 * kMiB;
    const size_t segment = !large              ? 2 * kMiB
                           : bytes < 10 * kMiB ? 20 * kMiB
                                               : (bytes + kRound - 1) / kRound * kRound;
    void* pointer = nullptr;
    CHECK_CUDA(cudaMalloc(&pointer, segment));
    pool->AddSegment(reinterpret_cast<uint64_t>(pointer), segment);
  }
};

// A function of the driver, without linking to it.
template <typename Function>
Function DriverFunction(const char* name) {
  void* function = nullptr;
  cudaDriverEntryPointQueryResult found;
  CHECK_CUDA(cudaGetDriverEntryPointByVersion(name, &function, 12000, cudaEnableDefault, &found));
  if (function == nullptr) {
    std::fprintf(stderr, "the driver has no %s\n", name);
    std::exit(kExitCudaError);
  }
  return reinterpret_cast<Function>(function);
}
#define DRIVER_CALL(name, ...) \
  CheckDriver(DriverFunction<decltype(&name)>(#name)(__VA_ARGS__), #name)

inline void CheckDriver(CUresult result, const char* what) {
  if (result == CUDA_SUCCESS) return;
  std::fprintf(stderr, "%s failed with %d\n", what, static_cast<int>(result));
  std::exit(kExitCudaError);
}

class ExpandableAllocator : public PooledAllocator {
 public:
  ExpandableAllocator() { CHECK_CUDA(cudaFree(nullptr)); }  // the driver's calls want a context

 private:
  struct Range {
    CUdeviceptr begin = 0;
    size_t mapped = 0;
  };
  void Grow(bool large, BlockPool* pool, size_t bytes) override {
    constexpr size_t kReserved = size_t{1} << 34;
    Range& range = ranges_[large];
    if (range.begin == 0) {
      DRIVER_CALL(cuMemAddressReserve, &range.begin, kReserved, 0, 0, 0);
      pool->AddSegment(range.begin, 0);
    }
    const size_t piece = (large ? 20 : 2) * kMiB;
    size_t free = pool->FreeBefore(range.begin + range.mapped);
    for (; free < bytes; free += piece) Map(piece, &range, pool);
  }
  void Map(size_t piece, Range* range, BlockPool* pool) {
    CUmemAllocationProp prop = {};
    prop.type = CU_MEM_ALLOCATION_TYPE_PINNED;
    prop.location.type = CU_MEM_LOCATION_TYPE_DEVICE;
    CUmemAccessDesc access = {};
    access.location = prop.location;
    access.flags = CU_MEM_ACCESS_FLAGS_PROT_READWRITE;
    CUmemGenericAllocationHandle handle;
    const CUdeviceptr at = range->begin + range->mapped;
    DRIVER_CALL(cuMemCreate, &handle, piece, &prop, 0);
    DRIVER_CALL(cuMemMap, at, piece, 0, handle, 0);
    DRIVER_CALL(cuMemSetAccess, at, piece, &access, 1);
    pool->Extend(at, piece);
    range->mapped += piece;
  }
  Range ranges_[2];
};

class ArenaAllocator : public Allocator {
 public:
  explicit ArenaAllocator(size_t bytes) {
    void* pointer = nullptr;
    CHECK_CUDA(cudaMalloc(&pointer, bytes));
    pool_.AddSegment(reinterpret_cast<uint64_t>(pointer), bytes);
  }

 private:
  void* Take(size_t bytes) override {
    const uint64_t address = pool_.Take(bytes);
    if (address == 0) {
      std::fprintf(stderr, "out of memory: %zu bytes of the arena are not free in one piece\n",
                   bytes);
      std::exit(kExitOutOfMemory);
    }
    return reinterpret_cast<void*>(address);
  }
  void Give(void* pointer) override { pool_.Give(reinterpret_cast<uint64_t>(pointer)); }

  BlockPool pool_{{256, 256}};
};

inline std::unique_ptr<Allocator> MakeAllocator(const std::string& name, size_t arena_bytes) {
  if (name == "plain") return std::make_unique<PlainAllocator>();
  if (name == "caching") return std::make_unique<CachingAllocator>();
  if (name == "expandable") return std::make_unique<ExpandableAllocator>();
  if (name == "async") return std::make_unique<AsyncAllocator>();
  if (name == "arena") return std::make_unique<ArenaAllocator>(arena_bytes);
  Options::Refuse("--allocator " + name +
                  " is none of plain, caching, expandable, async and arena");
}

}  // namespace example
