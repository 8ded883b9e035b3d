// SPDX-License-Identifier: Apache-2.0
#include "shim/recorder.h"

#include <gtest/gtest.h>

#include "shim/functions.h"

namespace atp::shim {
namespace {

LaunchView View(uint64_t signature, const Touch* touch) {
  LaunchView view;
  view.signature = signature;
  view.touches = touch;
  view.touch_count = 1;
  return view;
}

TEST(Recorder, APeriodHasTheSignaturesOfItsLaunchesInOrder) {
  Allocation a;
  a.id = 1;
  a.bytes = a.mapped_bytes = kGranule;
  Touch touch;
  touch.allocation = &a;
  Recorder recorder;
  for (const uint64_t signature : {9, 7, 8}) recorder.Record(View(signature, &touch));
  const Recorder::Period period = recorder.Last(2, {}, {{1, &a}});
  ASSERT_TRUE(period.usable);
  EXPECT_EQ(period.signatures, (std::vector<uint64_t>{7, 8}));
}

// By them sight knows how far launches of other sizes reach.
TEST(Recorder, APeriodKnowsTheThreadsAndScalarsOfItsLaunchesButNotTheirPointers) {
  Allocation a;
  a.id = 1;
  a.address = 0x7000000000;
  a.bytes = a.mapped_bytes = kGranule;
  Touch touch;
  touch.allocation = &a;
  touch.offset = 64;
  uint64_t pointer = a.address + 64, wide = 5000;
  uint32_t count = 300;
  char structure[12] = {};
  void* arguments[] = {&pointer, &count, &structure, &wide};
  const Parameter parameters[] = {{0, 8}, {8, 4}, {12, 12}, {24, 8}};
  FunctionInfo info;
  info.known = true;
  info.parameters = parameters;
  LaunchView view = View(3, &touch);
  view.arguments.info = &info;
  view.arguments.shape = {{10, 2, 1}, {32, 1, 1}};
  view.arguments.parameters = arguments;
  Recorder recorder;
  recorder.Record(view);
  const Recorder::Period period = recorder.Last(1, {}, {{1, &a}});
  ASSERT_EQ(period.seen.scalars.size(), 1u);
  const policy::LaunchShape& shape = period.seen.scalars[0];
  EXPECT_EQ(shape.threads, 640u);
  ASSERT_EQ(shape.scalar_count, 2u);
  EXPECT_EQ(shape.scalars[0], 300u);
  EXPECT_EQ(shape.scalars[1], 5000u);
}

// What another run may recognise: the first launches of the period, and what came before them.
TEST(Recorder, APeriodBeganWhereItsLaunchesFirstFollowedEachOther) {
  Recorder recorder;
  for (const uint64_t signature : {5, 6, 3, 1, 2, 3, 1, 2, 3, 1}) {
    LaunchView view;
    view.signature = signature;
    recorder.Record(view);
  }
  const Recorder::Beginning beginning = recorder.BeginningOf({1, 2, 3});
  EXPECT_EQ(beginning.rotation, 2u);  // with the 3
  EXPECT_EQ(beginning.before, (std::array<uint64_t, 4>{0, 0, 5, 6}));
  EXPECT_EQ(recorder.BeginningOf({7, 8}).before, (std::array<uint64_t, 4>{}));
  EXPECT_EQ(recorder.BeginningOf({5, 6, 3}).rotation, 0u);
}

TEST(AssumedDurations, AreSharedOutByTheBytesTouched) {
  policy::Trace trace;
  trace.tensors.resize(2);
  trace.tensors[0].bytes = 1 << 20;
  trace.tensors[1].bytes = 3 << 20;
  trace.launches.resize(3);
  trace.launches[0].reads = {0};
  trace.launches[1].reads = {0};
  trace.launches[1].writes = {1};
  AssumeDurations(0.5, &trace);
  EXPECT_DOUBLE_EQ(trace.launches[0].seconds, 0.1);
  EXPECT_DOUBLE_EQ(trace.launches[1].seconds, 0.4);
  EXPECT_DOUBLE_EQ(trace.launches[2].seconds, 1e-6);  // a launch takes some time
}

}  // namespace
}  // namespace atp::shim
