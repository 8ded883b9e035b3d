// SPDX-License-Identifier: Apache-2.0
// How far launches reach, by kernels as nvcc compiles them (reach.cu).
#include "ptx/reach.h"

#include <gtest/gtest.h>

#include <fstream>
#include <sstream>

#include "tests/ptx/arguments.h"

namespace atp::ptx {
namespace {

constexpr uint64_t kPlenty = 10'000'000;

class ReachOfKernels : public testing::Test {
 protected:
  static void SetUpTestSuite() {
    std::ifstream file(ATP_PTX_DIR "/reach.ptx");
    std::stringstream text;
    text << file.rdbuf();
    std::string error;
    module_ = new ParsedModule;
    ASSERT_TRUE(ParseModule(
        text.str(), [](std::string_view) { return true; }, module_, &error))
        << error;
  }
  static void TearDownTestSuite() { delete module_; }

  static std::unique_ptr<const ReachCode> Code(const char* kernel) {
    return ReachCode::Make(*module_, *module_->functions[module_->function_by_name.at(kernel)]);
  }
  // As text: "0..64 ? -" for one that is known, one that is not, and one that is not used.
  static std::string Reaches(const char* kernel, const Geometry& geometry,
                             const Arguments& arguments, uint64_t budget = kPlenty) {
    const auto code = Code(kernel);
    if (code == nullptr) return "cannot be followed";
    std::string text;
    for (const Reach& r : code->Run(geometry, arguments.bytes(), arguments.pointers(), budget)) {
      if (!text.empty()) text += ' ';
      text += !r.known           ? "?"
              : r.begin == r.end ? "-"
                                 : std::to_string(r.begin) + ".." + std::to_string(r.end);
    }
    return text;
  }
  static ParsedModule* module_;
};
ParsedModule* ReachOfKernels::module_ = nullptr;

constexpr uint64_t kA = 0x7f0000000000, kB = 0x7f0010000000, kC = 0x7f0020000000;

Arguments Three() { return Arguments().Pointer(kA).Pointer(kB).Pointer(kC); }

TEST_F(ReachOfKernels, AGuardEndsTheLastBlock) {
  // 1000 elements in 4 blocks of 256: the last thread that works is none at a corner, and what its
  // block reaches is known to the block's first thread and those between.
  EXPECT_EQ(Reaches("Add", {{4, 1, 1}, {256, 1, 1}}, Three().Add(1024)), "0..4096 0..4096 0..4096");
  EXPECT_EQ(Reaches("Add", {{4, 1, 1}, {250, 1, 1}}, Three().Add(1000)), "0..4000 0..4000 0..4000");
}

TEST_F(ReachOfKernels, AGridThatStridesReachesTheCount) {
  const Arguments arguments = Arguments().Pointer(kA).Pointer(kB).Add(size_t{10000});
  EXPECT_EQ(Reaches("GridStride", {{8, 1, 1}, {128, 1, 1}}, arguments), "0..160000 0..160000");
}

TEST_F(ReachOfKernels, AMatrixProductReachesEachMatrix) {
  EXPECT_EQ(Reaches("Multiply", {{3, 2, 1}, {16, 16, 1}}, Three().Add(32).Add(48).Add(64)),
            "0..8192 0..12288 0..6144");
}

TEST_F(ReachOfKernels, ARowOfACacheIsAllThatIsWritten) {
  const Arguments arguments = Arguments().Pointer(kA).Pointer(kB).Add(100).Add(256);
  EXPECT_EQ(Reaches("Append", {{2, 1, 1}, {128, 1, 1}}, arguments), "0..1024 102400..103424");
}

TEST_F(ReachOfKernels, ACacheIsReadAsFarAsItIsFilled) {
  for (const int length : {1, 63, 64, 1000}) {
    const Arguments arguments = Three().Add(length).Add(32);
    EXPECT_EQ(Reaches("Attend", {{4, 1, 1}, {64, 1, 1}}, arguments),
              "0..512 0.." + std::to_string(length * 512) + " 0..512");
  }
}

TEST_F(ReachOfKernels, WhatDataIndexIsNotKnown) {
  EXPECT_EQ(Reaches("Gather", {{10, 1, 1}, {64, 1, 1}}, Three().Add(64)), "0..40 ? 0..2560");
}

TEST_F(ReachOfKernels, PointersInAStructureAreFoundByItsTables) {
  struct {
    uint64_t address[16] = {};
    int size[16] = {};
    unsigned char tensor_of_block[64] = {};
  } tensors;
  tensors.address[0] = kA;
  tensors.address[3] = kB;
  tensors.size[0] = 1000;
  tensors.size[3] = 2000;
  tensors.tensor_of_block[1] = 3;
  const Arguments arguments = Arguments().Add(tensors).Add(0.5f).PointerAt(0).PointerAt(24);
  EXPECT_EQ(Reaches("Scale", {{2, 1, 1}, {128, 1, 1}}, arguments), "0..4000 0..8000");
}

TEST_F(ReachOfKernels, BothWaysOfABranchThatDataDecideAreTried) {
  const Arguments arguments =
      Arguments().Pointer(kA).Pointer(kB).Pointer(kC).Pointer(kC + 4096).Add(512);
  EXPECT_EQ(Reaches("Maybe", {{2, 1, 1}, {256, 1, 1}}, arguments), "0..2048 0..2048 0..2048 -");
}

TEST_F(ReachOfKernels, APointerMayBeReadBackwardsFrom) {
  const Arguments arguments = Arguments().Pointer(kA).Pointer(kB).Add(256u);
  EXPECT_EQ(Reaches("Backwards", {{2, 1, 1}, {128, 1, 1}}, arguments), "-2048..0 0..2048");
}

TEST_F(ReachOfKernels, FieldsOfBitsMakeColumns) {
  const Arguments arguments = Arguments().Pointer(kA).Pointer(kB).Add(512);
  EXPECT_EQ(Reaches("Columns", {{4, 1, 1}, {256, 1, 1}}, arguments), "0..4096 0..4096");
}

TEST_F(ReachOfKernels, CallsOfOtherFunctionsAreNotFollowed) {
  EXPECT_EQ(Reaches("Calls", {}, Arguments().Pointer(kA).Pointer(kB)), "cannot be followed");
}

TEST_F(ReachOfKernels, PointersFromMemoryLeaveTheOthersKnown) {
  EXPECT_EQ(Reaches("Indirect", {{4, 1, 1}, {32, 1, 1}}, Three()), "0..32 0..128 0..128");
}

TEST_F(ReachOfKernels, TooLongARunHasNoAnswer) {
  const Arguments arguments = Three().Add(1000).Add(32);
  EXPECT_EQ(Reaches("Attend", {{4, 1, 1}, {64, 1, 1}}, arguments, 1000), "");
}

TEST_F(ReachOfKernels, ArgumentsThatAreTooShortGiveNone) {
  EXPECT_EQ(Reaches("Add", {}, Arguments().Pointer(kA)), "0..4");  // n is not known: both ways
  EXPECT_EQ(Reaches("Add", {}, Arguments().Add(1).PointerAt(0)), "");
  EXPECT_EQ(Reaches("Add", {}, Arguments().Add(1).Add(1).Add(1).PointerAt(4)), "");
}

}  // namespace
}  // namespace atp::ptx
