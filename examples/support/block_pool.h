// SPDX-License-Identifier: Apache-2.0
// Blocks cut from a few large pieces of memory, as the caches of frameworks do it: the smallest
// free block that holds a request, split when much is left, merged with free neighbours when it
// comes back. Addresses only; the memory comes from whoever calls AddSegment or Extend.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <set>
#include <utility>

namespace example {

class BlockPool {
 public:
  struct Rule {
    size_t round = 512;       // sizes are multiples of it
    size_t least_rest = 512;  // a smaller rest stays with the block
  };
  explicit BlockPool(const Rule& rule) : rule_(rule) {}

  size_t Rounded(size_t bytes) const {
    return (bytes + rule_.round - 1) / rule_.round * rule_.round;
  }
  void AddSegment(uint64_t address, size_t bytes) {
    blocks_[address] = {bytes, true, true};
    free_.insert({bytes, address});
  }
  // The memory behind the last block grows: a free block there becomes larger.
  void Extend(uint64_t end, size_t bytes) {
    blocks_[end] = {bytes, true, false};
    Merge(blocks_.find(end));
  }
  // Of the free block that ends at `end`; 0 = it is in use.
  size_t FreeBefore(uint64_t end) const {
    auto block = blocks_.lower_bound(end);
    if (block == blocks_.begin()) return 0;
    --block;
    return block->second.free ? block->second.bytes : 0;
  }
  uint64_t Take(size_t bytes) {  // 0: no block is large enough
    bytes = Rounded(bytes);
    const auto fit = free_.lower_bound({bytes, 0});
    if (fit == free_.end()) return 0;
    const uint64_t address = fit->second;
    free_.erase(fit);
    Block& block = blocks_[address];
    block.free = false;
    if (const size_t rest = block.bytes - bytes; rest >= rule_.least_rest && rest > 0) {
      block.bytes = bytes;
      blocks_[address + bytes] = {rest, true, false};
      free_.insert({rest, address + bytes});
    }
    return address;
  }
  bool Give(uint64_t address) {  // false: not ours
    const auto block = blocks_.find(address);
    if (block == blocks_.end() || block->second.free) return false;
    block->second.free = true;
    Merge(block);
    return true;
  }

 private:
  struct Block {
    size_t bytes = 0;
    bool free = false;
    bool first = false;  // of its segment: does not merge with what lies before it
  };
  using Place = std::map<uint64_t, Block>::iterator;

  // `at` is free and not in free_ yet.
  void Merge(Place at) {
    const auto next = std::next(at);
    if (next != blocks_.end() && next->second.free && !next->second.first) Absorb(at, next);
    if (!at->second.first && at != blocks_.begin() && std::prev(at)->second.free) {
      const auto before = std::prev(at);
      free_.erase({before->second.bytes, before->first});
      before->second.bytes += at->second.bytes;
      blocks_.erase(at);
      at = before;
    }
    free_.insert({at->second.bytes, at->first});
  }
  void Absorb(Place at, Place next) {
    free_.erase({next->second.bytes, next->first});
    at->second.bytes += next->second.bytes;
    blocks_.erase(next);
  }

  Rule rule_;
  std::map<uint64_t, Block> blocks_;  // by address
  std::set<std::pair<size_t, uint64_t>> free_;
};

}  // namespace example
