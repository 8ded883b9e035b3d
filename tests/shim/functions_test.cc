// SPDX-License-Identifier: Apache-2.0
#include "shim/functions.h"

#include <gtest/gtest.h>

#include <vector>

#include "shim/code_identity.h"
#include "shim/resolve.h"

namespace atp::shim {
namespace {

struct Layout {
  size_t offset, bytes;
};
std::vector<Layout> layout;
int questions = 0;
CUresult past_the_end = CUDA_ERROR_INVALID_VALUE;

CUresult Answer(size_t index, size_t* offset, size_t* bytes) {
  ++questions;
  if (index >= layout.size()) return past_the_end;
  *offset = layout[index].offset;
  *bytes = layout[index].bytes;
  return CUDA_SUCCESS;
}

class FunctionsTest : public testing::Test {
 protected:
  FunctionsTest() {
    g_real = RealDriver{};
    g_real.cuFuncGetParamInfo = [](CUfunction, size_t index, size_t* offset, size_t* bytes) {
      return Answer(index, offset, bytes);
    };
    past_the_end = CUDA_ERROR_INVALID_VALUE;
    questions = 0;
    ForgetFunctions();
  }
  static CUfunction Handle(uintptr_t value) { return reinterpret_cast<CUfunction>(value); }
};

TEST_F(FunctionsTest, TheDriverIsAskedOncePerFunction) {
  layout = {{0, 8}, {8, 8}};
  EXPECT_EQ(FunctionOf(Handle(0x1000)).parameters.size(), 2u);
  const int first = questions;
  EXPECT_EQ(&FunctionOf(Handle(0x1000)), &FunctionOf(Handle(0x1000)));
  EXPECT_EQ(questions, first);
}

TEST_F(FunctionsTest, AfterAnUnloadTheSameHandleIsAskedAgain) {
  layout = {{0, 8}, {8, 8}};
  FunctionOf(Handle(0x1000));
  layout = {{0, 4}};
  ForgetFunctions();
  EXPECT_EQ(FunctionOf(Handle(0x1000)).parameters.size(), 1u);
}

TEST_F(FunctionsTest, AKernelHandleIsAskedAboutAsAKernel) {
  layout = {{0, 8}};
  static bool asked_as_kernel;
  asked_as_kernel = false;
  g_real.cuKernelGetParamInfo = [](CUkernel, size_t index, size_t* offset, size_t* bytes) {
    asked_as_kernel = true;
    return Answer(index, offset, bytes);
  };
  RememberKernel(reinterpret_cast<CUkernel>(0x2000));
  EXPECT_TRUE(FunctionOf(Handle(0x2000)).known);
  EXPECT_TRUE(asked_as_kernel);
  asked_as_kernel = false;
  EXPECT_TRUE(FunctionOf(Handle(0x3000)).known);
  EXPECT_FALSE(asked_as_kernel);
}

// What a function is called in the record of another run.
TEST_F(FunctionsTest, TheIdentityIsThatOfNameCodeAndParametersNotOfTheHandle) {
  layout = {{0, 8}, {8, 8}};
  g_real.cuFuncGetName = [](const char** name, CUfunction function) {
    *name = reinterpret_cast<uintptr_t>(function) < 0x9000 ? "one" : "two";
    return CUDA_SUCCESS;
  };
  g_real.cuFuncGetModule = [](CUmodule* module, CUfunction function) {
    *module = reinterpret_cast<CUmodule>(reinterpret_cast<uintptr_t>(function) & 0xf);
    return CUDA_SUCCESS;
  };
  RememberCode(reinterpret_cast<CUmodule>(1), 0x1111);
  RememberCode(reinterpret_cast<CUmodule>(2), 0x1111);
  RememberCode(reinterpret_cast<CUmodule>(3), 0x3333);
  const uint64_t identity = FunctionOf(Handle(0x8001)).identity;
  EXPECT_EQ(identity, FunctionOf(Handle(0x8002)).identity);  // loaded twice
  EXPECT_NE(identity, FunctionOf(Handle(0x8003)).identity);  // other code
  EXPECT_NE(identity, FunctionOf(Handle(0x9001)).identity);  // another name
  layout = {{0, 8}, {8, 4}};
  EXPECT_NE(identity, FunctionOf(Handle(0x8011)).identity);  // other parameters
}

TEST_F(FunctionsTest, FunctionsWithoutANameAreToldApartByTheirHandles) {
  layout = {{0, 8}};
  EXPECT_NE(FunctionOf(Handle(0xa000)).identity, FunctionOf(Handle(0xa010)).identity);
}

TEST_F(FunctionsTest, ADriverThatCannotTellIsSaidOnceAndNothingIsRead) {
  past_the_end = CUDA_ERROR_NOT_SUPPORTED;
  layout.clear();
  testing::internal::CaptureStderr();
  EXPECT_FALSE(FunctionOf(Handle(0x4000)).known);
  EXPECT_FALSE(FunctionOf(Handle(0x5000)).known);
  const std::string log = testing::internal::GetCapturedStderr();
  EXPECT_EQ(std::count(log.begin(), log.end(), '\n'), 1);
  VisitParameterWords(FunctionOf(Handle(0x4000)), nullptr, [](uint64_t, WordAccess) { FAIL(); });
}

TEST_F(FunctionsTest, MoreFunctionsThanTheTableHoldsAreStillAnswered) {
  layout = {{0, 8}};
  for (uintptr_t i = 1; i < 40000; ++i) {
    const FunctionInfo& info = FunctionOf(Handle(i * 64));
    ASSERT_TRUE(info.handle == nullptr || info.parameters.size() == 1);
  }
}

// (char, short, int, long, float*, 32 bytes aligned to 8, char) -> offsets 0, 2, 4, 8, 16, 24, 56.
TEST_F(FunctionsTest, EveryAlignedWordOfEveryParameterIsVisitedAndNoOther) {
  layout = {{0, 1}, {2, 2}, {4, 4}, {8, 8}, {16, 8}, {24, 32}, {56, 1}};
  char c = 1;
  short s = 2;
  int i = 3;
  uint64_t l = 4, p = 5;
  uint64_t structure[4] = {6, 7, 8, 9};
  char last = 10;
  void* parameters[] = {&c, &s, &i, &l, &p, structure, &last};
  std::vector<uint64_t> seen;
  VisitParameterWords(FunctionOf(Handle(0x6000)), parameters,
                      [&](uint64_t word, WordAccess) { seen.push_back(word); });
  EXPECT_EQ(seen, (std::vector<uint64_t>{4, 5, 6, 7, 8, 9}));
}

TEST_F(FunctionsTest, APointerInsideAPackedStructureIsAlignedToTheBufferNotTheStructure) {
  layout = {{4, 20}};  // a structure at offset 4: its words lie at 8 and 16 of the buffer
  char structure[20] = {};
  const uint64_t first = 0x1111, second = 0x2222;
  memcpy(structure + 4, &first, 8);
  memcpy(structure + 12, &second, 8);
  void* parameters[] = {structure};
  std::vector<uint64_t> seen;
  VisitParameterWords(FunctionOf(Handle(0x7000)), parameters,
                      [&](uint64_t word, WordAccess) { seen.push_back(word); });
  EXPECT_EQ(seen, (std::vector<uint64_t>{first, second}));
}

TEST_F(FunctionsTest, APackedBufferIsReadToItsEndAndNoFurther) {
  char buffer[20] = {};
  std::vector<uint64_t> seen;
  VisitPackedWords(FunctionInfo{}, buffer, sizeof buffer, [&](uint64_t word, WordAccess access) {
    seen.push_back(word);
    EXPECT_TRUE(access.reads && access.writes);  // not known
  });
  EXPECT_EQ(seen.size(), 2u);
}

}  // namespace
}  // namespace atp::shim
