// SPDX-License-Identifier: Apache-2.0
#include "shim/tensor_maps.h"

#include <string.h>
#include <sys/mman.h>

#include <mutex>
#include <shared_mutex>

namespace atp::shim {

std::atomic<bool> g_tensor_maps{false};

namespace {

struct Entry {
  unsigned char map[sizeof(CUtensorMap)];
  TensorExtent extent;
};
// A full set gives up its oldest entry: that costs sight, nothing else.
constexpr size_t kSets = 1024, kWays = 4;
struct Set {
  Entry entries[kWays];
  uint32_t next;
};
Set* sets = nullptr;
std::shared_mutex mutex;

Set& SetOf(const void* map) {
  uint64_t words[sizeof(CUtensorMap) / 8];
  memcpy(words, map, sizeof words);
  uint64_t hash = 0;
  for (uint64_t word : words) hash = (hash ^ word) * 0x9E3779B97F4A7C15u, hash ^= hash >> 29;
  return sets[hash % kSets];
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
  std::unique_lock lock(mutex);
  if (sets == nullptr) {
    void* memory = mmap(nullptr, kSets * sizeof(Set), PROT_READ | PROT_WRITE,
                        MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (memory == MAP_FAILED) return;
    sets = static_cast<Set*>(memory);
  }
  Set& set = SetOf(&map);
  Entry* place = nullptr;
  for (Entry& entry : set.entries) {
    if (memcmp(entry.map, &map, sizeof map) == 0) place = &entry;
  }
  if (place == nullptr) place = &set.entries[set.next++ % kWays];
  memcpy(place->map, &map, sizeof map);
  place->extent = extent;
  g_tensor_maps.store(true, std::memory_order_release);
}

bool FindTensorMap(const void* map, TensorExtent* extent) {
  std::shared_lock lock(mutex);
  if (sets == nullptr) return false;
  for (const Entry& entry : SetOf(map).entries) {
    if (entry.extent.bytes == 0 || memcmp(entry.map, map, sizeof entry.map) != 0) continue;
    *extent = entry.extent;
    return true;
  }
  return false;
}

}  // namespace atp::shim
