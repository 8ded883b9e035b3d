// SPDX-License-Identifier: Apache-2.0
// What bin/bench/heap measures: the driver that is installed for the process, by plain and by
// stream-ordered calls, and a first-fit list to hold them against. A heap belongs to one thread.
#pragma once

#include <cuda.h>
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>

#include <cstdint>
#include <list>
#include <map>
#include <string>

namespace bench {

[[noreturn]] inline void Fail(const std::string& what) {
  fprintf(stderr, "heap: %s\n", what.c_str());
  exit(1);
}

// The driver that is installed for this process, with or without the library before it.
struct Driver {
  Driver() {
    handle = dlopen("libcuda.so.1", RTLD_NOW);
    if (handle == nullptr) Fail(dlerror());
    Load("cuInit", &init);
    Load("cuDevicePrimaryCtxRetain", &retain);
    Load("cuCtxSetCurrent", &set_current);
    Load("cuMemAlloc_v2", &alloc);
    Load("cuMemFree_v2", &free);
    Load("cuMemAllocAsync", &alloc_async);
    Load("cuMemFreeAsync", &free_async);
    Load("cuStreamCreate", &stream_create);
    mapped = reinterpret_cast<uint64_t (*)()>(dlsym(handle, "atpNoopMapped"));
    if (init(0) != CUDA_SUCCESS || retain(&context, 0) != CUDA_SUCCESS) Fail("no device");
    Use();
  }
  void Use() const {
    if (set_current(context) != CUDA_SUCCESS) Fail("no context");
  }
  template <typename F>
  void Load(const char* name, F* function) {
    *function = reinterpret_cast<F>(dlsym(handle, name));
    if (*function == nullptr) Fail(std::string("the driver has no ") + name);
  }
  void* handle;
  CUcontext context = nullptr;
  decltype(&cuInit) init;
  decltype(&cuDevicePrimaryCtxRetain) retain;
  decltype(&cuCtxSetCurrent) set_current;
  decltype(&cuMemAlloc) alloc;
  decltype(&cuMemFree) free;
  decltype(&cuMemAllocAsync) alloc_async;
  decltype(&cuMemFreeAsync) free_async;
  decltype(&cuStreamCreate) stream_create;
  uint64_t (*mapped)();
};

// An allocator, as one thread with a stream sees it.
class Heap {
 public:
  virtual ~Heap() = default;
  virtual uint64_t Take(uint64_t bytes) = 0;  // 0: refused
  virtual void Give(uint64_t address) = 0;
};

class Plain : public Heap {
 public:
  explicit Plain(const Driver& driver) : driver_(driver) {}
  uint64_t Take(uint64_t bytes) override {
    CUdeviceptr address = 0;
    return driver_.alloc(&address, bytes) == CUDA_SUCCESS ? address : 0;
  }
  void Give(uint64_t address) override { driver_.free(address); }

 private:
  const Driver& driver_;
};

class Ordered : public Heap {
 public:
  explicit Ordered(const Driver& driver) : driver_(driver) {
    if (driver.stream_create(&stream_, CU_STREAM_NON_BLOCKING) != CUDA_SUCCESS) Fail("no stream");
  }
  uint64_t Take(uint64_t bytes) override {
    CUdeviceptr address = 0;
    return driver_.alloc_async(&address, bytes, stream_) == CUDA_SUCCESS ? address : 0;
  }
  void Give(uint64_t address) override { driver_.free_async(address, stream_); }

 private:
  const Driver& driver_;
  CUstream stream_ = nullptr;
};

// The first block of a list that is free and large enough, split; neighbours are merged again.
class FirstFit : public Heap {
 public:
  FirstFit() { blocks_.push_back({1u << 20, uint64_t{1} << 46, true}); }
  uint64_t Take(uint64_t bytes) override {
    for (auto at = blocks_.begin(); at != blocks_.end(); ++at) {
      if (!at->free || at->bytes < bytes) continue;
      if (at->bytes > bytes) {
        blocks_.insert(std::next(at), {at->address + bytes, at->bytes - bytes, true});
      }
      at->bytes = bytes;
      at->free = false;
      index_[at->address] = at;
      return at->address;
    }
    return 0;
  }
  void Give(uint64_t address) override {
    const auto found = index_.find(address);
    auto at = found->second;
    index_.erase(found);
    at->free = true;
    if (const auto next = std::next(at); next != blocks_.end() && next->free) {
      at->bytes += next->bytes;
      blocks_.erase(next);
    }
    if (at != blocks_.begin() && std::prev(at)->free) {
      std::prev(at)->bytes += at->bytes;
      blocks_.erase(at);
    }
  }

 private:
  struct Block {
    uint64_t address, bytes;
    bool free;
  };
  std::list<Block> blocks_;
  std::map<uint64_t, std::list<Block>::iterator> index_;
};

}  // namespace bench
