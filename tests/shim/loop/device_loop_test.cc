// SPDX-License-Identifier: Apache-2.0
// The loop of a device between threads, on a driver of a few functions. What it does for a program
// is tested on the simulated machine (tests/preload/closed_loop).
#include "shim/device_loop.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <functional>
#include <thread>
#include <vector>

#include "shim/device.h"
#include "tests/shim/fake_real.h"

namespace atp::shim {
namespace {

constexpr uint64_t kMiB = 1ull << 20;
thread_local std::function<void()> in_event_record, in_stream_wait;  // of the thread that calls
thread_local unsigned stream_waits;
std::atomic<uint64_t> prefetches;
std::atomic<bool> link_is_stuck{false}, mover_is_stuck{false};

void InstallDriver() {
  setenv("ATP_POLICY", "learned", 1);
  setenv("ATP_BUDGET", "24MiB", 1);
  setenv("ATP_LOG", "error", 1);
  ReadSettings();
  FakeReal::Install();
  g_real.cuCtxPushCurrent_v2 = [](CUcontext) { return CUDA_SUCCESS; };
  g_real.cuCtxPopCurrent_v2 = [](CUcontext*) { return CUDA_SUCCESS; };
  g_real.cuCtxSetCurrent = [](CUcontext) { return CUDA_SUCCESS; };
  g_real.cuStreamCreate = [](CUstream* stream, unsigned flags) {
    static std::atomic<uintptr_t> next{0x2000};
    EXPECT_EQ(flags, unsigned{CU_STREAM_NON_BLOCKING}) << "it would wait for the program's";
    return *stream = reinterpret_cast<CUstream>(next++), CUDA_SUCCESS;
  };
  g_real.cuStreamSynchronize = [](CUstream) { return CUDA_SUCCESS; };
  g_real.cuStreamWaitEvent = [](CUstream, CUevent, unsigned) {
    ++stream_waits;
    if (in_stream_wait) std::exchange(in_stream_wait, nullptr)();
    return CUDA_SUCCESS;
  };
  g_real.cuEventCreate = [](CUevent* event, unsigned) {
    static std::atomic<uintptr_t> next{0x100000};
    return *event = reinterpret_cast<CUevent>(next++), CUDA_SUCCESS;
  };
  g_real.cuEventRecord = [](CUevent, CUstream) {
    if (in_event_record) std::exchange(in_event_record, nullptr)();
    return CUDA_SUCCESS;
  };
  g_real.cuEventQuery = [](CUevent) { return CUDA_SUCCESS; };
  g_real.cuEventSynchronize = [](CUevent) { return CUDA_SUCCESS; };
  g_real.cuEventElapsedTime_v2 = [](float* milliseconds, CUevent, CUevent) {
    return *milliseconds = 1, CUDA_SUCCESS;
  };
  g_real.cuMemAdvise_v2 = [](CUdeviceptr, size_t, CUmem_advise, CUmemLocation) {
    return CUDA_SUCCESS;
  };
  g_real.cuMemPrefetchAsync_v2 = [](CUdeviceptr, size_t, CUmemLocation, unsigned, CUstream) {
    while (link_is_stuck) {
      mover_is_stuck = true;
      std::this_thread::yield();
    }
    return ++prefetches, CUDA_SUCCESS;
  };
}

// One loop for all tests: its movers' threads stay until the process ends.
class DeviceLoopTest : public testing::Test {
 protected:
  static void SetUpTestSuite() {
    InstallDriver();
    ASSERT_NE(CurrentDevice(), nullptr);
    loop_ = new DeviceLoop(0, FakeReal::current);
    for (uint64_t i = 0; i < 8; ++i) {
      const uint64_t address = 0x300000000000 + i * 4 * kMiB;
      tensors_.push_back(g_tracker.Insert(address, 4 * kMiB, 4 * kMiB, FakeReal::current, 0));
      loop_->OnAlloc(tensors_.back());
    }
  }
  static void TearDownTestSuite() { loop_->Stop(); }

  // Launches kernel number `which`, which reads and writes one tensor.
  static void Launch(uint64_t which, uintptr_t stream) {
    Touch touch;
    touch.allocation = tensors_[which % tensors_.size()];
    LaunchView launch;
    launch.signature = which;
    launch.stream = reinterpret_cast<CUstream>(stream);
    launch.touches = &touch;
    launch.touch_count = 1;
    loop_->BeforeLaunch(launch);
    loop_->AfterLaunch(launch);
  }

