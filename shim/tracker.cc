// SPDX-License-Identifier: Apache-2.0
#include "shim/tracker.h"

#include <sys/mman.h>

#include <bit>
#include <new>

namespace atp::shim {

constinit Tracker g_tracker;

namespace {

// Table memory comes from the kernel: zeroed, and no allocator of the program's is entered from
// inside its own allocation calls.
void* Map(size_t bytes) {
  void* memory = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  return memory == MAP_FAILED ? nullptr : memory;
}

}  // namespace

Record* Tracker::Insert(uint64_t address, uint64_t bytes, uint64_t mapped_bytes, CUcontext context,
                        int device) {
  std::lock_guard lock(mutex_);
  Record* record = NewRecord();
  if (record == nullptr) return nullptr;
  const int64_t slot = TakeSlot();
  record->id = ++last_id_;
  record->address = address;
  record->bytes = bytes;
  record->mapped_bytes = mapped_bytes;
  record->context = context;
  record->device = device;
  record->shown = record->read_mostly = false;
  record->read_mostly_broken = record->served = 0;
  record->slab = nullptr;
  record->pieces = nullptr;
  record->idle_order = 0;
  record->next = nullptr;
  record->slot = static_cast<uint32_t>(slot);  // all of it before readers can find it
  if (slot < 0 || !SetGranules(address, mapped_bytes, record)) {
    if (slot >= 0) GiveSlot(static_cast<uint32_t>(slot));
    SetGranules(address, mapped_bytes, nullptr);
    return nullptr;  // the record is lost: this happens when memory is out, once
  }
  live_.fetch_add(1, std::memory_order_relaxed);
  return record;
}

bool Tracker::Grow(Record* record, uint64_t mapped_bytes) {
  std::lock_guard lock(mutex_);
  const uint64_t end = record->address + record->mapped_bytes;
  const uint64_t more = mapped_bytes - record->mapped_bytes;
  if (!SetGranules(end, more, record)) {
    SetGranules(end, more, nullptr);
    return false;
  }
  record->bytes = record->mapped_bytes = mapped_bytes;
  return true;
}

void Tracker::Remove(Record* record) {
  std::lock_guard lock(mutex_);
  SetGranules(record->address, record->mapped_bytes, nullptr);
  GiveSlot(record->slot);
  live_.fetch_sub(1, std::memory_order_relaxed);
  record->next = nullptr;
  (quarantine_tail_ != nullptr ? quarantine_tail_->next : quarantine_head_) = record;
  quarantine_tail_ = record;
  ++quarantined_;
}

bool Tracker::Restore(Record* record) {
  const Record old = *record;
  Record* again = Insert(old.address, old.bytes, old.mapped_bytes, old.context, old.device);
  if (again == nullptr) return false;
  again->slab = old.slab;
  again->pieces = old.pieces;
  return true;
}

bool Tracker::SetGranules(uint64_t address, uint64_t mapped_bytes, Record* record) {
  const uint64_t first = address / kGranule;
  for (uint64_t granule = first; granule < first + mapped_bytes / kGranule; ++granule) {
    if (granule >= kLeaves * kLeafEntries) return record == nullptr;
    std::atomic<Leaf*>& place = leaves_[granule / kLeafEntries];
    Leaf* leaf = place.load(std::memory_order_relaxed);
    if (leaf == nullptr) {
      if (record == nullptr) continue;
      leaf = static_cast<Leaf*>(Map(sizeof(Leaf)));
      if (leaf == nullptr) return false;
      place.store(leaf, std::memory_order_release);
    }
    leaf->records[granule % kLeafEntries].store(record, std::memory_order_release);
  }
  return true;
}

Record* Tracker::NewRecord() {
  if (quarantined_ > kQuarantine) {
    Record* oldest = quarantine_head_;
    quarantine_head_ = oldest->next;
    --quarantined_;
    return oldest;
  }
  if (arena_left_ == 0) {
    constexpr uint64_t kChunk = 1024;
    arena_ = static_cast<Record*>(Map(kChunk * sizeof(Record)));
    if (arena_ == nullptr) return nullptr;
    arena_left_ = kChunk;
  }
  --arena_left_;
  return new (arena_++) Record;
}

int64_t Tracker::TakeSlot() {
  for (size_t top = 0; top < std::size(slot_summary_); ++top) {
    if (slot_summary_[top] == ~0ull) continue;
    const size_t group = top * 64 + static_cast<size_t>(std::countr_one(slot_summary_[top]));
    const size_t word = group * 64 + static_cast<size_t>(std::countr_one(slot_groups_[group]));
    const size_t bit = static_cast<size_t>(std::countr_one(slot_words_[word]));
    slot_words_[word] |= 1ull << bit;
    if (slot_words_[word] == ~0ull) slot_groups_[group] |= 1ull << (word % 64);
    if (slot_groups_[group] == ~0ull) slot_summary_[top] |= 1ull << (group % 64);
    return static_cast<int64_t>(word * 64 + bit);
  }
  return -1;
}

void Tracker::GiveSlot(uint32_t slot) {
  slot_words_[slot / 64] &= ~(1ull << (slot % 64));
  slot_groups_[slot / 64 / 64] &= ~(1ull << (slot / 64 % 64));
  slot_summary_[slot / 64 / 64 / 64] &= ~(1ull << (slot / 64 / 64 % 64));
}

}  // namespace atp::shim
