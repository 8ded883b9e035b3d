// SPDX-License-Identifier: Apache-2.0
// What a kernel's touches depend on, found in its text; and which branches decide about an
// instruction.
#include "sim/exec/touch_slice.h"

#include "sim/exec/control_flow.h"
#include "tests/sim/exec/support.h"

namespace atp::sim::exec {
namespace {

// A kernel with parameters p (pointer), q (pointer), n (count), a (factor), parsed.
class OneKernel {
 public:
  explicit OneKernel(const std::string& code, const std::string& before = "") {
    text_ = ".version 8.0\n.target sm_80\n.address_size 64\n" + before +
            ".visible .entry k(.param .u64 p, .param .u64 q, .param .u32 n, .param .f32 a) {\n"
            ".reg .b64 %d<9>; .reg .b32 %r<9>; .reg .f32 %f<9>; .reg .pred %p<9>;\n" +
            code + "\n}\n";
    std::string error;
    EXPECT_TRUE(ptx::ParseModule(
        text_, [](std::string_view) { return true; }, &module_, &error))
        << error;
    for (const auto& function : module_.functions) {
      if (function->is_entry) kernel_ = function.get();
    }
    EXPECT_TRUE(ptx::ParseBody(module_, *kernel_, &body_, &error)) << error;
  }
  TouchSlice Slice() const { return SliceTouches(module_, *kernel_, body_); }
  ControlFlow Flow() const { return ControlFlow(module_, body_); }