  // A mover that has the lock for a moment makes a launch leave itself in the inbox.
  static void LaunchUntilLookedAt() {
    for (int attempt = 0; in_event_record && attempt < 10000; ++attempt) {
      Launch(0, 0x10);
      std::this_thread::yield();
    }
  }
  static void LaunchPeriod() {
    for (uint64_t i = 0; i < tensors_.size(); ++i) Launch(i, 0x10);
  }
  // Launches in periods until a plan moves memory.
  static void RunByPlan() {
    prefetches = 0;
    while (prefetches < 100) LaunchPeriod();
  }

  // Launches in no order until launches are served on demand, and then the first four tensors,
  // which have room together, until those are there.
  static void RunServed() {
    uint64_t random = 1;
    const auto next = [&] {
      random = random * 6364136223846793005u + 1442695040888963407u;
      return random >> 40;
    };
    prefetches = 0;
    while (prefetches < 20) Launch(next() % 7, 0x10);
    for (int i = 0; i < 1200; ++i) Launch(next() % 4, 0x10);
  }

  // Periods of 16, in which every other launch is of a tensor that stays on the device, so that it
  // has nothing to wait for.
  static constexpr uint64_t kPeriod = 16;
  static void LaunchAt(uint64_t position, uintptr_t stream) {
    Launch(position % 2 == 1 ? 800 : 801 + position / 2 % 7, stream);
  }
  static void RunByLongPlan() {
    LaunchAt(1, 0x20);  // both streams are known
    for (int more = 4; more > 0; more -= loop_->planned()) {
      for (uint64_t at = 0; at < kPeriod; ++at) LaunchAt(at, 0x10);
    }
    ASSERT_TRUE(loop_->planned());
  }

