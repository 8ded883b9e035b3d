// SPDX-License-Identifier: Apache-2.0
// Pages touched by one chunk of blocks, in order of first touch, with the 4-byte words of each page
// that were written.
//
// "Overwritten" has to be provable: a page counts when every word of it was written in the wave,
// each by an access that covers the word whole, and no read saw a word that its own chunk had not
// written before. A chunk belongs to one thread; merging is done in block order (launch.cc), so
// that the result does not depend on how chunks were spread over threads.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "sim/exec/exec.h"

namespace atp::sim::exec {

inline constexpr uint64_t kPageBytes = uint64_t{1} << kPageBits;
inline constexpr int kBitmapWords = static_cast<int>(kPageBytes / 4 / 64);

struct PageEntry {
  uint64_t page = 0;
  uint64_t* written = nullptr;  // one bit per 4-byte word; null until the first write
  uint8_t flags = 0;            // PageTouch::kRead | kWrite
  bool exposed_read = false;    // a read saw old content
  bool watched_read = false;    // the same, kept apart while every read is looked at (services.cc)
};

class TouchTable {
 public:
  TouchTable();
  PageEntry* Find(uint64_t page);  // adds it when new; the pointer stays valid until Clear
  void AddBitmap(PageEntry* entry);
  void EndBlock();  // what was added since the last end is a block's
  std::span<const uint32_t> block_ends() const { return block_ends_; }
  void Clear();
  size_t size() const { return size_; }
  PageEntry& at(size_t i) { return chunks_[i / kEntriesPerChunk][i % kEntriesPerChunk]; }
  const PageEntry& at(size_t i) const {
    return chunks_[i / kEntriesPerChunk][i % kEntriesPerChunk];
  }

 private:
  static constexpr size_t kEntriesPerChunk = 512;
  static constexpr size_t kBitmapsPerChunk = 64;
  void Grow();

  std::vector<std::unique_ptr<PageEntry[]>> chunks_;
  std::vector<std::unique_ptr<uint64_t[]>> bitmaps_;
  std::vector<uint32_t> slots_;  // open addressing: index + 1, 0 = free
  std::vector<uint32_t> block_ends_;
  size_t size_ = 0, bitmap_count_ = 0;
};

// Per-instruction memory of the last region and page, one set per worker.
struct AccessCache {
  uint64_t begin = 1, end = 0;  // region
  int64_t delta = 0;
  uint64_t page = ~uint64_t{0};  // last page, already in the table
  PageEntry* entry = nullptr;
  bool writable = false;
};

}  // namespace atp::sim::exec
