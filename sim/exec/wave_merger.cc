// SPDX-License-Identifier: Apache-2.0
#include "sim/exec/wave_merger.h"

namespace atp::sim::exec {
namespace {

bool IsFull(const PageEntry& entry) {
  if (entry.written == nullptr) return false;
  for (int k = 0; k < kBitmapWords; ++k) {
    if (entry.written[k] != ~uint64_t{0}) return false;
  }
  return true;
}

}  // namespace

void WaveMerger::Add(const TouchTable& chunk) {
  auto end = chunk.block_ends().begin();
  for (size_t k = 0; k < chunk.size(); ++k) {
    if (end != chunk.block_ends().end() && *end == k) {
      table_.EndBlock();
      ++end;
    }
    const PageEntry& from = chunk.at(k);
    PageEntry* to = table_.Find(from.page);
    to->flags |= from.flags;
    to->exposed_read |= from.exposed_read || from.watched_read;
    if (from.written == nullptr || to->exposed_read) continue;
    if (to->written == nullptr) table_.AddBitmap(to);
    for (int w = 0; w < kBitmapWords; ++w) to->written[w] |= from.written[w];
  }
  if (end != chunk.block_ends().end()) table_.EndBlock();
}

void WaveMerger::EndWave() {
  WaveTouches wave;
  wave.pages.reserve(table_.size());
  for (size_t k = 0; k < table_.size(); ++k) {
    const PageEntry& entry = table_.at(k);
    uint8_t flags = entry.flags;
    if (!entry.exposed_read && IsFull(entry)) flags |= PageTouch::kOverwritten;
    wave.pages.push_back({entry.page, flags});
  }
  wave.block_ends.assign(table_.block_ends().begin(), table_.block_ends().end());
  table_.Clear();
  waves_->push_back(std::move(wave));
}

}  // namespace atp::sim::exec
