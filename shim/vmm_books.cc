// SPDX-License-Identifier: Apache-2.0
#include "shim/vmm_books.h"

#include <algorithm>
#include <atomic>
#include <iterator>

#include "shim/lifecycle.h"
#include "shim/managed.h"
#include "shim/own_calls.h"
#include "shim/populate.h"

namespace atp::shim {
namespace {

std::atomic<bool> in_use{false};

// First entry of an address map whose piece ends behind `address`.
template <typename Map, typename End>
auto FirstEndingAfter(Map& map, uint64_t address, End end) {
  auto it = map.upper_bound(address);
  if (it != map.begin() && end(*std::prev(it)) > address) --it;
  return it;
}

constexpr auto kMappingEnd = [](const auto& entry) { return entry.first + entry.second.bytes; };
constexpr auto kLeftEnd = [](const auto& entry) {
  return entry.first + entry.second->contents_bytes;
};

}  // namespace

VmmBooks& Books() {
  static VmmBooks* books = [] {
    in_use.store(true);
    return new VmmBooks;
  }();
  return *books;
}

bool RangesInUse() { return in_use.load(std::memory_order_acquire); }

Memory* MemoryOf(MemoryHandle handle) {
  const auto alias = Books().aliases.find(handle);
  const auto found = Books().memories.find(alias == Books().aliases.end() ? handle : alias->second);
  return found != Books().memories.end() ? found->second.get() : nullptr;
}

Range* RangeAround(uint64_t address, uint64_t bytes, uint64_t* begin) {
  auto it = Books().ranges.upper_bound(address);
  if (it == Books().ranges.begin()) return nullptr;
  --it;
  if (address + bytes > it->first + it->second.bytes) return nullptr;
  *begin = it->first;
  return &it->second;
}

const Mapping* MappingAt(uint64_t address, uint64_t* start) {
  const auto it = FirstEndingAfter(Books().mappings, address, kMappingEnd);
  if (it == Books().mappings.end() || it->first > address) return nullptr;
  if (start != nullptr) *start = it->first;
  return &it->second;
}

bool AnyMapping(uint64_t address, uint64_t bytes) {
  const auto it = FirstEndingAfter(Books().mappings, address, kMappingEnd);
  return it != Books().mappings.end() && it->first < address + bytes;
}

bool MadeOfMappings(uint64_t address, uint64_t bytes) {
  uint64_t at = address;
  for (auto it = Books().mappings.find(address);
       it != Books().mappings.end() && it->first == at && at < address + bytes; ++it) {
    at += it->second.bytes;
  }
  return bytes != 0 && at == address + bytes;
}

void AddMapping(uint64_t address, uint64_t bytes, Memory* memory) {
  Mapping& mapping = Books().mappings[address];
  mapping.bytes = bytes;
  mapping.memory = memory;
  ++memory->mappings;
}

void RemoveMappings(uint64_t address, uint64_t bytes) {
  auto it = Books().mappings.lower_bound(address);
  while (it != Books().mappings.end() && it->first < address + bytes) {
    Memory* memory = it->second.memory;
    --memory->mappings;
    if (memory->mapped_at == it->first) {
      memory->mapped_at = 0;
      memory->contents_at = it->first;
      memory->contents_bytes = it->second.bytes;
      memory->has_contents = true;
      Books().left[it->first] = memory;
    }
    it = Books().mappings.erase(it);
    ForgetIfUnused(memory);
  }
}

void NoteAccess(uint64_t address, uint64_t bytes, int device, CUmemAccess_flags flags) {
  for (auto it = Books().mappings.lower_bound(address);
       it != Books().mappings.end() && it->first < address + bytes; ++it) {
    it->second.access[device] = static_cast<unsigned char>(flags);
  }
}

void CountNative(const Memory& memory, bool there) {
  Device* device = DeviceOf(memory.device);
  if (device == nullptr) return;
  if (there) {
    device->native.fetch_add(memory.bytes, std::memory_order_relaxed);
  } else {
    device->native.fetch_sub(memory.bytes, std::memory_order_relaxed);
  }
}

void ForgetIfUnused(Memory* memory) {
  if (memory->references != 0 || memory->mappings != 0) return;
  if (memory->native != 0) {
    CountNative(*memory, false);
    std::erase_if(Books().aliases, [&](const auto& a) { return a.second == memory->key; });
  } else {
    DropContents(memory);
    GiveShare(memory->device, memory->bytes);
  }
  Books().memories.erase(memory->key);
}

void DropContents(Memory* memory) {
  if (memory->in_stash) {
    real().cuMemFree_v2(memory->contents_at);
  } else if (memory->contents_at != 0) {
    const uint64_t at = memory->contents_at;
    Books().left.erase(at);
    uint64_t begin = 0;
    const Range* range = RangeAround(at, memory->contents_bytes, &begin);
    if (range != nullptr && range->context != nullptr) {
      DiscardUnclaimed(at, memory->contents_bytes, range->context);
    }
  }
  memory->contents_at = 0;
  memory->in_stash = false;
}

bool CopyWithin(uint64_t to, uint64_t from, uint64_t bytes) {
  Relaxed relaxed;
  return real().cuMemcpyDtoD_v2(to, from, bytes) == CUDA_SUCCESS &&
         real().cuCtxSynchronize() == CUDA_SUCCESS;
}

bool KeepContentsElsewhere(uint64_t address, uint64_t bytes) {
  auto it = FirstEndingAfter(Books().left, address, kLeftEnd);
  while (it != Books().left.end() && it->first < address + bytes) {
    Memory* memory = it->second;
    CUdeviceptr stash = 0;
    if (real().cuMemAllocManaged(&stash, memory->contents_bytes, CU_MEM_ATTACH_GLOBAL) !=
        CUDA_SUCCESS) {
      return false;
    }
    if (!CopyWithin(stash, memory->contents_at, memory->contents_bytes)) {
      real().cuMemFree_v2(stash);
      return false;
    }
    memory->contents_at = stash;
    memory->in_stash = true;
    it = Books().left.erase(it);
  }
  return true;
}

bool BringContents(Memory* memory, uint64_t address, uint64_t bytes) {
  if (memory->contents_at == address && !memory->in_stash) {
    Books().left.erase(address);
    memory->contents_at = 0;
    return true;
  }
  // Its own old place may overlap the new one: then it goes through the stash as well.
  if (!KeepContentsElsewhere(address, bytes)) return false;
  if (memory->contents_at == 0) return true;
  if (!CopyWithin(address, memory->contents_at, std::min(bytes, memory->contents_bytes)))
    return false;
  DropContents(memory);
  return true;
}

void DiscardUnclaimed(uint64_t address, uint64_t bytes, CUcontext context) {
  uint64_t at = address;
  const auto upto = [&](uint64_t end) {
    if (at < end) Discard(at, end - at, context);
  };
  for (auto it = FirstEndingAfter(Books().left, address, kLeftEnd);
       it != Books().left.end() && it->first < address + bytes; ++it) {
    upto(it->first);
    at = kLeftEnd(*it);
  }
  upto(address + bytes);
}

}  // namespace atp::shim
