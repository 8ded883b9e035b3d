// SPDX-License-Identifier: Apache-2.0
#include "sim/machine/unified/physical.h"

#include <gtest/gtest.h>

#include <list>
#include <random>

namespace atp::sim {
namespace {

constexpr uint64_t kBlock = kBlockBytes;

TEST(PhysicalMemory, TakesChunksFromTheCardInBatches) {
  PhysicalMemory memory(100 * kBlock, 64);
  ASSERT_NE(memory.TakeRoot(), kNoChunk);
  EXPECT_EQ(memory.free_bytes(), 36 * kBlock);
  EXPECT_EQ(memory.List(ChunkList::kFreeZero).size(), 63u);
  for (int i = 1; i < 64; ++i) ASSERT_NE(memory.TakeRoot(), kNoChunk);
  EXPECT_EQ(memory.free_bytes(), 36 * kBlock);
  ASSERT_NE(memory.TakeRoot(), kNoChunk);
  EXPECT_EQ(memory.free_bytes(), 0u);
  for (int i = 1; i < 36; ++i) ASSERT_NE(memory.TakeRoot(), kNoChunk);
  EXPECT_EQ(memory.TakeRoot(), kNoChunk);
}

TEST(PhysicalMemory, VictimsComeFromUnusedThenDiscardedThenUsed) {
  PhysicalMemory memory(8 * kBlock, 1);
  ChunkId used = memory.TakeRoot(), discarded = memory.TakeRoot(), unused = memory.TakeRoot();
  memory.MoveToTail(used, ChunkList::kUsed);
  memory.MoveToTail(discarded, ChunkList::kDiscarded);
  memory.MoveToTail(unused, ChunkList::kUnused);
  EXPECT_EQ(memory.Victim(), unused);
  memory.Remove(unused);
  EXPECT_EQ(memory.Victim(), discarded);
  memory.Remove(discarded);
  EXPECT_EQ(memory.Victim(), used);
  memory.Remove(used);
  EXPECT_EQ(memory.Victim(), kNoChunk);
}

TEST(PhysicalMemory, ListsKeepTheOrderOfATrivialModel) {
  std::mt19937 random(3);
  PhysicalMemory memory(64 * kBlock, 4);
  std::list<ChunkId> model[3];
  const ChunkList lists[3] = {ChunkList::kUnused, ChunkList::kDiscarded, ChunkList::kUsed};
  std::vector<ChunkId> all;
  for (int i = 0; i < 64; ++i) all.push_back(memory.TakeRoot());
  for (int step = 0; step < 5000; ++step) {
    ChunkId id = all[random() % all.size()];
    size_t to = random() % 4;
    for (auto& list : model) list.remove(id);
    if (to == 3) {
      memory.Remove(id);
    } else {
      memory.MoveToTail(id, lists[to]);
      model[to].push_back(id);
    }
    ChunkId victim = kNoChunk;
    for (size_t i = 3; i-- > 0;) {
      if (!model[i].empty()) victim = model[i].front();
    }
    ASSERT_EQ(memory.Victim(), victim);
    ASSERT_EQ(memory.evictable_bytes(),
              (model[0].size() + model[1].size() + model[2].size()) * kBlock);
  }
  for (size_t i = 0; i < 3; ++i) {
    EXPECT_EQ(memory.List(lists[i]), std::vector<ChunkId>(model[i].begin(), model[i].end()));
  }
}

TEST(PhysicalMemory, PartsOfASplitChunkAreAlignedAndDisjoint) {
  PhysicalMemory memory(4 * kBlock, 1);
  ChunkId id = memory.TakeRoot();
  memory.Split(id);
  PageMask taken;
  for (int i = 0; i < 31; ++i) {
    int pages = i % 2 == 0 ? 16 : 1, first = -1;
    ChunkId from = kNoChunk;
    ASSERT_TRUE(memory.TakePart(pages, &from, &first));
    EXPECT_EQ(from, id);
    EXPECT_EQ(first % pages, 0);
    EXPECT_EQ(taken.CountRange(first, pages), 0);
    taken.SetRange(first, pages);
  }
  memory.Empty(id);
  ChunkId from = kNoChunk;
  int first = 0;
  EXPECT_FALSE(memory.TakePart(1, &from, &first));  // whole again
}

TEST(PhysicalMemory, PlainMemoryIsPinnedOnlyFromWhatNobodyClaimed) {
  PhysicalMemory memory(10 * kBlock, 4);
  memory.TakeRoot();
  EXPECT_FALSE(memory.Pin(7 * kBlock));
  EXPECT_TRUE(memory.Pin(6 * kBlock));
  EXPECT_TRUE(memory.ReturnFree());  // of the batch's slack
  EXPECT_TRUE(memory.Pin(kBlock));
  memory.Unpin(7 * kBlock);
  EXPECT_EQ(memory.free_bytes(), 7 * kBlock);
}

}  // namespace
}  // namespace atp::sim