  static inline DeviceLoop* loop_ = nullptr;
  static inline std::vector<Record*> tensors_;
};

// The first launch is in the middle of being looked at, and stays there until the other one has
// gone out.
TEST_F(DeviceLoopTest, ALaunchDoesNotWaitForOneOfAnotherThread) {
  in_event_record = [] { std::thread([] { Launch(1, 0x20); }).join(); };
  LaunchUntilLookedAt();
  EXPECT_FALSE(in_event_record) << "the first launch was not looked at";
}

TEST_F(DeviceLoopTest, NorDoManyLaunchesHoweverLongThatTakes) {
  in_event_record = [] {
    std::thread([] {
      for (uint64_t i = 0; i < 3 * LaunchInbox::kCells; ++i) Launch(i, 0x20);
    }).join();
  };
  LaunchUntilLookedAt();
  EXPECT_FALSE(in_event_record) << "the first launch was not looked at";
}

TEST_F(DeviceLoopTest, NorDoesOneThatIsServedAndHasAllThatItNeeds) {
  RunServed();
  in_event_record = [] {
    std::thread([] {
      for (uint64_t i = 0; i < 3 * LaunchInbox::kCells; ++i) Launch(i % 4, 0x20);
    }).join();
  };
  LaunchUntilLookedAt();
  EXPECT_FALSE(in_event_record) << "the first launch was not looked at";
}

// What the launches use takes turns on the device. A launch that waits for its memory does not wait
// for what a later one wants, which may have to wait for it: eight of those that are let go after
// some seconds, and the loop is off, and the next test never ends.
TEST_F(DeviceLoopTest, ThreadsThatAreServedAtOnceGetWhatTheyLack) {
  RunServed();
  prefetches = 0;
  std::vector<std::thread> threads;
  for (uint64_t t = 0; t < 4; ++t) {
    threads.emplace_back([t] {
      uint64_t random = t + 1;
      for (int i = 0; i < 1000; ++i) {
        random = random * 6364136223846793005u + 1442695040888963407u;
        Launch((random >> 40) % 7, 0x10 + t);
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_GT(prefetches, 0u);
}

// Threads that launch, allocate, free and destroy streams as they like; afterwards, when one thread
// launches in periods, a plan is made and memory moves as if nothing had been.
TEST_F(DeviceLoopTest, AfterThreadsThatLaunchedInNoOrderAPeriodIsStillFoundAndPlanned) {
  std::vector<std::thread> threads;
  for (uint64_t t = 0; t < 4; ++t) {
    threads.emplace_back([t] {
      for (uint64_t i = 0; i < 500; ++i) {
        Launch(100 + 17 * i * i % 1000 + t, 0x10 + t);
        if (i % 50 == t) loop_->OnStreamDestroy(reinterpret_cast<CUstream>(0x10 + t));
        if (i % 50 == 10 * t) {
          Record* extra = g_tracker.Insert(0x400000000000 + t * 4 * kMiB, 2 * kMiB, 2 * kMiB,
                                           FakeReal::current, 0);
          loop_->OnAlloc(extra);
          loop_->OnFree(extra);
          g_tracker.Remove(extra);
        }
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  RunByPlan();
}

// A launch that waits for its memory has let go of the lock.
TEST_F(DeviceLoopTest, APlannedLaunchWhoseMemoryDoesNotComeHoldsNobodyElseUp) {
  RunByPlan();
  link_is_stuck = true;
  std::thread planned([] {
    for (int period = 0; period < 3; ++period) LaunchPeriod();
  });
  while (!mover_is_stuck) std::this_thread::yield();
  std::thread([] { Launch(999, 0x20); }).join();
  link_is_stuck = false;
  planned.join();
}

// While a thread is inside with the lock, behind its launch, another one's next launch goes out;
// and more than one in a period, so that those are no breach of the plan.
TEST_F(DeviceLoopTest, InAPlanALaunchThatHasNothingToWaitForPassesTheLock) {
  RunByLongPlan();
  unsigned most = 0;
  for (int period = 0; period < 100 && most < 2; ++period) {
    ASSERT_TRUE(loop_->planned());
    unsigned passed = 0;
    for (uint64_t at = 0; at < kPeriod; at += 2) {
      std::atomic<bool> gone{false};
      std::thread other;
      const auto launch_other = [&] {
        other = std::thread([&] {
          LaunchAt(at + 1, 0x20);
          gone = true;
        });
      };
      if (at > 0) {
        in_event_record = [&] {
          launch_other();
          for (int wait = 0; wait < 5000 && !gone; ++wait) std::this_thread::yield();
          if (gone) ++passed;
        };
      }
      LaunchAt(at, 0x10);
      in_event_record = nullptr;
      if (!other.joinable()) launch_other();
      other.join();
    }
    most = std::max(most, passed);
  }
  EXPECT_GE(most, 2u);
  EXPECT_TRUE(loop_->planned());
}

// Fetches go out on several streams, and each has an event of its own.
TEST_F(DeviceLoopTest, ALaunchOfAPlanWaitsForTheLastFetchOfEachStream) {
  RunByPlan();
  unsigned most = 0;
  for (int period = 0; period < 20; ++period) {
    for (uint64_t i = 0; i < tensors_.size(); ++i) {
      stream_waits = 0;
      Launch(i, 0x10);
      most = std::max(most, stream_waits);
    }
  }
  EXPECT_GT(most, 1u);
}

// The driver holds a thread up where its launch is to wait for a fetch, or where it records an
// event behind the last use of what is to leave. Another thread's next launch, for which there is
// the same to do, goes out meanwhile.
TEST_F(DeviceLoopTest, NoLaunchOfAPlanWaitsForADriverCallThatAnotherOneNeeds) {
  RunByLongPlan();
  unsigned waits = 0, records = 0;
  for (int period = 0; period < 200 && (waits < 2 || records < 2); ++period) {
    ASSERT_TRUE(loop_->planned());
    for (uint64_t at = 0; at < kPeriod; at += 4) {
      std::thread other;
      std::atomic<bool> gone{false};
      const auto launch_other = [&] {
        other = std::thread([&] {
          LaunchAt(at + 1, 0x20);
          LaunchAt(at + 2, 0x20);  // one that needs the lock
          LaunchAt(at + 3, 0x20);
          gone = true;
        });
      };
      const auto hold = [&](unsigned* counted) {
        if (other.joinable()) return;
        launch_other();
        for (int wait = 0; wait < 5000 && !gone; ++wait) std::this_thread::yield();
        if (gone) ++*counted;
      };
      if (at > 0 && period % 2 == 0) in_event_record = [&] { hold(&records); };
      if (at > 0 && period % 2 == 1) in_stream_wait = [&] { hold(&waits); };
      LaunchAt(at, 0x10);
      in_event_record = in_stream_wait = nullptr;
      if (!other.joinable()) launch_other();
      other.join();
    }
  }
  EXPECT_GE(waits, 2u);
  EXPECT_GE(records, 2u);
}

// Four threads take turns as the plan says, while the movers work, and others look in between.
TEST_F(DeviceLoopTest, ThreadsThatTakeTurnsKeepToThePlan) {
  RunByLongPlan();
  std::atomic<uint64_t> turn{0};
  constexpr uint64_t kTurns = 100 * kPeriod;
  prefetches = 0;
  std::vector<std::thread> threads;
  for (uint64_t t = 0; t < 4; ++t) {
    threads.emplace_back([&, t] {
      for (uint64_t mine = t; mine < kTurns; mine += 4) {
        while (turn != mine) std::this_thread::yield();
        LaunchAt(mine % kPeriod, 0x10 + 0x10 * (t % 2));
        ++turn;
        if (mine % 64 == t) loop_->BeforeWait(Wait::kContext, nullptr, false, nullptr);
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_GT(prefetches, 100u);
  EXPECT_TRUE(loop_->planned());
}

}  // namespace
}  // namespace atp::shim
