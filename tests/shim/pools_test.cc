// SPDX-License-Identifier: Apache-2.0
#include "shim/pools.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <random>
#include <set>
#include <thread>

#include "shim/placement.h"
#include "tests/shim/fake_real.h"

namespace atp::shim {
namespace {

constexpr uint64_t kMiB = 1ull << 20;
const CUmemoryPool kPool = reinterpret_cast<CUmemoryPool>(0x700);
const CUstream kA = reinterpret_cast<CUstream>(0xA00), kB = reinterpret_cast<CUstream>(0xB00);
std::atomic<bool> streams_pass{false};  // whether what was submitted counts as done
std::atomic<int> recorded{0}, waits{0};

class PoolsTest : public testing::Test {
 protected:
  PoolsTest() {
    FakeReal::Install();
    streams_pass = false;
    g_real.cuDeviceGetMemPool = [](CUmemoryPool* pool, CUdevice) {
      return *pool = kPool, CUDA_SUCCESS;
    };
    g_real.cuDeviceGetDefaultMemPool = g_real.cuDeviceGetMemPool;
    g_real.cuEventCreate = [](CUevent* event, unsigned) {
      static std::atomic<uintptr_t> next{0x1000};
      return *event = reinterpret_cast<CUevent>(next++), CUDA_SUCCESS;
    };
    g_real.cuEventRecord = [](CUevent, CUstream) { return ++recorded, CUDA_SUCCESS; };
    g_real.cuStreamWaitEvent = [](CUstream, CUevent, unsigned) { return ++waits, CUDA_SUCCESS; };
    g_real.cuStreamQuery = [](CUstream) {
      return streams_pass ? CUDA_SUCCESS : CUDA_ERROR_NOT_READY;
    };
    recorded = waits = 0;
    NotePoolAttribute(kPool, CU_MEMPOOL_ATTR_USED_MEM_HIGH);  // of the test before
    g_real.cuEventQuery = [](CUevent) {
      return streams_pass ? CUDA_SUCCESS : CUDA_ERROR_NOT_READY;
    };
  }
  ~PoolsTest() override {
    streams_pass = true;
    TrimPieces(kPool, 0);
    EXPECT_TRUE(FakeReal::managed.empty()) << "not given back";
    EXPECT_EQ(UsageOf(*CurrentDevice()).managed, 0u) << "the books do not close";
    for (CUmemPool_attribute attribute :
         {CU_MEMPOOL_ATTR_USED_MEM_CURRENT, CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT}) {
      EXPECT_EQ(Number(attribute), 0u) << attribute;
    }
  }
  static CUdeviceptr Take(uint64_t bytes, CUstream stream) {
    CUdeviceptr address = 0;
    bool packed = false;
    EXPECT_EQ(PlaceInOrder(&address, bytes, nullptr, stream, false, &packed), CUDA_SUCCESS);
    return address;
  }
  static CUresult Give(CUdeviceptr address, CUstream stream) {
    return ReleasePieceInOrder(g_tracker.Find(address), address, stream, false);
  }
  static uint64_t Number(CUmemPool_attribute attribute) {
    uint64_t value = 0;
    AddPoolNumber(kPool, attribute, &value);
    return value;
  }
};

TEST_F(PoolsTest, AFreedPieceIsGivenOutAtOnceInItsStreamAndElsewhereWhenThatHasPassed) {
  const CUdeviceptr first = Take(4 * kMiB, kA);
  EXPECT_EQ(Give(first, kA), CUDA_SUCCESS);
  const CUdeviceptr other = Take(4 * kMiB, kB);
  EXPECT_NE(other, first);
  EXPECT_EQ(Take(4 * kMiB, kA), first);
  EXPECT_EQ(Give(first, kA), CUDA_SUCCESS);
  streams_pass = true;
  EXPECT_EQ(Take(4 * kMiB, kB), first);
  for (CUdeviceptr address : {first, other}) EXPECT_EQ(Give(address, kB), CUDA_SUCCESS);
}

TEST_F(PoolsTest, NothingIsRecordedWhileAStreamUsesItsOwnAgain) {
  const CUdeviceptr first = Take(4 * kMiB, kA);
  for (int i = 0; i < 10; ++i) {
    EXPECT_EQ(Give(first, kA), CUDA_SUCCESS);
    EXPECT_EQ(Take(4 * kMiB, kA), first);
  }
  EXPECT_EQ(recorded, 0);
  EXPECT_EQ(Give(first, kA), CUDA_SUCCESS);
  const CUdeviceptr other = Take(4 * kMiB, kB);  // asks whether kA has passed the free
  EXPECT_NE(other, first);
  EXPECT_EQ(recorded, 1);
  EXPECT_EQ(Give(other, kB), CUDA_SUCCESS);
}

TEST_F(PoolsTest, TheLowestAddressServesWhateverTheOrderOfTheFrees) {
  std::vector<CUdeviceptr> pieces;
  for (int i = 0; i < 6; ++i) pieces.push_back(Take(4 * kMiB, kA));
  for (const int i : {3, 0, 5, 1, 4, 2}) EXPECT_EQ(Give(pieces[i], kA), CUDA_SUCCESS);
  for (int i = 0; i < 6; ++i) EXPECT_EQ(Take(4 * kMiB, kA), pieces[i]);
  for (const CUdeviceptr piece : pieces) EXPECT_EQ(Give(piece, kA), CUDA_SUCCESS);
}

TEST_F(PoolsTest, WithoutOpportunisticReuseOnlyTheStreamItselfGetsItsPiecesBack) {
  static int allowed;
  allowed = 0;
  g_real.cuMemPoolGetAttribute = [](CUmemoryPool, CUmemPool_attribute attribute, void* value) {
    *static_cast<int*>(value) =
        attribute == CU_MEMPOOL_ATTR_REUSE_ALLOW_OPPORTUNISTIC ? allowed : 1;
    return CUDA_SUCCESS;
  };
  const CUdeviceptr most = Take(32 * kMiB, kA);  // beside which what is freed may be kept
  const CUdeviceptr first = Take(4 * kMiB, kA);
  NotePoolAttribute(kPool, CU_MEMPOOL_ATTR_REUSE_ALLOW_OPPORTUNISTIC);
  EXPECT_EQ(Give(first, kA), CUDA_SUCCESS);
  streams_pass = true;
  const CUdeviceptr other = Take(4 * kMiB, kB);
  EXPECT_NE(other, first);
  allowed = 1;
  NotePoolAttribute(kPool, CU_MEMPOOL_ATTR_REUSE_ALLOW_OPPORTUNISTIC);
  EXPECT_EQ(Take(4 * kMiB, kB), first);
  for (CUdeviceptr piece : {first, other, most}) EXPECT_EQ(Give(piece, kB), CUDA_SUCCESS);
}

TEST_F(PoolsTest, WhenMemoryIsOutAStreamWaitsOnTheDeviceForWhatAnotherHasFreed) {
  const CUdeviceptr first = Take(1536 * kMiB, kA), second = Take(1536 * kMiB, kA);  // 3 of 4 GiB
  EXPECT_EQ(Give(first, kA), CUDA_SUCCESS);
  FakeReal::calls.clear();
  EXPECT_EQ(Take(1536 * kMiB, kB), first);
  EXPECT_EQ(waits, 1);
  EXPECT_EQ(std::count(FakeReal::calls.begin(), FakeReal::calls.end(), "sync"), 0);
  for (CUdeviceptr piece : {first, second}) EXPECT_EQ(Give(piece, kB), CUDA_SUCCESS);
}

TEST_F(PoolsTest, AHandleOfAStreamThatIsGoneSaysNothingAboutTheNextOne) {
  const CUdeviceptr first = Take(4 * kMiB, kA);
  EXPECT_EQ(Give(first, kA), CUDA_SUCCESS);
  ForgetStreamOfPieces(kA);
  const CUdeviceptr second = Take(4 * kMiB, kA);
  EXPECT_NE(second, first);
  EXPECT_EQ(Give(second, kA), CUDA_SUCCESS);
}

TEST_F(PoolsTest, WrongFreesAreRefusedAndChangeNothing) {
  const CUdeviceptr address = Take(4 * kMiB, kA);
  EXPECT_EQ(Give(address + 256, kA), CUDA_ERROR_INVALID_VALUE);
  EXPECT_EQ(Give(address, kA), CUDA_SUCCESS);
  EXPECT_EQ(Give(address, kA), CUDA_ERROR_INVALID_VALUE);
  EXPECT_EQ(ReleasePiece(g_tracker.Find(address), address), CUDA_ERROR_INVALID_VALUE);
}

TEST_F(PoolsTest, APlainFreeWaitsAndThenAnyStreamMayHaveThePiece) {
  const CUdeviceptr address = Take(4 * kMiB, kA);
  FakeReal::calls.clear();
  EXPECT_EQ(ReleasePiece(g_tracker.Find(address), address), CUDA_SUCCESS);
  EXPECT_EQ(std::count(FakeReal::calls.begin(), FakeReal::calls.end(), "sync"), 1);
  EXPECT_EQ(Take(4 * kMiB, kB), address);
  EXPECT_EQ(Give(address, kB), CUDA_SUCCESS);
}

TEST_F(PoolsTest, SmallPiecesShareABlockOnceTheDriversShareIsUsedUp) {
  CUdeviceptr address = 0;
  bool packed = false;
  EXPECT_EQ(PlaceInOrder(&address, 1000, nullptr, kA, false, &packed), CUDA_ERROR_NOT_SUPPORTED);
  EXPECT_TRUE(packed) << "the driver's own pool packs it";
  Device* device = CurrentDevice();
  device->packed.fetch_add(device->budget / 20);
  std::set<CUdeviceptr> pieces;
  for (int i = 0; i < 100; ++i) pieces.insert(Take(10000, kA));
  device->packed.fetch_sub(device->budget / 20);
  EXPECT_EQ(pieces.size(), 100u);
  EXPECT_EQ(FakeReal::managed.size(), 1u);
  uint64_t start = 0, bytes = 0;
  CUmemoryPool pool = nullptr;
  ASSERT_TRUE(PieceAround(*pieces.begin() + 9999, &start, &bytes, &pool));
  EXPECT_EQ(start, *pieces.begin());
  EXPECT_EQ(bytes, 10000u);
  EXPECT_EQ(pool, kPool);
  EXPECT_FALSE(PieceAround(*pieces.begin() + 10000, &start, &bytes, &pool));
  for (CUdeviceptr piece : pieces) EXPECT_EQ(Give(piece, kA), CUDA_SUCCESS);
}

TEST_F(PoolsTest, AtMostASixthOfTheMostInUseIsKept) {
  streams_pass = true;
  std::vector<CUdeviceptr> pieces;
  for (int i = 0; i < 8; ++i) pieces.push_back(Take(8 * kMiB, kA));
  for (CUdeviceptr piece : pieces) EXPECT_EQ(Give(piece, kA), CUDA_SUCCESS);
  EXPECT_EQ(Number(CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT), 64 * kMiB);
  const CUdeviceptr large = Take(40 * kMiB, kA);  // another size: none of them fits
  EXPECT_LE(Number(CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT), 75 * kMiB);
  EXPECT_EQ(Number(CU_MEMPOOL_ATTR_USED_MEM_CURRENT), 40 * kMiB);
  EXPECT_EQ(Give(large, kA), CUDA_SUCCESS);
}

TEST_F(PoolsTest, PoolsForExportAndWithALimitKeepTheirPromises) {
  const CUmemoryPool shared = reinterpret_cast<CUmemoryPool>(0x800);
  const CUmemoryPool limited = reinterpret_cast<CUmemoryPool>(0x900);
  CUmemPoolProps props = {};
  props.allocType = CU_MEM_ALLOCATION_TYPE_PINNED;
  props.location = {CU_MEM_LOCATION_TYPE_DEVICE, {0}};
  props.maxSize = 16 * kMiB;
  NotePool(limited, props);
  props.handleTypes = CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR;
  NotePool(shared, props);
  CUdeviceptr first = 0, second = 0;
  bool packed = false;
  EXPECT_EQ(PlaceInOrder(&first, 4 * kMiB, shared, kA, false, &packed), CUDA_ERROR_NOT_SUPPORTED);
  EXPECT_EQ(PlaceInOrder(&first, 12 * kMiB, limited, kA, false, &packed), CUDA_SUCCESS);
  EXPECT_EQ(PlaceInOrder(&second, 12 * kMiB, limited, kA, false, &packed),
            CUDA_ERROR_OUT_OF_MEMORY);
  RetirePool(limited);
  EXPECT_EQ(Give(first, kA), CUDA_SUCCESS) << "its memory outlives a pool";
  ForgetPiecesOf(nullptr, -1);
  ForgetMemoryOf(FakeReal::current, -1);
  FakeReal::managed.clear();
}

TEST_F(PoolsTest, ManyThreadsShareAPoolAndNoneGetsWhatAnotherHas) {
  std::atomic<int> wrong{0};
  const auto work = [&](unsigned seed) {
    const CUstream stream = reinterpret_cast<CUstream>(0x10000 + 0x100 * uintptr_t{seed});
    std::mt19937 random(seed);
    std::vector<CUdeviceptr> mine;
    for (int step = 0; step < 400; ++step) {
      CUdeviceptr address = 0;
      bool packed = false;
      const uint64_t bytes = (1 + random() % 8) * kMiB;
      wrong += PlaceInOrder(&address, bytes, nullptr, stream, false, &packed) != CUDA_SUCCESS;
      uint64_t start = 0, size = 0;
      wrong += !PieceAround(address, &start, &size, nullptr) || start != address || size != bytes;
      mine.push_back(address);
      if (random() % 3 == 0) continue;
      std::swap(mine[random() % mine.size()], mine.back());
      wrong += Give(mine.back(), stream) != CUDA_SUCCESS;
      mine.pop_back();
      if (step % 64 == 0) TrimPieces(kPool, 16 * kMiB);
    }
    for (CUdeviceptr address : mine) wrong += Give(address, stream) != CUDA_SUCCESS;
  };
  streams_pass = true;
  std::vector<std::thread> threads;
  for (unsigned i = 1; i <= 4; ++i) threads.emplace_back(work, i);
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(wrong, 0);
}

}  // namespace
}  // namespace atp::shim
