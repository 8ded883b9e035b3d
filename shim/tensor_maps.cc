// SPDX-License-Identifier: Apache-2.0
#include "shim/tensor_maps.h"

#include <string.h>
#include <sys/mman.h>

#include <mutex>

namespace atp::shim {

std::atomic<bool> g_tensor_maps{false};

namespace {

constexpr size_t kWords = sizeof(CUtensorMap) / sizeof(uint64_t);
struct Words {
  uint64_t at[kWords];
};

Words WordsOf(const void* map) {
  Words words;
  memcpy(&words, map, sizeof words);
  return words;
}

// Launches read, whatever is being written: who has seen the same even version before and after has
// read one entry (a sequence lock; acquire and release keep the order).
struct Entry {
  std::atomic<uint64_t> version, map[kWords], address, bytes;

  void Write(const Words& words, const TensorExtent& extent) {  // one writer at a time
    const uint64_t now = version.load(std::memory_order_relaxed);
    version.store(now + 1, std::memory_order_relaxed);
    for (size_t i = 0; i < kWords; ++i) map[i].store(words.at[i], std::memory_order_release);
    address.store(extent.address, std::memory_order_release);
    bytes.store(extent.bytes, std::memory_order_release);
    version.store(now + 2, std::memory_order_release);
  }
  // False: another map, or one that is just being written, which no launch has been given yet.
  bool Read(const Words& words, TensorExtent* extent) const {
    const uint64_t before = version.load(std::memory_order_acquire);
    if (before % 2 != 0) return false;
    for (size_t i = 0; i < kWords; ++i) {
      if (map[i].load(std::memory_order_acquire) != words.at[i]) return false;
    }
    *extent = {address.load(std::memory_order_acquire), bytes.load(std::memory_order_acquire)};
    return version.load(std::memory_order_relaxed) == before && extent->bytes != 0;
  }
};
// A full set gives up its oldest entry: that costs sight, nothing else.
constexpr size_t kSets = 1024, kWays = 4;
struct Set {
  Entry entries[kWays];
  uint32_t next;
};
std::atomic<Set*> sets{nullptr};
std::mutex mutex;  // of those who write

Set& SetOf(Set* all, const Words& words) {
  uint64_t hash = 0;
  for (uint64_t word : words.at) hash = (hash ^ word) * 0x9E3779B97F4A7C15u, hash ^= hash >> 29;
  return all[hash % kSets];
}

unsigned ElementBits(CUtensorMapDataType type) {
  switch (type) {
    case CU_TENSOR_MAP_DATA_TYPE_UINT8:
      return 8;
    case CU_TENSOR_MAP_DATA_TYPE_UINT16:
    case CU_TENSOR_MAP_DATA_TYPE_FLOAT16:
    case CU_TENSOR_MAP_DATA_TYPE_BFLOAT16:
      return 16;
    case CU_TENSOR_MAP_DATA_TYPE_UINT64:
    case CU_TENSOR_MAP_DATA_TYPE_INT64:
    case CU_TENSOR_MAP_DATA_TYPE_FLOAT64:
      return 64;
    case CU_TENSOR_MAP_DATA_TYPE_16U4_ALIGN8B:
    case CU_TENSOR_MAP_DATA_TYPE_16U4_ALIGN16B:
      return 4;
    case CU_TENSOR_MAP_DATA_TYPE_16U6_ALIGN16B:
      return 6;
    default:
      return 32;
  }
}

}  // namespace

uint64_t TensorBytes(CUtensorMapDataType type, uint32_t rank, const cuuint64_t* dimensions,
                     const cuuint64_t* strides) {
  if (rank == 0 || dimensions == nullptr) return 0;
  uint64_t bytes = (dimensions[0] * ElementBits(type) + 7) / 8;
  for (uint32_t i = 1; i < rank && strides != nullptr; ++i) {
    if (dimensions[i] == 0) return 0;
    bytes += (dimensions[i] - 1) * strides[i - 1];
  }
  return bytes;
}

void NoteTensorMap(const CUtensorMap& map, const TensorExtent& extent) {
  std::lock_guard lock(mutex);
  Set* all = sets.load(std::memory_order_relaxed);
  if (all == nullptr) {
    void* memory = mmap(nullptr, kSets * sizeof(Set), PROT_READ | PROT_WRITE,
                        MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (memory == MAP_FAILED) return;
    all = static_cast<Set*>(memory);
    sets.store(all, std::memory_order_release);
  }
  const Words words = WordsOf(&map);
  Set& set = SetOf(all, words);
  Entry* place = nullptr;
  TensorExtent known;
  for (Entry& entry : set.entries) {
    if (entry.Read(words, &known)) place = &entry;
  }
  if (place == nullptr) place = &set.entries[set.next++ % kWays];
  place->Write(words, extent);
  g_tensor_maps.store(true, std::memory_order_release);
}

bool FindTensorMap(const void* map, TensorExtent* extent) {
  Set* all = sets.load(std::memory_order_acquire);
  if (all == nullptr) return false;
  const Words words = WordsOf(map);
  for (const Entry& entry : SetOf(all, words).entries) {
    if (entry.Read(words, extent)) return true;
  }
  return false;
}

}  // namespace atp::shim
