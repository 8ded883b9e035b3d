// SPDX-License-Identifier: Apache-2.0
// Random sequences of prefetches, kernels, host accesses and discards on whole blocks, against a
// model of a page.
#include <algorithm>
#include <list>
#include <random>

#include "tests/sim/machine/bench.h"

namespace atp::sim {
namespace {

constexpr uint64_t kBlocks = 12, kRoom = 6;

// Where blocks are and in which order they would be evicted, as the rules say: nothing else.
class TrivialDriver {
 public:
  void ToDevice(uint64_t block) {  // prefetch, or a fault of one that is missing
    if (!Has(block)) {
      if (unused_.size() + used_.size() == kRoom && !Attached(block)) Evict();
      unused_.remove(block);
    }
    used_.remove(block);
    used_.push_back(block);
  }
  void Leave(uint64_t block) {  // to the host, or discarded: the chunk stays
    if (!Has(block)) return;
    used_.remove(block);
    unused_.push_back(block);
  }
  bool Has(uint64_t block) const {
    return std::find(used_.begin(), used_.end(), block) != used_.end();
  }
  const std::list<uint64_t>& used() const { return used_; }
  const std::list<uint64_t>& unused() const { return unused_; }

 private:
  bool Attached(uint64_t block) const {
    return Has(block) || std::find(unused_.begin(), unused_.end(), block) != unused_.end();
  }
  void Evict() {
    auto& list = unused_.empty() ? used_ : unused_;
    list.pop_front();
  }
  std::list<uint64_t> used_, unused_;
};

void Walk(unsigned seed) {
  std::mt19937 random(seed);
  Bench bench(kRoom);
  TrivialDriver model;
  uint64_t base = bench.Managed(kBlocks), first = base / kBlock;
  for (int step = 0; step < 400; ++step) {
    uint64_t block = random() % kBlocks, address = base + block * kBlock;
    switch (random() % 6) {
      case 0:
      case 1:
        bench.Prefetch(address, kBlock);
        model.ToDevice(block);
        break;
      case 2:
      case 3: {
        bool present = model.Has(block);
        bench.Overwrite(address, kBlock);
        if (!present) model.ToDevice(block);  // an access of resident data moves nothing
        break;
      }
      case 4:
        bench.Prefetch(address, kBlock, kHost);
        model.Leave(block);
        break;
      case 5:
        bench.Discard(address, kBlock);
        model.Leave(block);
        break;
    }
    auto slots = [&](const std::list<uint64_t>& list) {
      std::vector<uint64_t> result;
      for (uint64_t b : list) result.push_back(b + first);
      return result;
    };
    ASSERT_EQ(bench.List(ChunkList::kUsed), slots(model.used()))
        << "seed " << seed << " step " << step;
    ASSERT_EQ(bench.List(ChunkList::kUnused), slots(model.unused()))
        << "seed " << seed << " step " << step;
  }
  EXPECT_EQ(bench->DiscardViolations(), 0u);
}

TEST(Victims, FollowTheRulesForRandomSequences) {
  for (unsigned seed = 1; seed <= 20; ++seed) Walk(seed);
}

}  // namespace
}  // namespace atp::sim
