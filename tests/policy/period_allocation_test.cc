// SPDX-License-Identifier: Apache-2.0
// A launch costs the program no allocation: counts what operator new is asked for.
#include <gtest/gtest.h>

#include <cstdlib>
#include <new>

#include "policy/period.h"

namespace {

size_t g_allocations = 0;

}  // namespace

void* operator new(size_t bytes) {
  ++g_allocations;
  if (void* block = std::malloc(bytes > 0 ? bytes : 1)) return block;
  throw std::bad_alloc();
}
void operator delete(void* block) noexcept { std::free(block); }
void operator delete(void* block, size_t) noexcept { std::free(block); }

namespace atp::policy {
namespace {

TEST(PeriodDetector, AllocatesOnlyWhenItFindsAPhase) {
  PeriodDetector detector;
  auto period = [&](uint64_t launches, uint64_t kind) {
    PeriodState state;
    for (uint64_t k = 0; k < launches; ++k) state = detector.Feed(kind * 1000003 + k * 7919);
    return state;
  };
  // Launches that repeat nothing, for longer than the history keeps at first.
  size_t before = g_allocations;
  for (uint64_t i = 0; i < 20000; ++i) detector.Feed(0x9E3779B97F4A7C15ull * (i + 1));
  EXPECT_EQ(g_allocations, before);
  period(700, 1);
  EXPECT_TRUE(period(700, 1).locked);
  EXPECT_GT(g_allocations, before);
  before = g_allocations;
  for (int i = 0; i < 50; ++i) period(700, 1);
  // Logging in between, each time other launches, and back again.
  for (uint64_t i = 0; i < 300; ++i) {
    detector.Feed(0xABCDEFull * (i + 3));
    EXPECT_TRUE(period(700, 1).locked);
  }
  EXPECT_EQ(g_allocations, before);
}

}  // namespace
}  // namespace atp::policy
