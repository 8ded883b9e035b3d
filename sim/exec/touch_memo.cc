// SPDX-License-Identifier: Apache-2.0
#include "sim/exec/touch_memo.h"

#include <cstring>

namespace atp::sim::exec {
namespace {

constexpr uint64_t kMostBytes = 64 << 20;  // of one kernel; then it starts anew

template <class T>
void Append(std::string* key, const T& value) {
  key->append(reinterpret_cast<const char*>(&value), sizeof value);
}

}  // namespace

std::string TouchMemo::Key(const LaunchConfig& config, std::span<const uint8_t> params) const {
  std::string key;
  Append(&key, config.grid);
  Append(&key, config.block);
  Append(&key, config.dynamic_shared_bytes);
  Append(&key, config.blocks_per_wave);
  key.push_back(config.cooperative ? 1 : 0);
  for (auto [offset, bytes] : slice_.params) {
    if (size_t{offset} + bytes > params.size()) continue;
    key.append(reinterpret_cast<const char*>(params.data()) + offset, bytes);
  }
  return key;
}

bool TouchMemo::Recall(const std::string& key, const MemoryMap& memory, ExecResult* result) const {
  auto found = entries_.find(key);
  if (found == entries_.end()) return false;
  const Entry& entry = found->second;
  for (const Region& region : entry.regions) {
    Region now;
    if (!memory.Find(region.begin, &now) || now.begin != region.begin || now.end != region.end ||
        now.writable != region.writable)
      return false;
  }
  result->warp_instructions = entry.warp_instructions;
  result->lane_instructions = entry.lane_instructions;
  result->sector_bytes = entry.sector_bytes;
  result->waves.resize(entry.wave_ends.size());
  size_t at = 0;
  for (size_t w = 0; w < entry.wave_ends.size(); ++w) {
    std::vector<PageTouch>& pages = result->waves[w].pages;
    result->waves[w].block_ends = entry.block_ends[w];
    for (; at < entry.wave_ends[w]; ++at) {
      const Run& run = entry.runs[at];
      for (uint32_t k = 0; k < run.count; ++k) pages.push_back({run.first + k, run.flags});
    }
  }
  return true;
}

void TouchMemo::Remember(const std::string& key, std::vector<Region> regions,
                         const ExecResult& result) {
  Entry entry;
  entry.regions = std::move(regions);
  entry.warp_instructions = result.warp_instructions;
  entry.lane_instructions = result.lane_instructions;
  entry.sector_bytes = result.sector_bytes;
  for (const WaveTouches& wave : result.waves) {
    const size_t first = entry.runs.size();
    for (const PageTouch& touch : wave.pages) {
      if (entry.runs.size() > first) {
        Run& last = entry.runs.back();
        if (touch.page == last.first + last.count && touch.flags == last.flags) {
          ++last.count;
          continue;
        }
      }
      entry.runs.push_back({touch.page, 1, touch.flags});
    }
    entry.wave_ends.push_back(static_cast<uint32_t>(entry.runs.size()));
    entry.block_ends.push_back(wave.block_ends);
    entry.bytes += wave.block_ends.size() * sizeof(uint32_t);
  }
  entry.bytes += entry.runs.size() * sizeof(Run) + key.size() + sizeof(Entry);
  if (auto old = entries_.find(key); old != entries_.end()) {
    bytes_ -= old->second.bytes;
    entries_.erase(old);
  }
  if (bytes_ + entry.bytes > kMostBytes) {
    entries_.clear();
    bytes_ = 0;
  }
  bytes_ += entry.bytes;
  entries_.emplace(key, std::move(entry));
}

}  // namespace atp::sim::exec
