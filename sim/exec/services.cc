// SPDX-License-Identifier: Apache-2.0
// What handlers ask for outside their own work: memory regions, touches, failures, clocks.
#include <atomic>
#include <cinttypes>
#include <cstdio>

#include "sim/exec/worker.h"

namespace atp::sim::exec {
namespace {

// Bits of the words that [begin, end) covers whole, within one page, as a range of word numbers.
struct WordRange {
  uint32_t first, last;  // last is exclusive
};

WordRange WholeWords(uint64_t page, uint64_t begin, uint64_t end) {
  uint64_t start = page << kPageBits;
  uint64_t from = begin > start ? begin - start : 0,
           to = end - start < kPageBytes ? end - start : kPageBytes;
  return {static_cast<uint32_t>((from + 3) / 4), static_cast<uint32_t>(to / 4)};
}
WordRange AnyWords(uint64_t page, uint64_t begin, uint64_t end) {
  uint64_t start = page << kPageBits;
  uint64_t from = begin > start ? begin - start : 0,
           to = end - start < kPageBytes ? end - start : kPageBytes;
  return {static_cast<uint32_t>(from / 4), static_cast<uint32_t>((to + 3) / 4)};
}

uint64_t BitsFrom(uint32_t first, uint32_t last, uint32_t word) {
  uint64_t bits = ~uint64_t{0};
  if (word == first / 64) bits &= ~uint64_t{0} << (first % 64);
  if (word == last / 64) bits &= (uint64_t{1} << (last % 64)) - 1;
  return bits;
}

bool AllWritten(const PageEntry& entry, WordRange range) {
  if (entry.written == nullptr) return false;
  for (uint32_t word = range.first / 64; word <= range.last / 64 && word < kBitmapWords; ++word) {
    uint64_t wanted = BitsFrom(range.first, range.last, word);
    if ((entry.written[word] & wanted) != wanted) return false;
  }
  return true;
}

// Counts a read of words that nobody has written, and notes words that are written. Workers share
// the bits of an allocation, hence atomics.
void CheckRead(Warp& warp, uint64_t begin, uint64_t end) {
  Region region;
  if (!warp.block->launch->memory->Find(begin, &region) || region.initialised == nullptr) return;
  for (uint64_t word = (begin - region.begin) / 4; word <= (end - 1 - region.begin) / 4; ++word) {
    const std::atomic_ref<uint64_t> bits(region.initialised[word / 64]);
    if ((bits.load(std::memory_order_relaxed) >> (word % 64) & 1) != 0) continue;
    warp.worker->NoteUninitialised(warp, begin);
    return;
  }
}

void NoteWritten(Warp& warp, uint64_t begin, uint64_t end) {
  Region region;
  if (!warp.block->launch->memory->Find(begin, &region) || region.initialised == nullptr) return;
  for (uint64_t word = (begin - region.begin) / 4; word <= (end - 1 - region.begin) / 4; ++word) {
    const std::atomic_ref<uint64_t> bits(region.initialised[word / 64]);
    bits.fetch_or(uint64_t{1} << (word % 64), std::memory_order_relaxed);
  }
}

PageEntry* EntryOf(Warp& warp, AccessCache* cache, uint64_t page) {
  if (cache->page == page) return cache->entry;
  cache->entry = warp.block->touches->Find(page);
  cache->page = page;
  return cache->entry;
}

bool ResolveInternal(Warp& warp, AccessCache* cache, uint64_t address, uint32_t bytes) {
  uint64_t offset = address & kOffsetMask, size = InternalMemory::bytes();
  if (offset > size || size - offset < bytes) return false;
  cache->begin = TagBase(kTagInternal);
  cache->end = cache->begin + size;
  cache->delta = static_cast<int64_t>(
      reinterpret_cast<uintptr_t>(warp.block->launch->internal->data()) - cache->begin);
  cache->writable = true;
  return true;
}

}  // namespace

bool ResolveRegion(Warp& warp, AccessCache* cache, uint64_t address, uint32_t bytes, bool write) {
  uint64_t tag = address >> kTagShift;
  if (tag == kTagInternal) return ResolveInternal(warp, cache, address, bytes);
  if (tag != kTagMemory) return false;
  Region region;
  if (!warp.block->launch->memory->Find(address, &region)) return false;
  if (address < region.begin || address >= region.end || region.end - address < bytes) return false;
  if (write && !region.writable) return false;
  warp.worker->NoteRegion(region);
  cache->begin = region.begin;
  cache->end = region.end;
  cache->delta = region.host_delta;
  cache->writable = region.writable;
  return true;
}

void TouchRead(Warp& warp, AccessCache* cache, uint64_t begin, uint64_t end) {
  const Launch& launch = *warp.block->launch;
  if (begin >> kTagShift != kTagMemory) return;
  const bool watched = launch.config.check_reads;
  if (watched) CheckRead(warp, begin, end);
  if (!launch.record_touches) return;
  for (uint64_t page = begin >> kPageBits; page <= (end - 1) >> kPageBits; ++page) {
    PageEntry* entry = EntryOf(warp, cache, page);
    entry->flags |= PageTouch::kRead;
    // A page with an exposed read is not reported again by the handlers: not while all are watched.
    bool& exposed = watched ? entry->watched_read : entry->exposed_read;
    if (!exposed && !AllWritten(*entry, AnyWords(page, begin, end))) exposed = true;
  }
}

void TouchWrite(Warp& warp, AccessCache* cache, uint64_t begin, uint64_t end) {
  const Launch& launch = *warp.block->launch;
  if (begin >> kTagShift != kTagMemory) return;
  if (launch.config.check_reads) NoteWritten(warp, begin, end);
  if (!launch.record_touches) return;
  for (uint64_t page = begin >> kPageBits; page <= (end - 1) >> kPageBits; ++page) {
    PageEntry* entry = EntryOf(warp, cache, page);
    entry->flags |= PageTouch::kWrite;
    if (entry->exposed_read) continue;  // it cannot count as overwritten any more
    if (entry->written == nullptr) warp.block->touches->AddBitmap(entry);
    WordRange range = WholeWords(page, begin, end);
    if (range.first >= range.last) continue;
    for (uint32_t word = range.first / 64; word <= range.last / 64 && word < kBitmapWords; ++word) {
      entry->written[word] |= BitsFrom(range.first, range.last, word);
    }
  }
}

uint8_t* LaneAddress(Warp& warp, const Insn* insn, int lane, uint64_t address, uint32_t bytes,
                     bool read, bool write) {
  uint64_t tag = address >> kTagShift, offset = address & kOffsetMask;
  bool generic = (insn->aux & 1) != 0;
  Block& block = *warp.block;
  if ((address & (bytes - 1)) != 0) {
    FailAddress(warp, insn, ExecStatus::kMisalignedAddress, "global", address);
    return nullptr;
  }
  if (tag == kTagMemory || tag == kTagInternal) {
    AccessCache* cache = warp.caches + insn->cache;
    bool cached = address >= cache->begin && address < cache->end &&
                  cache->end - address >= bytes && (!write || cache->writable);
    if (cached || ResolveRegion(warp, cache, address, bytes, write)) {
      if (read) TouchRead(warp, cache, address, address + bytes);
      if (write) TouchWrite(warp, cache, address, address + bytes);
      return reinterpret_cast<uint8_t*>(address + static_cast<uint64_t>(cache->delta));
    }
  } else if (generic && tag == kTagShared) {
    if (offset <= block.shared_bytes && block.shared_bytes - offset >= bytes)
      return block.shared + offset;
  } else if (generic && tag == kTagLocal) {
    if (offset <= warp.local_stride && warp.local_stride - offset >= bytes) {
      return warp.local + static_cast<size_t>(lane) * warp.local_stride + offset;
    }
  } else if (generic && tag == kTagParam && !write) {
    std::vector<uint8_t>& params = block.launch->params;
    if (offset <= params.size() && params.size() - offset >= bytes) return params.data() + offset;
  }
  FailAddress(warp, insn, ExecStatus::kIllegalAddress, generic ? "generic" : "global", address);
  return nullptr;
}

const Insn* Fail(Warp& warp, const Insn* insn, ExecStatus status, const char* what) {
  Block& block = *warp.block;
  if (block.failed) return kStop;
  block.failed = true;
  const Program& program = *warp.frame->program;
  const Origin& origin = program.origins[static_cast<size_t>(insn - program.entry)];
  std::string message = "kernel " + block.launch->code->name + ": " + what + " at PTX line " +
                        std::to_string(origin.line) + " (" + std::string(origin.opcode) + ")";
  if (program.function != block.launch->code->programs[0]->function)
    message += " in function " + program.name;
  message += ", block (" + std::to_string(block.id[0]) + "," + std::to_string(block.id[1]) + "," +
             std::to_string(block.id[2]) + "), warp " + std::to_string(warp.index);
  warp.worker->failure = Failure{status, std::move(message), block.index};
  return kStop;
}

const Insn* FailAddress(Warp& warp, const Insn* insn, ExecStatus status, const char* space,
                        uint64_t address) {
  char text[96];
  const char* kind = status == ExecStatus::kMisalignedAddress ? "misaligned" : "illegal";
  std::snprintf(text, sizeof(text), "%s %s address 0x%" PRIx64, kind, space, address);
  return Fail(warp, insn, status, text);
}

// One warp instruction of the block counts as one cycle and one nanosecond: virtual, monotonic, the
// same in every run.
uint64_t ClockOf(Warp& warp) { return ++warp.block->issued + warp.block->slept_ns; }
uint64_t GlobalTimer(Warp& warp) { return warp.block->launch->config.clock_ns + ClockOf(warp); }

}  // namespace atp::sim::exec
