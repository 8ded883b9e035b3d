// SPDX-License-Identifier: Apache-2.0
#include "shim/slab.h"

#include <sys/mman.h>

#include <algorithm>
#include <bit>
#include <new>

namespace atp::shim {

constinit Slabs g_slabs;

uint64_t Slabs::SlotBytes(uint64_t bytes) {
  bytes = std::max(bytes, kSlabAlignment);
  const uint64_t power = std::bit_floor(bytes);
  const uint64_t step = std::max(power / 4, kSlabAlignment);
  return (bytes + step - 1) / step * step;
}

uint64_t Slabs::SlabBytes(uint64_t bytes) {
  constexpr uint64_t kMostBlocks = 4;
  const uint64_t slot = SlotBytes(bytes);
  uint64_t best = kGranule, left = best % slot;
  for (uint64_t slab = kGranule; slab <= kMostBlocks * kGranule && left * 16 > best;
       slab += kGranule) {
    if ((slab % slot) * best < left * slab) best = slab, left = slab % slot;
  }
  return best;
}

// Slot sizes grow by quarters of a power of two: the exponent and the two bits behind the leading
// one name the class.
uint32_t Slabs::ClassOf(uint64_t slot_bytes) {
  const uint32_t exponent = static_cast<uint32_t>(std::bit_width(slot_bytes)) - 1;
  const uint32_t quarter = static_cast<uint32_t>(slot_bytes >> (exponent - 2)) & 3;
  return (exponent - 9) * 4 + quarter;
}

uint64_t Slabs::Take(uint64_t bytes, int device, CUcontext context) {
  const uint64_t slot_bytes = SlotBytes(bytes);
  std::lock_guard lock(mutex_);
  for (Slab* slab = with_room_[ClassOf(slot_bytes)]; slab != nullptr; slab = slab->next) {
    if (slab->record->device != device || slab->record->context != context) continue;
    for (uint32_t word = 0; word * 64 < slab->slot_count; ++word) {
      if (slab->taken[word] == ~0ull) continue;
      const uint32_t slot = word * 64 + static_cast<uint32_t>(std::countr_one(slab->taken[word]));
      if (slot >= slab->slot_count) break;
      slab->taken[word] |= 1ull << (slot % 64);
      slab->requested[slot] = static_cast<uint32_t>(bytes);
      if (--slab->free_count == 0) Unlink(slab);
      return slab->record->address + slot * slab->slot_bytes;
    }
  }
  return 0;
}

bool Slabs::AddSlab(Record* record, uint64_t bytes) {
  std::lock_guard lock(mutex_);
  Slab* slab = NewHeader();
  if (slab == nullptr) return false;
  slab->record = record;
  slab->slot_bytes = SlotBytes(bytes);
  slab->slot_count = static_cast<uint32_t>(record->mapped_bytes / slab->slot_bytes);
  slab->free_count = slab->slot_count;
  slab->size_class = ClassOf(slab->slot_bytes);
  record->slab = slab;
  Link(slab);
  return true;
}

bool Slabs::Range(const Record& record, uint64_t address, uint64_t* start, uint64_t* bytes) {
  std::lock_guard lock(mutex_);
  const Slab* slab = record.slab;
  if (slab == nullptr || slab->record != &record) return false;
  const uint64_t slot = (address - record.address) / slab->slot_bytes;
  if (slot >= slab->slot_count || (slab->taken[slot / 64] >> (slot % 64) & 1) == 0) return false;
  *start = record.address + slot * slab->slot_bytes;
  *bytes = slab->requested[slot];
  return address < *start + *bytes;
}

bool Slabs::Give(Record* record, uint64_t address, bool* empty) {
  *empty = false;
  std::lock_guard lock(mutex_);
  Slab* slab = record->slab;
  if (slab == nullptr || slab->record != record) return false;
  const uint64_t offset = address - record->address;
  const uint64_t slot = offset / slab->slot_bytes;
  if (offset % slab->slot_bytes != 0 || slot >= slab->slot_count) return false;
  if ((slab->taken[slot / 64] >> (slot % 64) & 1) == 0) return false;
  slab->taken[slot / 64] &= ~(1ull << (slot % 64));
  if (slab->free_count++ == 0) Link(slab);
  if (slab->free_count < slab->slot_count) return true;
  Unlink(slab);
  Retire(slab);
  *empty = true;
  return true;
}

void Slabs::Forget(Record* record) {
  std::lock_guard lock(mutex_);
  Slab* slab = record->slab;
  if (slab == nullptr || slab->record != record) return;
  if (slab->free_count > 0) Unlink(slab);
  Retire(slab);
}

void Slabs::Retire(Slab* slab) {
  slab->record->slab = nullptr;
  slab->record = nullptr;
  slab->next = spare_;
  spare_ = slab;
}

void Slabs::Link(Slab* slab) {
  Slab*& head = with_room_[slab->size_class];
  slab->previous = nullptr;
  slab->next = head;
  if (head != nullptr) head->previous = slab;
  head = slab;
}

void Slabs::Unlink(Slab* slab) {
  (slab->previous != nullptr ? slab->previous->next : with_room_[slab->size_class]) = slab->next;
  if (slab->next != nullptr) slab->next->previous = slab->previous;
  slab->next = slab->previous = nullptr;
}

Slab* Slabs::NewHeader() {
  if (spare_ != nullptr) {
    Slab* slab = spare_;
    spare_ = slab->next;
    return new (slab) Slab;
  }
  void* memory =
      mmap(nullptr, sizeof(Slab), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  return memory == MAP_FAILED ? nullptr : new (memory) Slab;
}

}  // namespace atp::shim
