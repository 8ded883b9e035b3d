// SPDX-License-Identifier: Apache-2.0
#include "sim/exec/touch_table.h"

#include <cstring>

namespace atp::sim::exec {
namespace {

size_t HashPage(uint64_t page) { return static_cast<size_t>((page * 0x9e3779b97f4a7c15ull) >> 32); }

}  // namespace

TouchTable::TouchTable() : slots_(256, 0) {}

PageEntry* TouchTable::Find(uint64_t page) {
  size_t mask = slots_.size() - 1;
  size_t slot = HashPage(page) & mask;
  for (; slots_[slot] != 0; slot = (slot + 1) & mask) {
    PageEntry& entry = at(slots_[slot] - 1);
    if (entry.page == page) return &entry;
  }
  if ((size_ + 1) * 2 > slots_.size()) {
    Grow();
    mask = slots_.size() - 1;
    for (slot = HashPage(page) & mask; slots_[slot] != 0;) slot = (slot + 1) & mask;
  }
  if (size_ / kEntriesPerChunk == chunks_.size()) {
    chunks_.push_back(std::make_unique<PageEntry[]>(kEntriesPerChunk));
  }
  slots_[slot] = static_cast<uint32_t>(++size_);
  PageEntry& entry = at(size_ - 1);
  entry = PageEntry{};
  entry.page = page;
  return &entry;
}

void TouchTable::Grow() {
  std::vector<uint32_t> bigger(slots_.size() * 4, 0);
  for (size_t i = 0; i < size_; ++i) {
    size_t slot = HashPage(at(i).page) & (bigger.size() - 1);
    while (bigger[slot] != 0) slot = (slot + 1) & (bigger.size() - 1);
    bigger[slot] = static_cast<uint32_t>(i + 1);
  }
  slots_.swap(bigger);
}

void TouchTable::AddBitmap(PageEntry* entry) {
  if (bitmap_count_ / kBitmapsPerChunk == bitmaps_.size()) {
    bitmaps_.push_back(std::make_unique<uint64_t[]>(kBitmapsPerChunk * kBitmapWords));
  }
  entry->written = bitmaps_[bitmap_count_ / kBitmapsPerChunk].get() +
                   bitmap_count_ % kBitmapsPerChunk * kBitmapWords;
  std::memset(entry->written, 0, kBitmapWords * sizeof(uint64_t));
  ++bitmap_count_;
}

void TouchTable::EndBlock() {
  const uint32_t end = static_cast<uint32_t>(size_);
  if (end > (block_ends_.empty() ? 0 : block_ends_.back())) block_ends_.push_back(end);
}

void TouchTable::Clear() {
  std::fill(slots_.begin(), slots_.end(), 0u);
  block_ends_.clear();
  size_ = 0;
  bitmap_count_ = 0;
}

}  // namespace atp::sim::exec
