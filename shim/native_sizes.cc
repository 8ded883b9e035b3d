// SPDX-License-Identifier: Apache-2.0
#include "shim/native_sizes.h"

#include <sys/mman.h>

#include <algorithm>

namespace atp::shim {

constinit NativeSizes g_native_sizes;

namespace {

uint64_t Hash(uint64_t address) {
  address *= 0x9E3779B97F4A7C15u;
  return address ^ (address >> 32);
}

}  // namespace

NativeSizes::Entry* NativeSizes::Slot(uint64_t address) {
  uint64_t index = Hash(address) & (capacity_ - 1);
  while (entries_[index].address != 0 && entries_[index].address != address) {
    index = (index + 1) & (capacity_ - 1);
  }
  return &entries_[index];
}

bool NativeSizes::Grow() {
  const uint64_t capacity = capacity_ == 0 ? 4096 : capacity_ * 2;
  void* memory = mmap(nullptr, capacity * sizeof(Entry), PROT_READ | PROT_WRITE,
                      MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED) return false;
  Entry* old = entries_;
  const uint64_t old_capacity = capacity_;
  entries_ = static_cast<Entry*>(memory);
  capacity_ = capacity;
  for (uint64_t i = 0; i < old_capacity; ++i) {
    if (old[i].address != 0) *Slot(old[i].address) = old[i];
  }
  if (old != nullptr) munmap(old, old_capacity * sizeof(Entry));
  return true;
}

bool NativeSizes::Insert(const Entry& entry) {
  std::lock_guard lock(mutex_);
  if ((size_ + 1) * 2 > capacity_ && !Grow()) return false;
  Entry* slot = Slot(entry.address);
  if (slot->address == 0) ++size_;
  *slot = entry;
  return true;
}

// Closes the gap: whoever was pushed past it by probing moves back, so no tombstones pile up.
void NativeSizes::Erase(uint64_t hole) {
  uint64_t index = hole;
  while (true) {
    index = (index + 1) & (capacity_ - 1);
    if (entries_[index].address == 0) break;
    const uint64_t home = Hash(entries_[index].address) & (capacity_ - 1);
    const bool stays = ((index - home) & (capacity_ - 1)) < ((index - hole) & (capacity_ - 1));
    if (stays) continue;
    entries_[hole] = entries_[index];
    hole = index;
  }
  entries_[hole] = Entry{};
  --size_;
}

bool NativeSizes::Take(uint64_t address, Entry* entry) {
  std::lock_guard lock(mutex_);
  if (capacity_ == 0 || address == 0) return false;
  Entry* slot = Slot(address);
  if (slot->address == 0) return false;
  *entry = *slot;
  Erase(static_cast<uint64_t>(slot - entries_));
  return true;
}

bool NativeSizes::Find(uint64_t address, Entry* entry) {
  std::lock_guard lock(mutex_);
  if (capacity_ == 0 || address == 0) return false;
  const Entry* slot = Slot(address);
  if (slot->address == 0) return false;
  *entry = *slot;
  return true;
}

size_t NativeSizes::Holders(int device, Holder* holders, size_t most) {
  constexpr size_t kKinds = 64;  // more than this are not told apart
  Holder kinds[kKinds];
  size_t count = 0;
  std::lock_guard lock(mutex_);
  for (uint64_t i = 0; i < capacity_; ++i) {
    const Entry& entry = entries_[i];
    if (entry.address == 0 || entry.device != device) continue;
    size_t kind = 0;
    while (kind < count && (kinds[kind].why != entry.why || kinds[kind].caller != entry.caller)) {
      ++kind;
    }
    if (kind == kKinds) --kind;
    if (kind == count) kinds[count++] = {entry.why, entry.caller};
    kinds[kind].bytes += entry.bytes;
    ++kinds[kind].count;
  }
  std::sort(kinds, kinds + count,
            [](const Holder& a, const Holder& b) { return a.bytes > b.bytes; });
  count = std::min(count, most);
  std::copy(kinds, kinds + count, holders);
  return count;
}

}  // namespace atp::shim