 private:
  std::string text_;
  ptx::ParsedModule module_;
  const ptx::Function* kernel_ = nullptr;
  ptx::Body body_;
};

using Ranges = std::vector<std::pair<uint32_t, uint32_t>>;
constexpr std::pair<uint32_t, uint32_t> kP{0, 8}, kQ{8, 8}, kN{16, 4};

constexpr char kElement[] =
    "ld.param.u64 %d0, [p]; ld.param.u64 %d1, [q]; ld.param.u32 %r0, [n]; ld.param.f32 %f0, [a];\n"
    "mov.u32 %r1, %tid.x; setp.ge.u32 %p0, %r1, %r0; @%p0 bra END;\n"
    "mul.wide.u32 %d2, %r1, 4; add.u64 %d3, %d0, %d2; add.u64 %d4, %d1, %d2;\n";

TEST(TouchSlice, AddressesAndBoundsCountFactorsDoNot) {
  const TouchSlice slice = OneKernel(std::string(kElement) +
                                     "ld.global.f32 %f1, [%d3]; mul.f32 %f2, %f1, %f0;\n"
                                     "st.global.f32 [%d4], %f2; END: ret;")
                               .Slice();
  EXPECT_FALSE(slice.depends_on_data) << slice.reason;
  EXPECT_FALSE(slice.data_branches);
  EXPECT_EQ(slice.params, (Ranges{kP, kQ, kN}));
}

TEST(TouchSlice, AnIndexFromMemoryIsData) {
  const TouchSlice slice = OneKernel(std::string(kElement) +
                                     "ld.global.u32 %r2, [%d3]; mul.wide.u32 %d5, %r2, 4;\n"
                                     "add.u64 %d6, %d1, %d5; st.global.u32 [%d6], %r1; END: ret;")
                               .Slice();
  EXPECT_TRUE(slice.depends_on_data);
  EXPECT_EQ(slice.reason, "line 9: ld.global.u32");
}

TEST(TouchSlice, ABranchOnDataAroundAnAccessIsData) {
  const TouchSlice slice =
      OneKernel(std::string(kElement) +
                "ld.global.u32 %r2, [%d3]; setp.eq.u32 %p1, %r2, 0; @%p1 bra END;\n"
                "st.global.u32 [%d4], %r1; END: ret;")
          .Slice();
  EXPECT_TRUE(slice.depends_on_data);
}

TEST(TouchSlice, AGuardOnDataIsData) {
  const TouchSlice slice = OneKernel(std::string(kElement) +
                                     "ld.global.u32 %r2, [%d3]; setp.eq.u32 %p1, %r2, 0;\n"
                                     "@%p1 st.global.u32 [%d4], %r1; END: ret;")
                               .Slice();
  EXPECT_TRUE(slice.depends_on_data);
}

TEST(TouchSlice, ABranchOnDataAroundArithmeticIsNoted) {
  const TouchSlice slice =
      OneKernel(std::string(kElement) +
                "ld.global.f32 %f1, [%d3]; setp.lt.f32 %p1, %f1, 0f00000000; @%p1 bra NEGATIVE;\n"
                "mul.f32 %f1, %f1, %f0; NEGATIVE: st.global.f32 [%d4], %f1; END: ret;")
          .Slice();
  EXPECT_FALSE(slice.depends_on_data) << slice.reason;
  EXPECT_TRUE(slice.data_branches);
}

TEST(TouchSlice, AParameterThatDecidesABranchAroundArithmeticCounts) {
  const TouchSlice slice =
      OneKernel(std::string(kElement) +
                "ld.global.f32 %f1, [%d3]; setp.lt.f32 %p1, %f0, 0f00000000; @%p1 bra NEGATIVE;\n"
                "mul.f32 %f1, %f1, 0f40000000; NEGATIVE: st.global.f32 [%d4], %f1; END: ret;")
          .Slice();
  EXPECT_FALSE(slice.depends_on_data) << slice.reason;
  EXPECT_FALSE(slice.data_branches);
  constexpr std::pair<uint32_t, uint32_t> kA{20, 4};
  EXPECT_EQ(slice.params, (Ranges{kP, kQ, kN, kA}));
}

TEST(TouchSlice, ABranchOnTheThreadsPlaceIsNoDataBranch) {
  const TouchSlice slice =
      OneKernel(std::string(kElement) +
                    "ld.global.u32 %r2, [%d3]; mov.u32 %r4, buffer; setp.ne.u32 %p1, %r1, 0;\n"
                    "@%p1 bra OTHERS; st.shared.u32 [%r4], %r2; OTHERS: st.global.u32 [%d4], %r2;\n"
                    "END: ret;",
                ".shared .b32 buffer[64];\n")
          .Slice();
  EXPECT_FALSE(slice.depends_on_data) << slice.reason;
  EXPECT_FALSE(slice.data_branches);
}

TEST(TouchSlice, AnAddressChosenUnderABranchOnDataIsData) {
  const TouchSlice slice =
      OneKernel(std::string(kElement) +
                "ld.global.f32 %f1, [%d3]; setp.lt.f32 %p1, %f1, 0f00000000; @%p1 bra OTHER;\n"
                "add.u64 %d4, %d4, 4096; OTHER: st.global.f32 [%d4], %f1; END: ret;")
          .Slice();
  EXPECT_TRUE(slice.depends_on_data);
}

TEST(TouchSlice, ALoopThatEndsByDataIsData) {
  const TouchSlice slice =
      OneKernel(std::string(kElement) +
                "LOOP: ld.global.u32 %r2, [%d3]; add.u64 %d3, %d3, 4; setp.ne.u32 %p1, %r2, 0;\n"
                "@%p1 bra LOOP; END: ret;")
          .Slice();
  EXPECT_TRUE(slice.depends_on_data);
}

TEST(TouchSlice, ALoopWithACountIsKnown) {
  const TouchSlice slice =
      OneKernel(std::string(kElement) +
                "mov.u32 %r3, 0; LOOP: ld.global.u32 %r2, [%d3]; add.u64 %d3, %d3, 4096;\n"
                "add.u32 %r3, %r3, 1; setp.lt.u32 %p1, %r3, %r0; @%p1 bra LOOP; END: ret;")
          .Slice();
  EXPECT_FALSE(slice.depends_on_data) << slice.reason;
  EXPECT_EQ(slice.params, (Ranges{kP, kN}));
}

TEST(TouchSlice, SharedMemoryIsNoTouchButItsContentIsData) {
  const std::string shared = ".shared .b32 buffer[64];\n";
  const std::string load =
      "ld.global.u32 %r2, [%d3]; and.b32 %r3, %r2, 63; shl.b32 %r3, %r3, 2; mov.u32 %r4, buffer;\n"
      "add.u32 %r4, %r4, %r3; ld.shared.u32 %r5, [%r4];\n";
  EXPECT_FALSE(OneKernel(kElement + load + "st.global.u32 [%d4], %r5; END: ret;", shared)
                   .Slice()
                   .depends_on_data);
  EXPECT_TRUE(OneKernel(kElement + load +
                            "mul.wide.u32 %d5, %r5, 4; add.u64 %d5, %d5, %d1;\n"
                            "st.global.u32 [%d5], %r5; END: ret;",
                        shared)
                  .Slice()
                  .depends_on_data);
}

TEST(TouchSlice, WhatAnAtomicReturnsIsDataWhereItPointsIsNot) {
  EXPECT_FALSE(OneKernel(std::string(kElement) +
                         "atom.global.add.u32 %r2, [%d3], 1; st.global.u32 [%d4], %r2; END: ret;")
                   .Slice()
                   .depends_on_data);
  EXPECT_TRUE(OneKernel(std::string(kElement) +
                        "atom.global.add.u32 %r2, [%d0], 1; mul.wide.u32 %d5, %r2, 4;\n"
                        "add.u64 %d5, %d5, %d1; st.global.u32 [%d5], %r2; END: ret;")
                  .Slice()
                  .depends_on_data);
}

TEST(TouchSlice, ClocksAreData) {
  const TouchSlice slice = OneKernel(std::string(kElement) +
                                     "mov.u32 %r2, %clock; and.b32 %r2, %r2, 4;\n"
                                     "mul.wide.u32 %d5, %r2, 4; add.u64 %d5, %d5, %d1;\n"
                                     "st.global.u32 [%d5], %r2; END: ret;")
                               .Slice();
  EXPECT_TRUE(slice.depends_on_data);
  EXPECT_EQ(slice.reason, "line 9: mov.u32");
}

TEST(TouchSlice, CallsAreDataFailedAssertionsEndTheLaunch) {
  const std::string assertion =
      ".extern .func __assertfail(.param .b64 m, .param .b64 f, .param .b32 l, .param .b64 g, "
      ".param .b64 c);\n";
  const std::string failing =
      "ld.global.u32 %r2, [%d3]; setp.ne.u32 %p1, %r2, 0; @%p1 bra GOOD;\n"
      "{ .param .b64 x0; .param .b64 x1; .param .b32 x2; .param .b64 x3; .param .b64 x4;\n"
      "call.uni __assertfail, (x0, x1, x2, x3, x4); }\n"
      "GOOD: st.global.u32 [%d4], %r2; END: ret;";
  const TouchSlice asserted = OneKernel(kElement + failing, assertion).Slice();
  EXPECT_FALSE(asserted.depends_on_data) << asserted.reason;
  const std::string function = ".func f() { ret; }\n";
  EXPECT_TRUE(
      OneKernel(std::string(kElement) + "call.uni f; st.global.u32 [%d4], %r1; END: ret;", function)
          .Slice()
          .depends_on_data);
}

TEST(ControlFlow, AJoinDependsOnNoBranchAnArmOnItsOwn) {
  //                            0                  1                   2                  3
  const ControlFlow flow = OneKernel(
                               "setp.eq.u32 %p0, %r0, 0; @%p0 bra ELSE; mov.u32 %r1, 1; bra JOIN; "
                               "ELSE: mov.u32 %r1, 2;\n"
                               "JOIN: mov.u32 %r2, %r1; ret;")
                               .Flow();
  EXPECT_EQ(flow.Deciders(0), std::vector<uint32_t>{});
  EXPECT_EQ(flow.Deciders(2), std::vector<uint32_t>{1});
  EXPECT_EQ(flow.Deciders(4), std::vector<uint32_t>{1});
  EXPECT_EQ(flow.Deciders(5), std::vector<uint32_t>{});
}

TEST(ControlFlow, ALoopDependsOnItsOwnBranch) {
  const ControlFlow flow =
      OneKernel(
          "mov.u32 %r0, 0; LOOP: add.u32 %r0, %r0, 1; setp.lt.u32 %p0, %r0, 9; @%p0 bra LOOP; ret;")
          .Flow();
  EXPECT_EQ(flow.Deciders(0), std::vector<uint32_t>{});
  EXPECT_EQ(flow.Deciders(1), std::vector<uint32_t>{3});
  EXPECT_EQ(flow.Deciders(4), std::vector<uint32_t>{});
}

TEST(ControlFlow, WhatFollowsAGuardedExitDependsOnIt) {
  const ControlFlow flow =
      OneKernel("setp.eq.u32 %p0, %r0, 0; @%p0 exit; mov.u32 %r1, 1; ret;").Flow();
  EXPECT_EQ(flow.Deciders(2), std::vector<uint32_t>{1});
}

TEST(ControlFlow, AWayIntoATrapCountsForNothing) {
  const ControlFlow flow =
      OneKernel("setp.eq.u32 %p0, %r0, 0; @%p0 bra GOOD; trap; GOOD: mov.u32 %r1, 1; ret;").Flow();
  EXPECT_EQ(flow.Deciders(3), std::vector<uint32_t>{});
}

}  // namespace
}  // namespace atp::sim::exec
