// SPDX-License-Identifier: Apache-2.0
#include "sim/driver/arena.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>

#include "sim/machine/machine.h"

namespace atp::sim {
namespace {

#ifdef __SANITIZE_THREAD__
constexpr uint64_t kLargest = uint64_t{256}
                              << 30;  // its address space for programs ends soon after
#else
constexpr uint64_t kLargest = uint64_t{4} << 40;
#endif
constexpr uint64_t kSmallest = uint64_t{4} << 30;

uint64_t RoundUp(uint64_t value, uint64_t alignment) {
  return (value + alignment - 1) & ~(alignment - 1);
}

void* Map(int file, uint64_t bytes, int protection) {
  return mmap(nullptr, bytes, protection, MAP_SHARED | MAP_NORESERVE, file, 0);
}

}  // namespace

Arena* Arena::Create(uint64_t wanted) {
  const int file = memfd_create("simulated-device-memory", MFD_CLOEXEC);
  if (file < 0) return nullptr;
  const uint64_t first = std::clamp(RoundUp(wanted, kSmallest), kSmallest, kLargest);
  for (uint64_t bytes = first; bytes >= kSmallest; bytes = bytes / 2 / kBlockBytes * kBlockBytes) {
    if (ftruncate(file, static_cast<off_t>(bytes)) != 0) continue;
    void* program = Map(file, bytes, PROT_NONE);
    if (program == MAP_FAILED) continue;
    void* device = Map(file, bytes, PROT_READ | PROT_WRITE);
    if (device == MAP_FAILED) {
      munmap(program, bytes);
      continue;
    }
    // A forked child has no device memory, as on a real machine; core files do not hold it either.
    for (void* view : {program, device}) {
      madvise(view, bytes, MADV_DONTFORK);
      madvise(view, bytes, MADV_DONTDUMP);
    }
    auto* arena = new Arena;
    arena->file_ = file;
    const auto begin = reinterpret_cast<uint64_t>(program);
    arena->begin_ = begin;
    arena->bytes_ = bytes;
    arena->device_delta_ = static_cast<int64_t>(reinterpret_cast<uint64_t>(device) - begin);
    const uint64_t start = RoundUp(begin, kBlockBytes) - begin;
    arena->free_[start] = (bytes - start) / kBlockBytes * kBlockBytes;
    return arena;
  }
  close(file);
  return nullptr;
}

uint64_t Arena::Allocate(uint64_t bytes, uint64_t alignment) {
  for (auto& [offset, length] : free_) {
    const uint64_t address = RoundUp(begin_ + offset, alignment);
    if (address - begin_ + bytes > offset + length) continue;
    AllocateAt(address, bytes);
    return address;
  }
  return 0;
}

bool Arena::AllocateAt(uint64_t address, uint64_t bytes) {
  if (!Contains(address)) return false;
  const uint64_t offset = address - begin_;
  auto it = free_.upper_bound(offset);
  if (it == free_.begin()) return false;
  --it;
  const uint64_t free_begin = it->first, free_end = it->first + it->second;
  if (bytes > free_end - offset || offset >= free_end) return false;
  free_.erase(it);
  if (offset > free_begin) free_[free_begin] = offset - free_begin;
  if (offset + bytes < free_end) free_[offset + bytes] = free_end - offset - bytes;
  return true;
}

void Arena::Free(uint64_t address, uint64_t bytes) {
  const uint64_t offset = address - begin_;
  fallocate(file_, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, static_cast<off_t>(offset),
            static_cast<off_t>(bytes));
  ReturnRange(offset, bytes);
}

void Arena::ReturnRange(uint64_t offset, uint64_t bytes) {
  auto next = free_.lower_bound(offset);
  if (next != free_.end() && next->first == offset + bytes) {
    bytes += next->second;
    next = free_.erase(next);
  }
  if (next != free_.begin()) {
    auto previous = std::prev(next);
    if (previous->first + previous->second == offset) {
      previous->second += bytes;
      return;
    }
  }
  free_[offset] = bytes;
}

bool Arena::MapDeviceView(uint64_t address, uint64_t bytes, int file, uint64_t offset) {
  void* const view = reinterpret_cast<void*>(address + static_cast<uint64_t>(device_delta_));
  void* const mapped =
      mmap(view, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_NORESERVE | MAP_FIXED, file,
           static_cast<off_t>(offset));
  if (mapped == MAP_FAILED) return false;
  madvise(view, bytes, MADV_DONTFORK);
  madvise(view, bytes, MADV_DONTDUMP);
  return true;
}

bool Arena::MapForeign(uint64_t address, uint64_t bytes, int file, uint64_t offset) {
  return MapDeviceView(address, bytes, file, offset);
}

bool Arena::UnmapForeign(uint64_t address, uint64_t bytes) {
  return MapDeviceView(address, bytes, file_, address - begin_);
}

bool Arena::SetProgramAccess(uint64_t address, uint64_t bytes, bool accessible, bool writable) {
  const int protection = !accessible ? PROT_NONE : writable ? PROT_READ | PROT_WRITE : PROT_READ;
  return mprotect(reinterpret_cast<void*>(address), bytes, protection) == 0;
}

}  // namespace atp::sim
