// SPDX-License-Identifier: Apache-2.0
#include <atomic>
#include <thread>

#include "tests/sim/driver/driver_test_support.h"

namespace atp::sim {
namespace {

class Streams : public DriverTest {
 protected:
  CUstream NewStream(unsigned flags = CU_STREAM_NON_BLOCKING) {
    CUstream stream = nullptr;
    EXPECT_CUDA(cuStreamCreate(&stream, flags));
    return stream;
  }
  CUevent NewEvent(unsigned flags = 0) {
    CUevent event = nullptr;
    EXPECT_CUDA(cuEventCreate(&event, flags));
    return event;
  }
  unsigned* PinnedWord() {
    void* word = nullptr;
    EXPECT_CUDA(cuMemAllocHost(&word, 64));
    return static_cast<unsigned*>(word);
  }
  // Keeps a stream busy for about a millisecond of virtual time.
  void Occupy(CUstream stream) {
    if (!big_) {
      big_ = Alloc(kBig);
      ASSERT_CUDA(cuMemAllocHost(&pinned_, kBig));
    }
    ASSERT_CUDA(cuMemcpyHtoDAsync(big_, pinned_, kBig, stream));
  }
  static constexpr size_t kBig = size_t{24} << 20;
  CUdeviceptr big_ = 0;
  void* pinned_ = nullptr;
};

TEST_F(Streams, TheLegacyStreamWaitsForBlockingStreamsAndTheyForIt) {
  const CUstream blocking = NewStream(CU_STREAM_DEFAULT), free = NewStream();
  const CUevent busy = NewEvent(), legacy = NewEvent(), after = NewEvent(), unrelated = NewEvent();
  Occupy(blocking);
  ASSERT_CUDA(cuEventRecord(busy, blocking));
  ASSERT_CUDA(cuEventRecord(unrelated, free));
  const CUdeviceptr word = Alloc(4);
  ASSERT_CUDA(cuMemsetD32Async(word, 1, 1, nullptr));
  ASSERT_CUDA(cuEventRecord(legacy, nullptr));
  ASSERT_CUDA(cuEventRecord(after, blocking));
  ASSERT_CUDA(cuCtxSynchronize());
  float busy_to_legacy = 0, legacy_to_after = 0, unrelated_to_busy = 0;
  ASSERT_CUDA(cuEventElapsedTime(&busy_to_legacy, busy, legacy));
  ASSERT_CUDA(cuEventElapsedTime(&legacy_to_after, legacy, after));
  ASSERT_CUDA(cuEventElapsedTime(&unrelated_to_busy, unrelated, busy));
  EXPECT_GE(busy_to_legacy, 0.0f);
  EXPECT_GE(legacy_to_after, 0.0f);
  EXPECT_GT(unrelated_to_busy, 0.5f);
}

TEST_F(Streams, ThePerThreadStreamIsAnother) {
  unsigned long long legacy = 0, mine = 0, theirs = 0;
  ASSERT_CUDA(cuStreamGetId(CU_STREAM_LEGACY, &legacy));
  ASSERT_CUDA(cuStreamGetId(CU_STREAM_PER_THREAD, &mine));
  std::thread([&] {
    ASSERT_CUDA(cuCtxSetCurrent(context_));
    ASSERT_CUDA(cuStreamGetId(CU_STREAM_PER_THREAD, &theirs));
  }).join();
  EXPECT_NE(legacy, mine);
  EXPECT_NE(mine, theirs);
  void* twin = nullptr;
  ASSERT_CUDA(cuGetProcAddress("cuStreamGetId", &twin, 12000,
                               CU_GET_PROC_ADDRESS_PER_THREAD_DEFAULT_STREAM, nullptr));
  unsigned long long by_twin = 0;
  ASSERT_CUDA(reinterpret_cast<decltype(&cuStreamGetId)>(twin)(nullptr, &by_twin));
  EXPECT_EQ(by_twin, mine);
}

TEST_F(Streams, AWaitForAnUnrecordedEventIsNothing) {
  const CUstream stream = NewStream();
  EXPECT_CUDA(cuStreamWaitEvent(stream, NewEvent(), 0));
  EXPECT_CUDA(cuStreamQuery(stream));
}

TEST_F(Streams, EventsOrderStreams) {
  const CUstream first = NewStream(), second = NewStream();
  const CUevent done = NewEvent(), seen = NewEvent();
  Occupy(first);
  ASSERT_CUDA(cuEventRecord(done, first));
  ASSERT_CUDA(cuStreamWaitEvent(second, done, 0));
  ASSERT_CUDA(cuEventRecord(seen, second));
  EXPECT_RESULT(CUDA_ERROR_NOT_READY, cuEventQuery(seen));
  ASSERT_CUDA(cuEventSynchronize(seen));
  EXPECT_CUDA(cuEventQuery(done));
  float milliseconds = -1;
  ASSERT_CUDA(cuEventElapsedTime(&milliseconds, done, seen));
  EXPECT_GE(milliseconds, 0.0f);
}

TEST_F(Streams, EventsWithoutTimingHaveNoTimes) {
  const CUevent timed = NewEvent(), untimed = NewEvent(CU_EVENT_DISABLE_TIMING);
  float milliseconds = 0;
  EXPECT_RESULT(CUDA_ERROR_INVALID_HANDLE,
                cuEventElapsedTime(&milliseconds, timed, timed));  // not recorded
  ASSERT_CUDA(cuEventRecord(timed, nullptr));
  ASSERT_CUDA(cuEventRecord(untimed, nullptr));
  ASSERT_CUDA(cuCtxSynchronize());
  EXPECT_RESULT(CUDA_ERROR_INVALID_HANDLE, cuEventElapsedTime(&milliseconds, timed, untimed));
}

TEST_F(Streams, WrongHandlesAreRefused) {
  const auto wrong = reinterpret_cast<CUstream>(this);
  EXPECT_RESULT(CUDA_ERROR_INVALID_HANDLE, cuStreamSynchronize(wrong));
  EXPECT_RESULT(CUDA_ERROR_INVALID_HANDLE, cuStreamDestroy(CU_STREAM_LEGACY));
  EXPECT_RESULT(CUDA_ERROR_INVALID_HANDLE, cuEventQuery(reinterpret_cast<CUevent>(this)));
  const CUstream stream = NewStream();
  EXPECT_CUDA(cuStreamDestroy(stream));
  EXPECT_RESULT(CUDA_ERROR_INVALID_HANDLE, cuStreamQuery(stream));
}

TEST_F(Streams, PrioritiesAreClamped) {
  int least = 9, greatest = 9, priority = 9;
  ASSERT_CUDA(cuCtxGetStreamPriorityRange(&least, &greatest));
  EXPECT_EQ(least, 0);
  EXPECT_LT(greatest, least);
  CUstream stream = nullptr;
  ASSERT_CUDA(cuStreamCreateWithPriority(&stream, CU_STREAM_NON_BLOCKING, -100));
  ASSERT_CUDA(cuStreamGetPriority(stream, &priority));
  EXPECT_EQ(priority, greatest);
}

struct Gate {
  std::atomic<bool> open{false};
  std::atomic<int> passed{0};
  static void Pass(void* self) {
    auto* gate = static_cast<Gate*>(self);
    while (!gate->open) std::this_thread::yield();
    ++gate->passed;
  }
};

TEST_F(Streams, HostFunctionsRunInOrderAndHoldUpWhatFollows) {
  const CUstream stream = NewStream();
  Gate gate;
  const CUdeviceptr word = Alloc(4);
  ASSERT_CUDA(cuMemsetD32Async(word, 1, 1, stream));
  ASSERT_CUDA(cuLaunchHostFunc(stream, Gate::Pass, &gate));
  EXPECT_RESULT(CUDA_ERROR_NOT_READY, cuStreamQuery(stream));
  EXPECT_EQ(gate.passed, 0);
  const CUstream other = NewStream();
  EXPECT_CUDA(cuStreamSynchronize(other));  // is not held up
  gate.open = true;
  ASSERT_CUDA(cuMemsetD32Async(word, 2, 1, stream));
  EXPECT_EQ(gate.passed, 1);
  ASSERT_CUDA(cuStreamSynchronize(stream));
  EXPECT_EQ(ReadInts(word, 1)[0], 2);
}

TEST_F(Streams, WorkBehindAGatedHostFunctionWaitsWithoutHangingTheProgram) {
  const CUstream stream = NewStream(), other = NewStream();
  const CUevent event = NewEvent();
  Gate gate;
  const CUdeviceptr word = Alloc(4), seen = Alloc(4);
  ASSERT_CUDA(cuMemsetD32Async(word, 1, 1, stream));
  ASSERT_CUDA(cuLaunchHostFunc(stream, Gate::Pass, &gate));
  ASSERT_CUDA(cuMemsetD32Async(word, 2, 1, stream));  // waits a second, then queues
  ASSERT_CUDA(cuEventRecord(event, stream));
  ASSERT_CUDA(cuStreamWaitEvent(other, event, 0));
  ASSERT_CUDA(cuMemcpyDtoDAsync(seen, word, 4, other));
  EXPECT_RESULT(CUDA_ERROR_NOT_READY, cuEventQuery(event));
  EXPECT_EQ(gate.passed, 0);
  gate.open = true;
  ASSERT_CUDA(cuStreamSynchronize(other));
  EXPECT_EQ(ReadInts(seen, 1)[0], 2);
}

CUresult called_from_host_function = CUDA_SUCCESS;

TEST_F(Streams, HostFunctionsMayNotCallTheDriver) {
  const CUstream stream = NewStream();
  ASSERT_CUDA(cuLaunchHostFunc(
      stream,
      [](void*) {
        CUdeviceptr address = 0;
        called_from_host_function = cuMemAlloc(&address, 16);
      },
      nullptr));
  ASSERT_CUDA(cuStreamSynchronize(stream));
  EXPECT_RESULT(CUDA_ERROR_NOT_PERMITTED, called_from_host_function);
}

TEST_F(Streams, CallbacksAreToldTheirStream) {
  const CUstream stream = NewStream();
  static CUstream told = nullptr;
  ASSERT_CUDA(cuStreamAddCallback(
      stream,
      [](CUstream mine, CUresult result, void*) { told = result == CUDA_SUCCESS ? mine : nullptr; },
      nullptr, 0));
  ASSERT_CUDA(cuStreamSynchronize(stream));
  EXPECT_EQ(told, stream);
}

TEST_F(Streams, AStreamWaitsForAValueThatTheHostWrites) {
  const CUstream stream = NewStream();
  unsigned* flag = PinnedWord();
  *flag = 0;
  const auto address = reinterpret_cast<CUdeviceptr>(flag);
  const CUdeviceptr word = Alloc(4);
  ASSERT_CUDA(cuMemsetD32(word, 1, 1));
  ASSERT_CUDA(cuStreamWaitValue32(stream, address, 7, CU_STREAM_WAIT_VALUE_EQ));
  ASSERT_CUDA(cuMemsetD32Async(word, 2, 1, stream));
  EXPECT_RESULT(CUDA_ERROR_NOT_READY, cuStreamQuery(stream));
  EXPECT_EQ(ReadInts(word, 1)[0], 1);
  std::thread writer([&] { __atomic_store_n(flag, 7, __ATOMIC_RELEASE); });
  ASSERT_CUDA(cuStreamSynchronize(stream));
  writer.join();
  EXPECT_EQ(ReadInts(word, 1)[0], 2);
}

TEST_F(Streams, AStreamWaitsForAValueThatAnotherStreamWrites) {
  const CUstream first = NewStream(), second = NewStream();
  unsigned* flag = PinnedWord();
  *flag = 5;
  const auto address = reinterpret_cast<CUdeviceptr>(flag);
  ASSERT_CUDA(cuStreamWaitValue32(first, address, 6, CU_STREAM_WAIT_VALUE_GEQ));
  EXPECT_RESULT(CUDA_ERROR_NOT_READY, cuStreamQuery(first));
  ASSERT_CUDA(cuStreamWriteValue32(second, address, 6, 0));
  EXPECT_CUDA(cuStreamSynchronize(first));
  EXPECT_EQ(*flag, 6u);
}

TEST_F(Streams, ValuesInManagedOrUnknownMemoryAreRefused) {
  unsigned local = 0;
  EXPECT_RESULT(CUDA_ERROR_INVALID_VALUE, cuStreamWriteValue32(nullptr, AllocManaged(64), 1, 0));
  EXPECT_RESULT(CUDA_ERROR_INVALID_VALUE,
                cuStreamWriteValue32(nullptr, reinterpret_cast<CUdeviceptr>(&local), 1, 0));
  EXPECT_RESULT(CUDA_ERROR_INVALID_VALUE, cuStreamWriteValue32(nullptr, Alloc(64) + 1, 1, 0));
}

TEST_F(Streams, ABatchOfValueOperationsKeepsItsOrder) {
  const CUstream stream = NewStream();
  unsigned* words = PinnedWord();
  words[0] = words[1] = 0;
  CUstreamBatchMemOpParams operations[3] = {};
  operations[0].writeValue.operation = CU_STREAM_MEM_OP_WRITE_VALUE_32;
  operations[0].writeValue.address = reinterpret_cast<CUdeviceptr>(&words[0]);
  operations[0].writeValue.value = 3;
  operations[1].waitValue.operation = CU_STREAM_MEM_OP_WAIT_VALUE_32;
  operations[1].waitValue.address = reinterpret_cast<CUdeviceptr>(&words[1]);
  operations[1].waitValue.value = 1;
  operations[1].waitValue.flags = CU_STREAM_WAIT_VALUE_EQ;
  operations[2].writeValue.operation = CU_STREAM_MEM_OP_WRITE_VALUE_32;
  operations[2].writeValue.address = reinterpret_cast<CUdeviceptr>(&words[0]);
  operations[2].writeValue.value = 4;
  ASSERT_CUDA(cuStreamBatchMemOp(stream, 3, operations, 0));
  EXPECT_EQ(words[0], 3u);
  __atomic_store_n(&words[1], 1, __ATOMIC_RELEASE);
  ASSERT_CUDA(cuStreamSynchronize(stream));
  EXPECT_EQ(words[0], 4u);
}

}  // namespace
}  // namespace atp::sim
