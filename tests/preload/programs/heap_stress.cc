// SPDX-License-Identifier: Apache-2.0
// Random allocations and frees by eight threads, each with a stream of its own: stream-ordered,
// from a pool of the program's, and plain; freed in either family; handed from stream to stream
// behind an event. Streams are held up at random, so that what is submitted runs late, as on a busy
// device. Kernels write a pattern when a block comes and look for it before it goes. Usage:
// heap_stress PTX OPERATIONS [SEED]. Prints what it found; nothing of it depends on chance.
#include <cuda.h>
#include <stdio.h>
#include <stdlib.h>

#include <atomic>
#include <deque>
#include <map>
#include <mutex>
#include <random>
#include <thread>
#include <vector>

namespace {

constexpr int kThreads = 8;
constexpr size_t kMostLive = 10u << 20, kMostBlocks = 96;  // of a thread

void Must(CUresult result, const char* what) {
  if (result == CUDA_SUCCESS) return;
  const char* text = "?";
  cuGetErrorName(result, &text);
  printf("%s: %s\n", what, text);
  fflush(stdout);
  _Exit(1);
}
#define MUST(call) Must(call, #call)

enum class Family { kOrdered, kOwnPool, kPlain };

struct Block {
  CUdeviceptr address = 0;
  size_t bytes = 0;
  unsigned tag = 0;
  Family family = Family::kOrdered;
};

struct HandedOn {
  Block block;
  CUevent written = nullptr;
};

CUcontext context;
CUfunction mark, verify;
CUmemoryPool usual_pool, own_pool;
CUdeviceptr wrong, gates_on_device;
volatile unsigned* gates;  // what has been let through, of each thread
std::atomic<unsigned> wanted[kThreads];
std::atomic<bool> over{false};

// What the program holds: two blocks never share a byte.
std::mutex live_mutex;
std::map<CUdeviceptr, size_t> live;
std::atomic<unsigned> overlaps{0};

std::mutex handed_mutex;
std::deque<HandedOn> handed;

void Enter(const Block& block) {
  std::lock_guard lock(live_mutex);
  const auto next = live.lower_bound(block.address);
  if (next != live.end() && next->first < block.address + block.bytes) ++overlaps;
  if (next != live.begin()) {
    const auto before = std::prev(next);
    if (before->first + before->second > block.address) ++overlaps;
  }
  live[block.address] = block.bytes;
}

void Leave(const Block& block) {
  std::lock_guard lock(live_mutex);
  live.erase(block.address);
}

class Worker {
 public:
  Worker(unsigned index, unsigned seed) : index_(index), random_(seed * 64 + index) {
    MUST(cuCtxSetCurrent(context));
    MUST(cuStreamCreate(&stream_, CU_STREAM_NON_BLOCKING));
  }

  void Run(long operations) {
    for (long i = 0; i < operations; ++i) Step();
    while (TakeOver()) {
    }
    while (!blocks_.empty()) Free();
    MUST(cuStreamSynchronize(stream_));
    MUST(cuStreamDestroy(stream_));
  }

 private:
  unsigned Chance(unsigned below) { return static_cast<unsigned>(random_()) % below; }

  void Step() {
    const unsigned what = Chance(100);
    if (what < 3) return HoldUp();
    if (what < 4) return MUST(cuStreamSynchronize(stream_));
    if (what < 5 && Chance(10) == 0) return MUST(cuMemPoolTrimTo(own_pool, 0));
    if (what < 12) return HandOn();
    if (what < 19 && TakeOver()) return;
    const bool full = live_bytes_ > kMostLive || blocks_.size() >= kMostBlocks;
    if (blocks_.empty() || (!full && what < 60)) return Allocate();
    Free();
  }

  void Launch(CUfunction kernel, void** parameters) {
    MUST(cuLaunchKernel(kernel, 1, 1, 1, 32, 1, 1, 0, stream_, parameters, nullptr));
  }
  void Write(Block* block) {
    block->tag = static_cast<unsigned>(random_());
    void* parameters[] = {&block->address, &block->bytes, &block->tag};
    Launch(mark, parameters);
  }
  void Check(Block* block) {
    void* parameters[] = {&block->address, &block->bytes, &block->tag, &wrong};
    Launch(verify, parameters);
  }

  void Allocate() {
    Block block;
    const unsigned doubling = Chance(13);  // from 512 bytes to 4 MiB
    block.bytes = (size_t{512} << doubling) + 4 * Chance(128u << doubling);
    const unsigned family = Chance(10);
    block.family = family < 6 ? Family::kOrdered : family < 9 ? Family::kOwnPool : Family::kPlain;
    switch (block.family) {
      case Family::kOrdered:
        MUST(cuMemAllocAsync(&block.address, block.bytes, stream_));
        break;
      case Family::kOwnPool:
        MUST(cuMemAllocFromPoolAsync(&block.address, block.bytes, own_pool, stream_));
        break;
      case Family::kPlain:
        MUST(cuMemAlloc(&block.address, block.bytes));
        break;
    }
    Enter(block);
    Write(&block);
    Keep(block);
  }

