// SPDX-License-Identifier: Apache-2.0
// What launches of a period reach, by the PTX of their kernels: a cache that fills, row by row.
#include "shim/kernel_reach.h"

#include <gtest/gtest.h>

#include <cstring>

#include "shim/functions.h"
#include "shim/kernel_images.h"
#include "shim/native_sizes.h"

namespace atp::shim {
namespace {

// out[i] = sum of cache[i], cache[i + 256], ... for `rows` rows.
constexpr char kKernel[] = R"(
.version 8.0
.target sm_80
.address_size 64
.visible .entry sum_rows(.param .u64 cache, .param .u64 out, .param .u32 rows) {
  .reg .b64 %d<8>; .reg .b32 %r<8>; .reg .f32 %f<4>; .reg .pred %p<4>;
  ld.param.u64 %d0, [cache]; ld.param.u64 %d1, [out]; ld.param.u32 %r0, [rows];
  mov.u32 %r1, %tid.x; mul.wide.u32 %d2, %r1, 4;
  add.u64 %d3, %d0, %d2; add.u64 %d4, %d1, %d2; mov.u32 %r2, 0; mov.f32 %f0, 0f00000000;
LOOP:
  setp.ge.u32 %p0, %r2, %r0; @%p0 bra DONE;
  ld.global.f32 %f1, [%d3]; add.f32 %f0, %f0, %f1;
  add.u64 %d3, %d3, 1024; add.u32 %r2, %r2, 1; bra LOOP;
DONE:
  st.global.f32 [%d4], %f0; ret;
}
)";
constexpr uint64_t kRow = 1024;

class KernelReachTest : public testing::Test {
 protected:
  KernelReachTest() {
    RememberImage(kKernel);
    AccessOf("sum_rows");  // as the first launch does
    info_.known = true;
    info_.name = "sum_rows";
    info_.parameters = parameters_;
    for (Allocation* a : {&cache_, &out_}) {
      a->id = a == &cache_ ? 1 : 2;
      a->bytes = a->mapped_bytes = 8 * kGranule;
      a->address = a->id << 32;
      live_[a->id] = a;
    }
  }
  void Launch(uint32_t rows) {
    Touch touches[2] = {{&cache_, 0, 0, true, false}, {&out_, 4096, 0, false, true}};
    uint64_t pointers[2] = {cache_.address, out_.address + 4096};
    void* arguments[3] = {&pointers[0], &pointers[1], &rows};
    LaunchView view;
    view.touches = touches;
    view.touch_count = 2;
    view.arguments.info = &info_;
    view.arguments.parameters = arguments;
    view.arguments.shape.block[0] = 256;
    recorder_.Record(view);
  }
  Recorder::Period Look(unsigned ahead) {
    Recorder::Period period = recorder_.Last(1, {}, live_);
    FindReaches(ahead, &period);
    return period;
  }

  static constexpr Parameter parameters_[3] = {{0, 8}, {8, 8}, {16, 4}};
  FunctionInfo info_;
  Allocation cache_, out_;
  std::unordered_map<uint64_t, Allocation*> live_;
  Recorder recorder_;
};

TEST_F(KernelReachTest, ALaunchReachesWhatItsArgumentsSay) {
  Launch(100);
  const Recorder::Period period = Look(0);
  EXPECT_FALSE(period.grows);
  EXPECT_EQ(period.seen.touches[0].bytes, 100 * kRow);
  EXPECT_EQ(period.seen.touches[1].offset, 4096u);
  EXPECT_EQ(period.seen.touches[1].bytes, kRow);
}

TEST_F(KernelReachTest, ArgumentsThatCountOnReachFartherSoon) {
  Launch(100);
  Launch(101);
  const Recorder::Period period = Look(16);
  EXPECT_TRUE(period.grows);
  EXPECT_EQ(period.seen.touches[0].bytes, 117 * kRow);
}

TEST_F(KernelReachTest, ArgumentsThatJumpAreNoCounters) {
  Launch(100);
  Launch(1 << 25);
  Launch(200);
  const Recorder::Period period = Look(16);
  EXPECT_FALSE(period.grows);
  EXPECT_EQ(period.seen.touches[0].bytes, 200 * kRow);
}

TEST_F(KernelReachTest, NoReachGoesBeyondItsAllocation) {
  Launch(1 << 14);  // twice the allocation: nothing of this could have run
  EXPECT_EQ(Look(0).seen.touches[0].bytes, cache_.bytes);
}

TEST_F(KernelReachTest, AKernelWithoutPtxStaysUnknown) {
  info_.name = "another";
  Launch(100);
  EXPECT_EQ(Look(0).seen.touches[0].bytes, 0u);
}

// Chunks of data whose results lie in plain memory, each in its own piece.
TEST_F(KernelReachTest, LaunchesThatDifferInPlainPointersAreFollowedOnce) {
  for (const uint64_t plain : {0x7000u, 0x8000u}) {
    g_native_sizes.Insert({plain, 4096});
    Touch touch = {&cache_, 0, 0, true, false};
    uint64_t pointers[2] = {cache_.address, plain};
    uint32_t rows = 77;
    void* arguments[3] = {&pointers[0], &pointers[1], &rows};
    LaunchView view;
    view.touches = &touch;
    view.touch_count = 1;
    view.arguments.info = &info_;
    view.arguments.parameters = arguments;
    view.arguments.shape.block[0] = 256;
    recorder_.Record(view);
    Recorder::Period period = recorder_.Last(1, {}, live_);
    EXPECT_EQ(FindReaches(0, &period), plain == 0x7000 ? 1u : 0u);
    EXPECT_EQ(period.seen.touches[0].bytes, 77 * kRow);
  }
}

// Both may be the one that runs.
TEST_F(KernelReachTest, OfTwoKernelsOfOneNameTheFartherReachCounts) {
  std::string other = kKernel;
  const std::string stride = "%d3, 1024";
  other.replace(other.find(stride), stride.size(), "%d3, 4096");
  for (size_t at; (at = other.find("sum_rows")) != std::string::npos;)
    other.replace(at, 8, "twice");
  std::string same = kKernel;
  for (size_t at; (at = same.find("sum_rows")) != std::string::npos;) same.replace(at, 8, "twice");
  RememberImage(other.c_str());
  RememberImage(same.c_str());
  AccessOf("twice");
  info_.name = "twice";
  Launch(100);
  EXPECT_EQ(Look(0).seen.touches[0].bytes, 99 * 4096 + kRow);
}

}  // namespace
}  // namespace atp::shim
