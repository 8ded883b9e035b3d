// SPDX-License-Identifier: Apache-2.0
// What a standstill means to the program's other threads, through the exported hooks.
#include <gtest/gtest.h>
#include <sched.h>

#include <atomic>
#include <thread>

#include "shim/lifecycle.h"
#include "shim/reentry.h"
#include "tests/shim/fake_real.h"

namespace atp::shim {
namespace {

std::atomic<int> launches{0};

CUresult Launch() {
  return cuMemsetD8Async(0x1000, 0, 1, nullptr);  // ours: this program is not linked to a driver
}

class StandstillTest : public testing::Test {
 protected:
  StandstillTest() {
    FakeReal::Install();
    launches = 0;
    g_real.cuMemsetD8Async = [](CUdeviceptr, unsigned char, size_t, CUstream) {
      return ++launches, CUDA_SUCCESS;
    };
    before_ = g_state.exchange(State::kActive);
  }
  ~StandstillTest() override { g_state.store(before_); }
  State before_;
};

TEST_F(StandstillTest, AThreadThatEntersAHookWaitsUntilItIsOver) {
  std::atomic<bool> begun{false};
  std::thread other;
  {
    const Standstill standstill;
    other = std::thread([&] {
      begun = true;
      EXPECT_EQ(Launch(), CUDA_SUCCESS);
    });
    while (!begun) sched_yield();
    for (int i = 0; i < 20; ++i) sched_yield();
    EXPECT_EQ(launches, 0);
  }
  other.join();
  EXPECT_EQ(launches, 1);
  EXPECT_TRUE(Active());
}

TEST_F(StandstillTest, ADriverThatCallsUsBackOnTheThreadThatMadeItIsServedByItself) {
  const Reentry hook;
  const Standstill standstill;
  EXPECT_EQ(Launch(), CUDA_SUCCESS);
  EXPECT_EQ(launches, 1);
  EXPECT_FALSE(Active());
  EXPECT_TRUE(Serving());
}

}  // namespace
}  // namespace atp::shim