  void Free() {
    Block block = Take();
    Check(&block);
    Leave(block);
    const bool plain = Chance(block.family == Family::kPlain ? 2 : 40) == 0;
    MUST(plain ? cuMemFree(block.address) : cuMemFreeAsync(block.address, stream_));
  }

  void HandOn() {
    if (blocks_.empty()) return;
    HandedOn one{Take(), nullptr};
    MUST(cuEventCreate(&one.written, CU_EVENT_DISABLE_TIMING));
    MUST(cuEventRecord(one.written, stream_));
    std::lock_guard lock(handed_mutex);
    handed.push_back(one);
  }

  bool TakeOver() {
    HandedOn one;
    {
      std::lock_guard lock(handed_mutex);
      if (handed.empty()) return false;
      one = handed.front();
      handed.pop_front();
    }
    MUST(cuStreamWaitEvent(stream_, one.written, 0));
    MUST(cuEventDestroy(one.written));
    Check(&one.block);
    Write(&one.block);
    Keep(one.block);
    return true;
  }

  // What follows waits until the opener lets it through.
  void HoldUp() {
    const unsigned number = wanted[index_].load() + 1;
    MUST(cuStreamWaitValue32(stream_, gates_on_device + index_ * sizeof(unsigned), number,
                             CU_STREAM_WAIT_VALUE_GEQ));
    wanted[index_] = number;
  }

  void Keep(const Block& block) {
    live_bytes_ += block.bytes;
    blocks_.push_back(block);
  }
  Block Take() {
    std::swap(blocks_[Chance(static_cast<unsigned>(blocks_.size()))], blocks_.back());
    const Block block = blocks_.back();
    blocks_.pop_back();
    live_bytes_ -= block.bytes;
    return block;
  }

  const unsigned index_;
  std::mt19937 random_;
  CUstream stream_ = nullptr;
  std::vector<Block> blocks_;
  size_t live_bytes_ = 0;
};

void OpenGates() {
  for (unsigned turn = 0; !over; ++turn) {
    const unsigned index = turn % kThreads;
    if (gates[index] < wanted[index]) gates[index] = gates[index] + 1;
    std::this_thread::yield();
  }
}

unsigned long long Number(CUmemoryPool pool, CUmemPool_attribute attribute) {
  cuuint64_t value = ~0ull;
  MUST(cuMemPoolGetAttribute(pool, attribute, &value));
  return value;
}

size_t FreeMemory() {
  size_t free = 0, total = 0;
  MUST(cuMemGetInfo(&free, &total));
  return free;
}

void Prepare(const char* ptx) {
  MUST(cuInit(0));
  MUST(cuDevicePrimaryCtxRetain(&context, 0));
  MUST(cuCtxSetCurrent(context));
  CUmodule module;
  MUST(cuModuleLoad(&module, ptx));
  MUST(cuModuleGetFunction(&mark, module, "Mark"));
  MUST(cuModuleGetFunction(&verify, module, "Verify"));
  MUST(cuDeviceGetDefaultMemPool(&usual_pool, 0));
  CUmemPoolProps props = {};
  props.allocType = CU_MEM_ALLOCATION_TYPE_PINNED;
  props.location = {CU_MEM_LOCATION_TYPE_DEVICE, {0}};
  MUST(cuMemPoolCreate(&own_pool, &props));
  void* host = nullptr;
  MUST(cuMemHostAlloc(&host, kThreads * sizeof(unsigned), CU_MEMHOSTALLOC_DEVICEMAP));
  gates = static_cast<volatile unsigned*>(host);
  for (int i = 0; i < kThreads; ++i) gates[i] = 0;
  MUST(cuMemHostGetDevicePointer(&gates_on_device, host, 0));
  MUST(cuMemAlloc(&wrong, sizeof(unsigned)));
  MUST(cuMemsetD32(wrong, 0, 1));
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 3) return 2;
  const long operations = strtol(argv[2], nullptr, 10) / kThreads;
  const unsigned seed = argc > 3 ? static_cast<unsigned>(strtoul(argv[3], nullptr, 10)) : 1;
  Prepare(argv[1]);
  const size_t free_before = FreeMemory();
  std::thread opener(OpenGates);
  std::vector<std::thread> threads;
  for (unsigned i = 0; i < kThreads; ++i) {
    threads.emplace_back([=] { Worker(i, seed).Run(operations); });
  }
  for (std::thread& thread : threads) thread.join();
  // Handed on by one that ended, to one that had ended already.
  Worker(kThreads, seed).Run(0);
  over = true;
  opener.join();
  MUST(cuCtxSynchronize());
  unsigned spoiled = 0;
  MUST(cuMemcpyDtoH(&spoiled, wrong, sizeof spoiled));
  printf("%u words spoiled, %u overlaps, %zu blocks live\n", spoiled, overlaps.load(), live.size());
  for (CUmemoryPool pool : {usual_pool, own_pool}) {
    printf("used %llu", Number(pool, CU_MEMPOOL_ATTR_USED_MEM_CURRENT));
    MUST(cuMemPoolTrimTo(pool, 0));
    printf(", reserved %llu\n", Number(pool, CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT));
  }
  // The driver keeps a chunk for the small ones.
  printf("free memory is %s\n", FreeMemory() >= free_before ? "as before" : "less");
  return 0;
}
