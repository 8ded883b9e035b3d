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

// Launches that have passed unseen are like those of the period before.
TEST(Recorder, ALaunchThatNobodyHasSeenIsLikeTheOneAPeriodAgo) {
  Allocation a, b;
  a.id = 1;
  b.id = 2;
  a.bytes = a.mapped_bytes = b.bytes = b.mapped_bytes = kGranule;
  Touch of_a, of_b;
  of_a.allocation = &a;
  of_b.allocation = &b;
  of_b.writes = false;
  Recorder recorder;
  recorder.Record(View(7, &of_a));
  recorder.Record(View(8, &of_b));
  recorder.Record(View(7, &of_a));
  recorder.Repeat(2);
  const Recorder::Period period = recorder.Last(2, {}, {{1, &a}, {2, &b}});
  ASSERT_TRUE(period.usable);
  EXPECT_EQ(period.signatures, (std::vector<uint64_t>{7, 8}));
  ASSERT_EQ(period.seen.touches.size(), 2u);
  EXPECT_EQ(period.allocations[period.seen.touches[1].allocation], &b);
  EXPECT_FALSE(period.seen.touches[1].writes);
}

// ... also when what the program launched since has taken the memory of what was touched then.
TEST(Recorder, TouchesForgottenMeanwhileMakeNoPeriod) {
  Allocation a;
  a.id = 1;
  a.bytes = a.mapped_bytes = kGranule;
  std::vector<Touch> touches(kMaxTouches);
  for (Touch& touch : touches) touch.allocation = &a;
  Recorder recorder;
  recorder.Record(View(7, touches.data()));
  LaunchView large = View(8, touches.data());
  large.touch_count = touches.size();
  const auto between = static_cast<uint32_t>(Recorder::kTouches / touches.size());
  for (uint32_t i = 0; i < between; ++i) recorder.Record(large);
  recorder.Repeat(between + 1);
  EXPECT_FALSE(recorder.Last(1, {}, {{1, &a}}).usable);
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

// Kernels' touches are found again in their arguments.
class ToldByArguments : public testing::Test {
 protected:
  static Allocation At(uint64_t id, uint64_t address) {
    Allocation a;
    a.id = id;
    a.address = address;
    a.bytes = a.mapped_bytes = kGranule;
    return a;
  }
  // A launch on two of three words of its second argument, a structure behind an int.
  void Record() {
    structure_[0] = 17;
    structure_[1] = in_.address + 8;
    structure_[2] = out_.address;
    const Touch touches[] = {{&in_, 8, 0, true, true}, {&out_, 0, 0, true, true}};
    void* arguments[] = {&count_, structure_};
    LaunchView view = View(3, touches);
    view.touch_count = 2;
    view.arguments.info = &info_;
    view.arguments.parameters = arguments;
    view.arguments.tell_touches = true;
    recorder_.Record(view);
  }
  Recorder::Period Last() {
    std::unordered_map<uint64_t, Allocation*> live;
    for (Allocation* a : live_) live[a->id] = a;
    return recorder_.Last(1, {}, live);
  }

  static constexpr Parameter parameters_[] = {{0, 4}, {8, 24}};
  ToldByArguments() {
    info_.known = true;
    info_.parameters = parameters_;
  }
  uint32_t count_ = 5;
  uint64_t structure_[3] = {};
  FunctionInfo info_;
  Allocation in_ = At(4, 0x7000000000), out_ = At(5, 0x7000400000);
  std::vector<Allocation*> live_ = {&in_, &out_};
  Recorder recorder_;
};

TEST_F(ToldByArguments, TouchesAreWhatTheLaunchHadAndWhereItsPointersWere) {
  Record();
  const Recorder::Period period = Last();
  ASSERT_TRUE(period.usable);
  ASSERT_EQ(period.seen.touches.size(), 2u);
  EXPECT_EQ(period.allocations[period.seen.touches[0].allocation], &in_);
  EXPECT_EQ(period.seen.touches[0].offset, 8u);
  EXPECT_EQ(period.seen.touches[0].bytes, 0u);
  EXPECT_TRUE(period.seen.touches[0].writes);
  EXPECT_EQ(period.allocations[period.seen.touches[1].allocation], &out_);
  EXPECT_EQ(period.pointer_at, (std::vector<uint32_t>{16, 24}));
}

TEST_F(ToldByArguments, WhatWasAllocatedLaterWasNotTouched) {
  structure_[0] = 17;
  Record();
  Allocation later = At(6, 0);  // where the number 17 is an address
  live_.push_back(&later);
  const Recorder::Period period = Last();
  ASSERT_TRUE(period.usable);
  EXPECT_EQ(period.seen.touches.size(), 2u);
}

TEST_F(ToldByArguments, NothingIsPlannedForMemoryThatIsGoneOrThatIsOtherMemoryNow) {
  Record();
  live_ = {&in_};
  EXPECT_FALSE(Last().usable);
  Allocation other = At(6, out_.address);
  live_.push_back(&other);
  EXPECT_FALSE(Last().usable);
  live_ = {&in_, &out_};
  EXPECT_TRUE(Last().usable);
}

TEST_F(ToldByArguments, WhatIsReadOnlyStaysSo) {
  const WordAccess access[] = {{}, {}, {true, false}, {false, true}};
  info_.access = access;
  Record();
  const Recorder::Period period = Last();
  ASSERT_TRUE(period.usable);
  EXPECT_FALSE(period.seen.touches[0].writes);
  EXPECT_FALSE(period.seen.touches[1].reads);
}

TEST_F(ToldByArguments, APackedBufferIsReadToo) {
  uint64_t buffer[] = {1, in_.address + 8, out_.address};
  const Touch touches[] = {{&in_, 8, 0, true, true}, {&out_, 0, 0, true, true}};
  LaunchView view = View(3, touches);
  view.touch_count = 2;
  view.arguments.info = &info_;
  view.arguments.packed = buffer;
  view.arguments.packed_bytes = sizeof buffer;
  view.arguments.tell_touches = true;
  recorder_.Record(view);
  const Recorder::Period period = Last();
  ASSERT_TRUE(period.usable);
  EXPECT_EQ(period.pointer_at, (std::vector<uint32_t>{8, 16}));
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
